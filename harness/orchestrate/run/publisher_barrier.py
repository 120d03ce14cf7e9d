"""A barrier that starts all publishers of a stream together, because a publisher that starts late
would never catch up.

started --> each has its publication --> each is connected --> SIGUSR1 to all
                                 |
                        or the budget is exceeded, which the traffic phase then reports
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence

from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import WatchedProcess
from windtunnel.harness.orchestrate.subjects.subject import PROGRESS, READY


def has_publication(line: str) -> bool:
    """Return whether a line in a publisher's log shows that its publication exists."""
    return line.startswith(PROGRESS) or _is_connected(line)


def release(
    publishers: Sequence[WatchedProcess],
    *,
    required: Sequence[WatchedProcess],
    wall_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait up to `wall_s` seconds until all publishers are connected, then let all of them start to
    send.

    Their publications must already exist. Raises RunFailed if a required process has ended.
    """
    deadline_s = clock() + wall_s
    while not all(_has_connected(each) for each in publishers) and clock() < deadline_s:
        watch.require_alive(required)
        time.sleep(watch.POLL_S)
    for each in publishers:
        each.process.send_signal(signal.SIGUSR1)


def _has_connected(publisher: WatchedProcess) -> bool:
    # The whole log is read, because both lines may have been written before this call.
    lines = publisher.log.read_text(errors="replace").splitlines()
    return any(_is_connected(line) for line in lines)


def _is_connected(line: str) -> bool:
    return line.split(" ", 1)[0] == READY
