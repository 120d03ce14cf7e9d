"""Configures netem on the middlebox's interfaces, verifies the settings, and records the final
counters.

    host a ---- [to-a  relay  to-b: netem a->b] ---- host b       on egress, after the relay

`harness.netem` builds the arguments of `tc` and parses its output. If the kernel has no netem, the
run is UNSUPPORTED. If the kernel's settings differ from the requested ones, the harness has failed.
"""

from __future__ import annotations

import time
from pathlib import Path

from windtunnel.harness.artifact.middlebox.netem import NetemAccount, NetemLink
from windtunnel.harness.netem.readback import Applied, differences, parse
from windtunnel.harness.netem.render import arguments
from windtunnel.harness.orchestrate.lab import MID, Lab, LabError, Unsupported
from windtunnel.harness.scenario.resolved.case import Case

COMMAND_TIMEOUT_S = 30.0
DRAIN_TIMEOUT_S = 15.0
"""Time limit for queued packets, longer than the longest delay that a scenario can request."""
POLL_S = 0.05
_UNKNOWN = ("qdisc kind is unknown", "Unknown qdisc")


class Netem:
    """The netem impairments that a scenario specifies, on the middlebox of a lab."""

    def __init__(self, lab: Lab, case: Case, log: Path) -> None:
        self._lab = lab
        self._log = log
        facing = dict(zip((host.name for host in case.hosts), lab.mid_interfaces(), strict=True))
        self._interfaces = {
            name: facing[receiver]
            for name, (_, receiver) in zip(case.link_names, case.directions, strict=True)
        }
        self._impairments = [
            each for each in case.impairments if case.backend_of(each.link) == "netem"
        ]
        self.account = NetemAccount({})

    def apply(self) -> None:
        """Configure netem on the interfaces, and verify the settings that the kernel reports.

        Raises Unsupported if the kernel has no netem. Raises LabError with the differences if the
        kernel reports settings other than the requested ones.
        """
        for impairment in self._impairments:
            interface, options = self._interfaces[impairment.link], arguments(impairment)
            self._set(interface, options)
            applied = self._read(interface)
            self.account.links[impairment.link] = NetemLink(interface, options, applied.options)
            wrong = differences(impairment, applied)
            if wrong:
                raise LabError(f"netem on {interface}: {'; '.join(wrong)}")

    def close(self) -> None:
        """Wait until no packets are queued, record the final counts, and remove netem."""
        deadline_s = time.monotonic() + DRAIN_TIMEOUT_S
        for link in self.account.links.values():
            found = self._read(link.interface)
            while found.waiting and time.monotonic() < deadline_s:
                time.sleep(POLL_S)
                found = self._read(link.interface)
            link.packets, link.dropped, link.waiting = found.packets, found.dropped, found.waiting
            code, text = self._run(["tc", "qdisc", "del", "dev", link.interface, "root"])
            if code != 0:
                raise LabError(f"netem on {link.interface} cannot be removed: {text}")

    def _set(self, interface: str, options: list[str]) -> None:
        # `replace` is not used: an existing netem would keep options that are not specified.
        command = ["tc", "qdisc", "add", "dev", interface, "root", "netem", *options]
        code, text = self._run(command)
        if code != 0 and any(known in text for known in _UNKNOWN):
            raise Unsupported(
                "this kernel has no netem (sch_netem): use a kernel that has it, for example with "
                "`windtunnel run --kernel uml`, or backend relay"
            )
        if code != 0:
            raise LabError(f"`{' '.join(command)}` failed with exit code {code}: {text}")

    def _read(self, interface: str) -> Applied:
        code, text = self._run(["tc", "-j", "-s", "qdisc", "show", "dev", interface])
        if code != 0:
            raise LabError(f"netem on {interface} cannot be read back: {text}")
        try:
            return parse(text)
        except ValueError as error:
            raise LabError(f"netem on {interface}: {error}") from error

    def _run(self, command: list[str]) -> tuple[int, str]:
        """Run a short command in the middlebox. Returns its exit code and output."""
        before = self._log.stat().st_size if self._log.exists() else 0
        running = self._lab.spawn(MID, command, log=self._log)
        code = running.wait(COMMAND_TIMEOUT_S)
        if code is None:
            running.kill()
            raise LabError(f"`{' '.join(command)}` did not end within {COMMAND_TIMEOUT_S:g} s")
        return code, self._log.read_bytes()[before:].decode(errors="replace").strip()
