"""Waiting for processes: for a line in a log, for an end, and for no one to die meanwhile.

A process of a run is in one of three states: wanted (its end is a fault), finishing by itself
(a workload), or asked to end. Readiness is a line in a log, since logs are all that a harness can
see in every kind of lab.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.orchestrate.lab import LabProcess

POLL_S = 0.02


OUR_ROLES = frozenset({"relay", "capture", "sampler"})
"""Processes of the harness; the others are the subject."""


class RunFailed(Exception):
    """A run cannot go on; the text is the reason, the run folder holds the evidence."""

    def __init__(self, text: str, *, ours: bool) -> None:
        super().__init__(text)
        self.ours = ours
        """Whether the harness itself failed; else the subject did, or it was too slow."""


@dataclass
class Watched:
    """A process together with what the run expects of it."""

    name: str
    """Unique within a run, such as `a/driver`."""

    process: LabProcess
    role: str
    log: Path
    asked: bool = False
    """Whether the harness told it to end before it did, or killed it on order."""

    late_s: float = 0.0
    """How long it was waited for in vain after it had been asked to end; 0 if it came in time."""

    speaks_for: Watched | None = None
    """Whose readiness this process reports, if not its own."""

    offset: int = 0
    """How much of the log has been read."""

    _partial: bytes = b""

    @property
    def is_ours(self) -> bool:
        return self.role in OUR_ROLES

    def new_lines(self) -> list[str]:
        """Return the whole lines that have been added to the log since the last call."""
        try:
            with self.log.open("rb") as file:
                file.seek(self.offset)
                fresh = file.read()
        except FileNotFoundError:
            return []
        self.offset += len(fresh)
        *lines, self._partial = (self._partial + fresh).split(b"\n")
        return [line.decode(errors="replace").rstrip() for line in lines]

    def died(self) -> str:
        """Return a sentence about how the process ended and its last words, or "" if it lives."""
        code = self.process.poll()
        if code is None:
            return ""
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        words = self.process.tail(3)
        return f"{self.name} {how}" + (f"; its last words: {words}" if words else "")

    @property
    def lateness(self) -> str:
        """A sentence about a process that had to be killed."""
        return f"{self.name} did not end within {self.late_s:g} s of being asked"

    def facts(self, run_folder: Path) -> ProcessExit:
        return ProcessExit(
            name=self.name,
            role=self.role,
            exit_code=self.process.poll(),
            asked=self.asked,
            log=str(self.log.relative_to(run_folder)),
            last_log_line=self.process.tail(1),
            late_s=self.late_s,
        )


def require_alive(watched: Iterable[Watched]) -> None:
    """Raise RunFailed about the first of these that has ended; the harness's own come last."""
    for each in sorted(watched, key=lambda each: each.is_ours):
        if not each.asked and (text := each.died()):
            raise RunFailed(text, ours=each.is_ours)


def require_success(watched: Iterable[Watched], timeout_s: float) -> None:
    """Raise RunFailed, as our own fault, about the first that does not end with exit code 0."""
    for each in watched:
        code = each.process.wait(timeout_s)
        if code is None:
            raise RunFailed(f"{each.name} is still at work", ours=True)
        if code:
            raise RunFailed(each.died(), ours=True)


def wait_until_ready(
    waiting: Iterable[Watched],
    ready: Callable[[str], bool],
    *,
    wanted: Iterable[Watched],
    timeout_s: float,
) -> None:
    """Wait until each process has logged a line that says so.

    Raises RunFailed with the last words of whichever ends first, or of the ones that are late.
    """
    waiting = list(waiting)
    wanted = [*wanted, *waiting]
    deadline_s = time.monotonic() + timeout_s
    while True:
        waiting = [each for each in waiting if not any(ready(line) for line in each.new_lines())]
        if not waiting:
            return
        require_alive(wanted)
        if time.monotonic() > deadline_s:
            late = waiting[0].speaks_for or waiting[0]
            words = late.process.tail(3) or "it has said nothing"
            text = f"{late.name} is not ready after {timeout_s:g} s: {words}"
            raise RunFailed(text, ours=late.is_ours)
        time.sleep(POLL_S)


def end(watched: Iterable[Watched], timeout_s: float) -> list[str]:
    """Ask processes to end, together; kill those that do not, and say so in the returned lines."""
    return [each.lateness for each in end_or_kill(watched, timeout_s)]


def end_or_kill(watched: Iterable[Watched], timeout_s: float) -> list[Watched]:
    """Ask processes to end, together; kill those that do not, and return them."""
    living = [each for each in watched if each.process.poll() is None]
    for each in living:
        each.asked = True
        each.process.terminate()
    deadline_s = time.monotonic() + timeout_s
    late = []
    for each in living:
        if each.process.wait(max(0.0, deadline_s - time.monotonic())) is None:
            each.process.kill()
            each.late_s = timeout_s
            late.append(each)
    return late
