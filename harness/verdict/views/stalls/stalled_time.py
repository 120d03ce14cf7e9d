"""The stalls of a subscriber: times in which no message was delivered although one was due.

    delivered    m0                                                       m1
    message 1       due        sent   way            arrived
                    |-- window -------|-- repair ----|-- reader ----------|

The message that the subscriber waits for explains the stall: its publication did not accept it or
its driver did not send it (`window`), the link lost it (`repair`) or was slow (`link`), or it had
arrived and the application did not read it (`reader`). Time in which an event had stopped one of
the two hosts counts as `pause`. The shortest latency of the stream is not part of a stall, and a
link is slow only for what a frame needs in addition to the shortest way of the stream's frames.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.host_event import AppliedEvent
from windtunnel.harness.artifact.run.observed import Stall
from windtunnel.harness.dissect.driver_files.expected_log import NO_MESSAGE, ExpectedLog
from windtunnel.harness.verdict.views.reader_gaps import NEVER_NS, ReaderGaps

STALL_NS = 10_000_000
"""Shortest stall. Shorter ones are common where hosts share processors."""
WINDOW, REPAIR, LINK, READER, PAUSE = CAUSES = ("window", "repair", "link", "reader", "pause")


def stalls(
    gaps: ReaderGaps,
    log: ExpectedLog,
    messages: NDArray[np.int64],
    times_ns: NDArray[np.int64],
    due_ns: NDArray[np.int64],
    events: Sequence[AppliedEvent],
    ended_ns: int = 0,
) -> list[Stall]:
    """Return all stalls in the order of the deliveries that ended them.

    Shapes: messages, times_ns int64[n]: index and time of each delivered message, in order;
            due_ns int64[m]: time of each planned message's first offer
    Units:  `ended_ns`: when the subscriber stopped waiting for the message after the last one that
            it received, which never arrived, or 0 if there is none
    """
    base_ns = int((times_ns - due_ns[messages]).min())
    if ended_ns:
        messages = np.append(messages, messages.max() + 1)
        times_ns = np.append(times_ns, ended_ns)
    before_ns = np.concatenate([due_ns[messages[:1]], times_ns[:-1]])
    begin_ns = np.maximum(before_ns, due_ns[messages] + base_ns)
    way_ns, awaited_by = gaps.shortest_way_ns(), _awaited_by(log.frames["message"])
    found = []
    for stall in np.flatnonzero(times_ns - begin_ns >= STALL_NS).tolist():
        message = int(messages[stall])
        first, after = np.searchsorted(awaited_by, [message, message + 1])
        own = slice(int(first), int(after))
        way = REPAIR if gaps.is_lost[own].any() else LINK
        # A delivered message may follow frames that never arrived, whose gap was filled.
        never_ns = NEVER_NS if ended_ns and stall == len(times_ns) - 1 else 0
        arrived_ns = gaps.arrived_ns[own]
        arrived_ns = np.where(arrived_ns == NEVER_NS, never_ns, arrived_ns)
        ends_ns = [
            (WINDOW, min(int(gaps.sent_ns[own].max(initial=0)), int(times_ns[stall])) + way_ns),
            (way, int(arrived_ns.max(initial=0))),
            (READER, int(times_ns[stall])),
        ]
        at_ns = int(begin_ns[stall])
        causes: dict[str, int] = {}
        for cause, end_ns in ends_ns:
            end_ns = min(end_ns, int(times_ns[stall]))
            if end_ns > at_ns:
                paused_ns = _paused_ns(events, at_ns, end_ns)
                causes[PAUSE] = causes.get(PAUSE, 0) + paused_ns
                causes[cause] = causes.get(cause, 0) + end_ns - at_ns - paused_ns
                at_ns = end_ns
        found.append(Stall(int(begin_ns[stall]), int(times_ns[stall]), _occurred(causes)))
    return found


def stalled_ns(stalls: Sequence[Stall]) -> dict[str, int]:
    """Return how many nanoseconds deliveries stalled for each cause that occurred."""
    return _occurred({cause: sum(each.causes.get(cause, 0) for each in stalls) for cause in CAUSES})


def _occurred(by_cause: dict[str, int]) -> dict[str, int]:
    return {cause: by_cause[cause] for cause in CAUSES if by_cause.get(cause)}


def _awaited_by(of_message: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the message that each frame belongs to. A PAD is assigned to the next
    message.
    """
    after_all = np.iinfo(np.int64).max
    known = np.where(of_message == NO_MESSAGE, after_all, of_message)
    awaited: NDArray[np.int64] = np.minimum.accumulate(known[::-1])[::-1]
    return awaited


def _paused_ns(events: Sequence[AppliedEvent], from_ns: int, until_ns: int) -> int:
    """Return for how long at least one host event was active in a time range."""
    total_ns, at_ns = 0, from_ns
    for each in sorted(events, key=lambda each: each.began_ns):
        end_ns = min(each.ended_ns or NEVER_NS, until_ns)
        if end_ns > max(each.began_ns, at_ns):
            total_ns += end_ns - max(each.began_ns, at_ns)
            at_ns = end_ns
    return total_ns
