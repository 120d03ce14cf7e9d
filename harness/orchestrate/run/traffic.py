"""The traffic phase: watch workloads until all have ended, the budget is over, or someone dies.

    publisher   progress 1048576/67108864        bytes offered and accepted
    subscriber  progress  917504/67108864        bytes delivered

The wall budget counts from the first progress of a publisher, which tells it when its publication
is there: what a process does before, such as compiling its kernels on a machine's first run, is not
the stream's fault, but that a stream never connects is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import RunFailed, Watched
from windtunnel.harness.orchestrate.run.host_events import HostEvents
from windtunnel.harness.orchestrate.subjects.subject import PROGRESS, UNSUPPORTED_EXIT_CODE

POLL_S = 0.05
TELL_S = 0.2
GRACE_S = 3.0
"""How long the others may go on after a workload has failed: they may have something to say."""


class Unsupported(Exception):
    """The subject says that it cannot do what the scenario asks for."""


class Overran(Exception):
    """The traffic's budget is over before its end."""


class Progress:
    """Bytes published and delivered so far, as the workloads tell."""

    def __init__(self, workloads: Callable[[], Sequence[Watched]]) -> None:
        self._workloads = workloads
        self._bytes: dict[str, int] = {}
        self.begun = False

    def read(self) -> None:
        for each in self._workloads():
            for line in each.new_lines():
                count = progress_bytes(line)
                if count is not None:
                    self._bytes[each.name] = count
                    self.begun |= each.role == "publisher"

    def total(self, role: str) -> int:
        """Of all that live or have come to their end, in bytes."""
        workloads = self._workloads()
        return sum(self._bytes.get(each.name, 0) for each in workloads if each.role == role)


def progress_bytes(line: str) -> int | None:
    """Return N of a line `progress N/TOTAL`, or None for any other line."""
    if not line.startswith(PROGRESS):
        return None
    count, slash, total = line.removeprefix(PROGRESS).strip().partition("/")
    return int(count) if slash and count.isdigit() and total.isdigit() else None


def watch_to_the_end(
    *,
    workloads: Callable[[], Sequence[Watched]],
    wanted: Callable[[], Sequence[Watched]],
    events: HostEvents,
    total_bytes: int,
    wall_s: float,
    start_s: float,
    tell: Callable[..., None],
) -> None:
    """Return when all workloads have ended well and no event is under way.

    Who works and who is wanted is asked again and again: an event may replace them. Raises
    Overran, Unsupported or RunFailed in any other case.
    """
    progress = Progress(workloads)
    deadline_s = time.monotonic() + start_s
    told_s = 0.0
    begun = False
    failed_s: float | None = None
    while True:
        progress.read()
        now_s = time.monotonic()
        if progress.begun and not begun:
            begun, deadline_s = True, now_s + wall_s
        events.look(progress.total("publisher"), progress.total("subscriber"))
        codes = {each.name: each.process.poll() for each in workloads()}
        over = not events.is_under_way and all(code is not None for code in codes.values())
        if over:
            # What they said between the look at their logs and their end.
            progress.read()
        if over or now_s - told_s >= TELL_S:
            told_s = now_s
            _tell_progress(progress, total_bytes, tell)
        if any(codes.values()):
            failed_s = failed_s or now_s
            if over or now_s - failed_s > GRACE_S:
                raise _failure(workloads())
        elif over:
            return
        watch.require_alive(wanted())
        if now_s > deadline_s:
            text = _late(workloads(), progress, total_bytes, wall_s)
            raise Overran(text) if begun else RunFailed(text, ours=False)
        time.sleep(events.patience_s(POLL_S))


def _tell_progress(progress: Progress, total_bytes: int, tell: Callable[..., None]) -> None:
    delivered = progress.total("subscriber")
    tell(
        kind="progress",
        phase="traffic",
        fraction=min(1.0, delivered / total_bytes) if total_bytes else None,
        published_bytes=progress.total("publisher"),
        delivered_bytes=delivered,
        total_bytes=total_bytes,
    )


def _failure(workloads: Sequence[Watched]) -> Exception:
    """Return the exception for the first workload that ended badly."""
    for each in workloads:
        code = each.process.poll()
        if code == UNSUPPORTED_EXIT_CODE:
            return Unsupported(each.process.tail(1) or f"{each.name} says that it cannot do this")
        if code:
            return RunFailed(each.died(), ours=False)
    raise AssertionError("no workload has failed")


def _late(
    workloads: Sequence[Watched],
    progress: Progress,
    total_bytes: int,
    wall_s: float,
) -> str:
    living = ", ".join(each.name for each in workloads if each.process.poll() is None)
    if not progress.begun:
        return f"no publisher has begun; still at work: {living}"
    return (
        f"the budget of {wall_s:g} s is over; still at work: {living}; "
        f"published {progress.total('publisher')} and delivered {progress.total('subscriber')} "
        f"of {total_bytes} bytes"
    )
