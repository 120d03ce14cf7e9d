"""A lab without a network: every place is this machine, and every program is a shell script.

It allows the phases and the runner to be tested where no namespaces can be created.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes.process import LocalProcess
from windtunnel.harness.orchestrate.subjects import subject
from windtunnel.harness.orchestrate.subjects.subject import Subject


def printing_program(words: str) -> str:
    """Return a program that handles the stop signal, prints a line, and waits for the signal."""
    return f"trap 'exit 0' TERM; echo {words}; while :; do sleep 0.02; done"


NO_PACKETS = "tcpdump: 0 packets captured, 0 packets received by filter"
"""The statistics that a capture prints before any packet was sent."""

PROGRAMS = {
    "capture": f"trap 'echo {NO_PACKETS}' USR1; " + printing_program("listening on eth0"),
    "relay": printing_program("ready left=l right=r"),
    "sampler": printing_program("ready"),
    "driver": printing_program("up"),
    "subscriber": "echo ready; sleep 0.1; echo progress 100/100",
    "publisher": "echo progress 100/100",
}


class LocalLab:
    """Implements the interface of a Lab as far as a single machine can."""

    name = "netns"

    def __init__(self, folder: Path, *, broken: str = "") -> None:
        self._folder = folder
        self._broken = broken
        self._processes: list[LocalProcess] = []
        self.is_up = False
        self.downs = 0

    def up(self) -> None:
        if self._broken == "up":
            raise LabError("no lab today")
        self.is_up = True

    def address(self, host: str) -> str:
        return {"a": "10.64.0.3", "b": "10.64.0.19"}[host]

    def interface(self, host: str) -> str:
        return "eth0"

    def mid_interfaces(self) -> tuple[str, str]:
        return "to-a", "to-b"

    def python(self, place: str) -> str:
        return "python"

    def shared_memory(self, host: str) -> str:
        return str(self._folder / host)

    def spawn(
        self,
        place: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> LocalProcess:
        assert self.is_up
        running = LocalProcess(
            f"{place}/{log.stem}",
            argv,
            env={**os.environ, **(env or {})},
            cwd=self._folder,
            log=log,
        )
        self._processes.append(running)
        return running

    def path(self, path: Path) -> str:
        return str(path)

    def read(self, place: str, path: str) -> bytes:
        return b"Udp: InDatagrams RcvbufErrors\nUdp: 5 0\n"

    def living(self) -> list[LocalProcess]:
        return [each for each in self._processes if each.poll() is None]

    def down(self) -> None:
        for each in self._processes:
            each.kill()
        self.is_up = False
        self.downs += 1
        if self._broken == "down":
            raise LabError("something is left over")


class ScriptedSubject(Subject):
    """A subject whose driver and workloads are the scripts of a dictionary."""

    def driver_command(self, python: str, directory: str, libraries: str = "") -> list[str]:
        return script(self.environment["programs"], "driver")

    def workload_command(self, python: str, role: str, **where: str) -> list[str]:
        return script(self.environment["programs"], role)


def script(programs: str, role: str) -> list[str]:
    """Return the command line of a role, from programs given as `role=quoted script ...`."""
    found = dict(part.split("=", 1) for part in shlex.split(programs))
    return ["sh", "-c", found[role]]


def scripted(**changed: str) -> tuple[ScriptedSubject, str]:
    """Return a subject, and the text of all programs, some of which are replaced."""
    programs = shlex.join(f"{role}={text}" for role, text in {**PROGRAMS, **changed}.items())
    made = ScriptedSubject("scripted", ("driver",), ("workload",), {"programs": programs})
    return made, programs


def install(monkeypatch, programs: str) -> None:
    """Replace the harness's own programs by scripts."""
    for name, role in (("relay_command", "relay"), ("sampler_command", "sampler")):
        monkeypatch.setattr(subject, name, lambda *_, _role=role, **__: script(programs, _role))
    monkeypatch.setattr(subject, "sabotage_arguments", lambda role, sabotage: [])
    monkeypatch.setattr(
        "windtunnel.harness.capture.sniffer.command", lambda *_: script(programs, "capture")
    )
