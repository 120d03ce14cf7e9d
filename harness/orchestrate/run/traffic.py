"""The traffic phase: waits until all workloads have ended, one of them fails, or the time budget is
exceeded.

    publisher   progress 1048576/67108864        bytes offered and accepted
    subscriber  progress  917504/67108864        bytes delivered

The time budget begins with a publisher's first progress line, which is printed once its publication
exists. Earlier work, such as compiling kernels on a machine's first run, does not count, but
waiting for a connection does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from windtunnel.harness.orchestrate.lab import Unsupported
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.run.host_events import HostEvents
from windtunnel.harness.orchestrate.subjects.subject import PROGRESS, UNSUPPORTED_EXIT_CODE

POLL_S = 0.05
PROGRESS_INTERVAL_S = 0.2
GRACE_S = 3.0
"""Time in which other workloads can end after one has failed, because their logs may help."""


class Awaited(Protocol):
    """Processes of the run, apart from workloads, that must end before it can."""

    @property
    def names_awaited(self) -> list[str]:
        """Return the names of the processes for which the run has to wait."""

    def update(self) -> None:
        """Raise RunFailed if one of the processes has failed."""


class Overran(Exception):
    """Raised if the traffic exceeded its time budget."""


class Progress:
    """Counts the bytes that have been published and delivered so far, according to the workloads'
    logs.
    """

    def __init__(self, workloads: Callable[[], Sequence[WatchedProcess]]) -> None:
        self._workloads = workloads
        self._bytes: dict[str, int] = {}
        self.begun = False

    def read(self) -> None:
        """Update the byte counts from new lines of the workloads' logs."""
        for each in self._workloads():
            for line in each.new_lines():
                count = progress_bytes(line)
                if count is not None:
                    self._bytes[each.name] = count
                    self.begun |= each.role == "publisher"

    def total(self, role: str) -> int:
        """Return the number of bytes that all current workloads with a role have reported in their
        logs.
        """
        workloads = self._workloads()
        return sum(self._bytes.get(each.name, 0) for each in workloads if each.role == role)


def progress_bytes(line: str) -> int | None:
    """Return N from a log line `progress N/TOTAL`, or None for any other line."""
    if not line.startswith(PROGRESS):
        return None
    count, slash, total = line.removeprefix(PROGRESS).strip().partition("/")
    return int(count) if slash and count.isdigit() and total.isdigit() else None


def wait_for_workloads(
    *,
    workloads: Callable[[], Sequence[WatchedProcess]],
    required: Callable[[], Sequence[WatchedProcess]],
    events: HostEvents,
    applications: Awaited,
    total_bytes: int,
    wall_s: float,
    start_s: float,
    emit: Callable[..., None],
) -> None:
    """Wait until all workloads have ended with exit code 0, no application is awaited and no host
    event is active. Without streams (`total_bytes` is 0), the time budget begins at once.

    `workloads` and `required` are called repeatedly, because an event may replace processes. Raises
    Overran, Unsupported or RunFailed in all other cases.
    """
    progress = Progress(workloads)
    deadline_s = time.monotonic() + start_s
    emitted_s = 0.0
    begun = total_bytes == 0
    if begun:
        deadline_s = time.monotonic() + wall_s
        events.begin()
    failed_s: float | None = None
    while True:
        progress.read()
        now_s = time.monotonic()
        if progress.begun and not begun:
            begun, deadline_s = True, now_s + wall_s
        events.update(progress.total("publisher"), progress.total("subscriber"))
        codes = {each.name: each.process.poll() for each in workloads()}
        applications.update()
        awaited = applications.names_awaited
        over = not events.is_active and not awaited
        over = over and all(code is not None for code in codes.values())
        if over:
            # Read the lines that were written between the last read and the exit.
            progress.read()
        if over or now_s - emitted_s >= PROGRESS_INTERVAL_S:
            emitted_s = now_s
            _emit_progress(progress, total_bytes, emit)
        if any(codes.values()):
            failed_s = failed_s or now_s
            if over or now_s - failed_s > GRACE_S:
                raise _failure(workloads())
        elif over:
            return
        watch.require_alive(required())
        if now_s > deadline_s:
            text = _timeout_text(workloads(), awaited, progress, total_bytes, wall_s)
            raise Overran(text) if begun else RunFailed(text, harness_fault=False)
        time.sleep(events.poll_delay_s(POLL_S))


def _emit_progress(progress: Progress, total_bytes: int, emit: Callable[..., None]) -> None:
    delivered = progress.total("subscriber")
    emit(
        kind="progress",
        phase="traffic",
        fraction=min(1.0, delivered / total_bytes) if total_bytes else None,
        published_bytes=progress.total("publisher"),
        delivered_bytes=delivered,
        total_bytes=total_bytes,
    )


def _failure(workloads: Sequence[WatchedProcess]) -> Exception:
    """Return the exception to raise for the first workload that failed."""
    for each in workloads:
        code = each.process.poll()
        if code == UNSUPPORTED_EXIT_CODE:
            return Unsupported(
                each.process.tail(1) or f"{each.name} does not support this scenario"
            )
        if code:
            return RunFailed(each.describe_exit(), harness_fault=False)
    raise AssertionError("no workload has failed")


def _timeout_text(
    workloads: Sequence[WatchedProcess],
    awaited: Sequence[str],
    progress: Progress,
    total_bytes: int,
    wall_s: float,
) -> str:
    names = [*(each.name for each in workloads if each.process.poll() is None), *awaited]
    living = ", ".join(names)
    if total_bytes == 0:
        return f"the budget of {wall_s:g} s is exceeded; still running: {living}"
    if not progress.begun:
        return f"no publisher has started; still running: {living}"
    return (
        f"the budget of {wall_s:g} s is exceeded; still running: {living}; "
        f"published {progress.total('publisher')} and delivered {progress.total('subscriber')} "
        f"of {total_bytes} bytes"
    )
