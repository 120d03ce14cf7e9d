"""Supervises the processes of a run: waits until they are ready or have ended, and reports
unexpected exits.

A process of a run is in one of three states: required to run (its exit is an error), expected to
end on its own (a workload), or requested to end. A process reports that it is ready by a line in
its log, because the harness can read logs in every kind of lab.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.orchestrate.lab import LabProcess
from windtunnel.harness.verdict.core.exit_codes import invalid_file_text

POLL_S = 0.02
_SIZE_LIMIT = "because a file exceeded the limit for its size (raise it with `ulimit -f unlimited`)"


SAMPLER = "sampler"
HARNESS_ROLES = frozenset({"relay", "capture", SAMPLER})
"""Roles of the harness's processes. All other roles belong to the driver under test."""
WORKLOADS = ("publisher", "subscriber", "recorder", "replayer", "replicator")
"""Roles for which a host can have several processes, each named after its stream. They end on their
own.
"""


class RunFailed(Exception):
    """Raised if a run cannot continue. The message is the reason, and the run folder has the
    evidence.
    """

    def __init__(self, text: str, *, harness_fault: bool) -> None:
        super().__init__(text)
        self.harness_fault = harness_fault
        """Whether the harness failed. If not, the driver under test failed or is too slow."""


@dataclass
class WatchedProcess:
    """A process of a run, with its role, log and state."""

    name: str
    """Name of the process, such as `a/driver`, which is unique in a run."""

    process: LabProcess
    role: str
    log: Path
    end_requested: bool = False
    """Whether the harness requested the process to end, or an event of the scenario killed it."""

    late_s: float = 0.0
    """Time after which the process was killed because it did not end, or 0 if it ended in time."""

    problem: str = ""
    """Why the harness ended an application, as in the manifest, or an empty string."""

    reports_for: WatchedProcess | None = None
    """The process that must be ready before this one can be, or None. A timeout error names it."""

    offset: int = 0
    """Number of bytes of the log that have been read."""

    _partial: bytes = b""

    @property
    def is_harness(self) -> bool:
        """Whether this is a process of the harness, and not ended by what a driver has written."""
        return self.role in HARNESS_ROLES and not self._invalid_file

    def new_lines(self) -> list[str]:
        """Return the complete lines that were appended to the log since the last call."""
        try:
            with self.log.open("rb") as file:
                file.seek(self.offset)
                fresh = file.read()
        except FileNotFoundError:
            return []
        self.offset += len(fresh)
        *lines, self._partial = (self._partial + fresh).split(b"\n")
        return [line.decode(errors="replace").rstrip() for line in lines]

    def describe_exit(self) -> str:
        """Describe how the process ended, with its last log lines. Returns "" if it is alive."""
        code = self.process.poll()
        if code is None:
            return ""
        if self._invalid_file:
            return self._invalid_file
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if code == -signal.SIGXFSZ:
            how += f", {_SIZE_LIMIT}"
        last_lines = self.process.tail(3)
        return f"{self.name} {how}" + (f"; last log lines: {last_lines}" if last_lines else "")

    @property
    def _invalid_file(self) -> str:
        """Which driver's invalid file has ended this process, as text, or "" if none has."""
        if self.role != SAMPLER:
            return ""
        return invalid_file_text(self.name, self.process.poll(), self.process.tail(1))

    @property
    def late_text(self) -> str:
        """Error message for a process that was killed because it did not end in time."""
        return f"{self.name} did not end within {self.late_s:g} s of the request to end"

    def facts(self, run_folder: Path) -> ProcessExit:
        return ProcessExit(
            name=self.name,
            role=self.role,
            exit_code=self.process.poll(),
            asked=self.end_requested,
            log=str(self.log.relative_to(run_folder)),
            last_log_line=self.process.tail(1),
            late_s=self.late_s,
            problem=self.problem,
        )


def require_alive(watched: Iterable[WatchedProcess]) -> None:
    """Raise RunFailed if a process has ended unexpectedly: a workload may end with exit code 0.
    Processes of the harness are checked last.
    """
    for each in sorted(watched, key=lambda each: each.is_harness):
        is_expected = each.end_requested or (each.role in WORKLOADS and each.process.poll() == 0)
        if not is_expected and (text := each.describe_exit()):
            raise RunFailed(text, harness_fault=each.is_harness)


def require_success(watched: Iterable[WatchedProcess], timeout_s: float) -> None:
    """Raise RunFailed, as a harness failure, unless all processes end in time with exit code 0."""
    for each in watched:
        code = each.process.wait(timeout_s)
        if code is None:
            raise RunFailed(
                f"{each.name} is still running after {timeout_s:g} s", harness_fault=True
            )
        if code:
            raise RunFailed(each.describe_exit(), harness_fault=True)


def wait_until_ready(
    waiting: Iterable[WatchedProcess],
    ready: Callable[[str], bool],
    *,
    required: Iterable[WatchedProcess],
    timeout_s: float,
) -> None:
    """Wait until each process has logged a line that the function `ready` accepts.

    Raises RunFailed with the last log lines if a process ends, or if one is not ready in time.
    """
    waiting, required = list(waiting), list(required)
    deadline_s = time.monotonic() + timeout_s
    while True:
        waiting = [each for each in waiting if not any(ready(line) for line in each.new_lines())]
        if not waiting:
            return
        require_alive([*required, *waiting])
        for each in waiting:
            if text := each.describe_exit():
                raise RunFailed(text, harness_fault=each.is_harness)
        if time.monotonic() > deadline_s:
            late = waiting[0].reports_for or waiting[0]
            last_lines = late.process.tail(3) or "its log is empty"
            text = f"{late.name} is not ready after {timeout_s:g} s: {last_lines}"
            raise RunFailed(text, harness_fault=late.is_harness)
        time.sleep(POLL_S)


def end(watched: Iterable[WatchedProcess], timeout_s: float) -> list[str]:
    """Send SIGTERM to all live processes, and kill those that do not end in time. Returns an error
    message for each killed process.
    """
    return [each.late_text for each in end_or_kill(watched, timeout_s)]


def end_or_kill(watched: Iterable[WatchedProcess], timeout_s: float) -> list[WatchedProcess]:
    """Send SIGTERM to all live processes, and kill those that do not end in time. Returns the
    killed processes.
    """
    living = [each for each in watched if each.process.poll() is None]
    for each in living:
        each.end_requested = True
        each.process.terminate()
    deadline_s = time.monotonic() + timeout_s
    late = []
    for each in living:
        if each.process.wait(max(0.0, deadline_s - time.monotonic())) is None:
            each.process.kill()
            each.late_s = timeout_s
            late.append(each)
    return late
