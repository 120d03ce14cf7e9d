"""The kernel's netem on the middlebox's interfaces: set, read back, and counted at the end.

    host a ---- [to-a  relay  to-b: netem a->b] ---- host b       on the way out, behind the relay

Only the lab is asked; which words to say and what the answer means is `harness.netem`'s business.
What the kernel cannot do is UNSUPPORTED and names the way out; a kernel that holds anything else
than what was asked for is our own failure.
"""

from __future__ import annotations

import time
from pathlib import Path

from windtunnel.harness.artifact.middlebox.netem import NetemAccount, NetemLink
from windtunnel.harness.netem.readback import Applied, differences, parse
from windtunnel.harness.netem.render import arguments
from windtunnel.harness.orchestrate.lab import MID, Lab, LabError
from windtunnel.harness.orchestrate.run.traffic import Unsupported
from windtunnel.harness.scenario.resolved.case import Case

COMMAND_TIMEOUT_S = 30.0
DRAIN_TIMEOUT_S = 15.0
"""Longer than the longest delay that a scenario can order."""
POLL_S = 0.05
_UNKNOWN = ("qdisc kind is unknown", "Unknown qdisc")


class Netem:
    """The weather of one case on the middlebox of one lab."""

    def __init__(self, lab: Lab, case: Case, log: Path) -> None:
        self._lab = lab
        self._log = log
        facing = dict(zip((host.name for host in case.hosts), lab.mid_interfaces(), strict=True))
        self._interfaces = {
            name: facing[receiver]
            for name, (_, receiver) in zip(case.link_names, case.directions, strict=True)
        }
        self._weather = [each for each in case.weather if case.backend_of(each.link) == "netem"]
        self.account = NetemAccount({})

    def apply(self) -> None:
        """Set everything and prove it; raises Unsupported, or LabError naming what differs."""
        for weather in self._weather:
            interface, words = self._interfaces[weather.link], arguments(weather)
            self._set(interface, words)
            applied = self._read(interface)
            self.account.links[weather.link] = NetemLink(interface, words, applied.options)
            wrong = differences(weather, applied)
            if wrong:
                raise LabError(f"netem on {interface}: {'; '.join(wrong)}")

    def close(self) -> None:
        """Wait until no packet is on its way any more, take the last counts, and remove all."""
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

    def _set(self, interface: str, words: list[str]) -> None:
        # Not `replace`: a netem that is there already would keep what the words do not name.
        command = ["tc", "qdisc", "add", "dev", interface, "root", "netem", *words]
        code, text = self._run(command)
        if code != 0 and any(known in text for known in _UNKNOWN):
            raise Unsupported(
                "this kernel has no netem (sch_netem): expected one that has, such as that of "
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
        """Run a short command beside the relay; returns its exit code and what it printed."""
        before = self._log.stat().st_size if self._log.exists() else 0
        running = self._lab.spawn(MID, command, log=self._log)
        code = running.wait(COMMAND_TIMEOUT_S)
        if code is None:
            running.kill()
            raise LabError(f"`{' '.join(command)}` did not end within {COMMAND_TIMEOUT_S:g} s")
        return code, self._log.read_bytes()[before:].decode(errors="replace").strip()
