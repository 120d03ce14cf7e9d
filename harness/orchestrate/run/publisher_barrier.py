"""Publishers of one stream begin together: whoever came late would never catch up.

started --> each has its publication --> each is connected --> SIGUSR1 to all
                                 |
                        or the budget is over: the traffic's own watch then says so
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence

from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import Watched
from windtunnel.harness.orchestrate.subjects.subject import PROGRESS, READY


def has_publication(line: str) -> bool:
    """Whether a line of a publisher's log says that it has come so far."""
    return line.startswith(PROGRESS) or _is_connected(line)


def let_begin(
    twins: Sequence[Watched],
    *,
    wanted: Sequence[Watched],
    wall_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until each is connected, at most so long, and let all begin.

    Every one must have its publication already; raises RunFailed if one of the wanted has ended.
    """
    deadline_s = clock() + wall_s
    while not all(_has_said_so(each) for each in twins) and clock() < deadline_s:
        watch.require_alive(wanted)
        time.sleep(watch.POLL_S)
    for each in twins:
        each.process.tell(signal.SIGUSR1)


def _has_said_so(publisher: Watched) -> bool:
    # The whole log is read: both things may have been said before anybody looked.
    said = publisher.log.read_text(errors="replace").splitlines()
    return any(_is_connected(line) for line in said)


def _is_connected(line: str) -> bool:
    return line.split(" ", 1)[0] == READY
