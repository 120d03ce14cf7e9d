"""A barrier that starts all publishers of a stream together, because a publisher that starts late
would never catch up, and once as many subscribers have joined as the scenario requires.

started --> each has its publication --> each is connected, and enough --> SIGUSR1 to all
                                 |       subscribers have joined
                        or the budget is exceeded, which the traffic phase then reports
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.subjects.subject import JOINED, PROGRESS, READY


def has_publication(line: str) -> bool:
    """Return whether a line in a publisher's log shows that its publication exists."""
    return line.startswith(PROGRESS) or _is_connected(line)


@dataclass(frozen=True)
class Barrier:
    """The publishers of one stream, and the subscribers of which `count` must join before these
    send.
    """

    stream: str
    publishers: Sequence[WatchedProcess]
    subscribers: Sequence[WatchedProcess] = ()
    count: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether all publishers may start."""
        return self._joined() >= self.count and all(map(_has_connected, self.publishers))

    def require_joined(self, wall_s: float) -> None:
        """Raise RunFailed if too few subscribers have joined."""
        joined = self._joined()
        if joined < self.count:
            text = f"stream {self.stream} starts with {self.count} subscribers, but only {joined}"
            text += f" have joined within the budget of {wall_s:g} s"
            raise RunFailed(text, harness_fault=False)

    def _joined(self) -> int:
        return sum(map(_has_joined, self.subscribers)) if self.count else 0


def release(
    barriers: Sequence[Barrier],
    *,
    required: Sequence[WatchedProcess],
    wall_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Let the publishers of each stream start to send as soon as its barrier is open. Waits up to
    `wall_s` seconds.

    The publications must already exist. Raises RunFailed if a required process has ended, or if too
    few subscribers have joined.
    """
    deadline_s = clock() + wall_s
    closed = list(barriers)
    while closed:
        is_late = clock() >= deadline_s
        for barrier in [each for each in closed if is_late or each.is_open]:
            barrier.require_joined(wall_s)
            closed.remove(barrier)
            for each in barrier.publishers:
                each.process.send_signal(signal.SIGUSR1)
        if closed:
            watch.require_alive(required)
            time.sleep(watch.POLL_S)


def _has_connected(publisher: WatchedProcess) -> bool:
    return any(map(_is_connected, _lines(publisher)))


def _has_joined(subscriber: WatchedProcess) -> bool:
    return JOINED in _lines(subscriber)


def _lines(workload: WatchedProcess) -> list[str]:
    # The whole log is read, because the lines may have been written before this call.
    return workload.log.read_text(errors="replace").splitlines()


def _is_connected(line: str) -> bool:
    return line.split(" ", 1)[0] == READY
