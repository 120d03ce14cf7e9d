"""Finds the NAK that was repeated too late, if a receiver sends NAKs for all gaps at once.

    NAK ---- at most 3 R, doubled with each NAK ----> NAK        while the position is missing
             R  the longest time from a position's first NAK to its repair

RFC 6298's timeout, the smoothed time plus four deviations, is at most three times its longest
sample: the first deviation is half of the first sample, and no later error exceeds the longest one.
A frame that arrives in the range of the NAK restarts the delay.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.verdict.checks.retransmission.all_gaps import (
    DOUBLINGS_MAX,
    INITIAL_REPAIR_NS,
    REPAIR_NS_MAX,
    RETRY_NS_MAX,
)
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.pauses import Pauses

TIMES = 3
"""Longest timeout, in longest repair times."""


@dataclass(frozen=True)
class Lost:
    """The positions that were missing, and the NAKs."""

    places: NDArray[np.int64]
    came_ns: NDArray[np.int64]
    "When the frame at each position arrived first."
    times_ns: NDArray[np.int64]
    "Times of the NAKs, in ascending order."
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def naks_of(self, place: int) -> NDArray[np.intp]:
        """Return the indices of the NAKs that ask for a position."""
        return np.flatnonzero((self.starts <= place) & (place < self.ends))


def late_retry(wire: Wire, lost: Lost, least_ns: int, slack_ns: int, pauses: Pauses) -> str:
    """Return what is wrong if a NAK is not repeated in time, or "".

    `least_ns` is the delay that was configured, `slack_ns` what a delay may exceed.
    """
    own = [lost.naks_of(place) for place in lost.places.tolist()]
    known_ns, longest_ns = _longest_repairs(lost, own)
    last_ns = int(wire.feedback_sent["time_ns"].max(initial=0))
    frame_ns, frames = wire.arrived.frames["time_ns"].astype(np.int64), wire.arrived.starts
    for place, came_ns, naks in zip(lost.places.tolist(), lost.came_ns.tolist(), own, strict=True):
        if len(naks) == 0:
            continue
        next_ns = np.minimum(np.append(lost.times_ns[naks[1:]], came_ns), min(came_ns, last_ns))
        for count, (nak, until_ns) in enumerate(zip(naks.tolist(), next_ns.tolist(), strict=True)):
            known = int(np.searchsorted(known_ns, until_ns))
            delay_ns = _delay_ns(longest_ns[known], count, least_ns)
            asked_ns = int(lost.times_ns[nak])
            if until_ns <= asked_ns + delay_ns + slack_ns:
                continue
            inside = (frames >= lost.starts[nak]) & (frames < lost.ends[nak])
            began_ns = int(frame_ns[inside & (frame_ns < until_ns)].max(initial=asked_ns))
            if known and asked_ns < known_ns[0]:
                # Until then, a repair was assumed to take INITIAL_REPAIR_NS.
                assumed_ns = asked_ns + _delay_ns(INITIAL_REPAIR_NS, count, least_ns)
                began_ns = max(began_ns, min(assumed_ns, known_ns[0]) - delay_ns)
            due_ns = int(pauses.due_ns(np.array([began_ns]), delay_ns + slack_ns)[0])
            if until_ns > due_ns:
                return (
                    f"NAK {count + 2} for position {place} was not sent until {due_ns - asked_ns} "
                    f"ns after the one before, while it was missing; {longest_ns[known]} ns was "
                    "the longest repair"
                )
    return ""


def _longest_repairs(lost: Lost, own: list[NDArray[np.intp]]) -> tuple[list[int], list[int]]:
    """Return when the driver measured repairs, in ascending order, and the longest one before the
    first of these times, before the second one, and so on.

    It measures the first repair, and each repair that follows one NAK.
    """
    repairs: list[tuple[int, int, bool]] = []
    for came_ns, naks in zip(lost.came_ns.tolist(), own, strict=True):
        before_ns = lost.times_ns[naks][lost.times_ns[naks] < came_ns]
        if len(before_ns):
            repairs.append((came_ns, came_ns - int(before_ns[0]), len(before_ns) == 1))
    times_ns: list[int] = []
    longest_ns = [INITIAL_REPAIR_NS]
    for came_ns, took_ns, is_single in sorted(repairs):
        if not times_ns or is_single:
            took_ns = min(took_ns, REPAIR_NS_MAX)
            longest_ns.append(max(took_ns, longest_ns[-1]) if times_ns else took_ns)
            times_ns.append(came_ns)
    return times_ns, longest_ns


def _delay_ns(repair_ns: int, doublings: int, least_ns: int) -> int:
    timeout_ns = repair_ns if repair_ns == INITIAL_REPAIR_NS else TIMES * repair_ns
    doubled_ns = min(timeout_ns << min(doublings, DOUBLINGS_MAX), RETRY_NS_MAX)
    return max(timeout_ns, doubled_ns, least_ns)
