"""Finds a NAK that was repeated too late, if a receiver sends NAKs for all gaps at once.

    NAK ---- timeout, doubled with each NAK ----> NAK        while the position is missing

    timeout    the smoothed time from a NAK to its repair, plus four deviations, as in RFC 6298

A frame that arrives in the range of the NAK restarts the delay. The mode and its constants are
Windtunnel's: docs/loss-recovery.md.
"""

from bisect import bisect_right
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

TOLERANCE = 1.25
"""Of a timeout: the driver notices a repair, and sends a NAK, in the next turn of an agent."""
NOTICE_NS = 500_000
"""Time in which the driver notices a repair."""
MARGIN_SHARE = 16
DEVIATION_NS_MIN = 1_000_000
"""Minimum margin of a timeout. Source: docs/loss-recovery.md."""


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


def late_retry(
    wire: Wire, lost: Lost, pauses: Pauses, *, least_ns: int, slack_ns: int, is_group: bool
) -> str:
    """Return what is wrong if a NAK is not repeated in time, or "".

    `least_ns` is the delay that was configured, `slack_ns` what a delay may exceed.
    """
    own = [lost.naks_of(place) for place in lost.places.tolist()]
    known = _Known(*_timeouts(lost, own, is_group=is_group), least_ns)
    last_ns = int(wire.feedback_sent["time_ns"].max(initial=0))
    frame_ns, frames = wire.arrived.frames["time_ns"].astype(np.int64), wire.arrived.starts
    for place, came_ns, naks in zip(lost.places.tolist(), lost.came_ns.tolist(), own, strict=True):
        if len(naks) == 0:
            continue
        next_ns = np.minimum(np.append(lost.times_ns[naks[1:]], came_ns), min(came_ns, last_ns))
        for count, (nak, until_ns) in enumerate(zip(naks.tolist(), next_ns.tolist(), strict=True)):
            asked_ns = int(lost.times_ns[nak])
            due_ns = known.due_ns(asked_ns, count)
            if until_ns <= due_ns + slack_ns:
                continue
            inside = (frames >= lost.starts[nak]) & (frames < lost.ends[nak])
            began_ns = int(frame_ns[inside & (frame_ns < until_ns)].max(initial=asked_ns))
            due_ns = max(due_ns, known.due_ns(began_ns, count))
            waited_ns = due_ns - asked_ns + slack_ns
            due_ns = int(pauses.due_ns(np.array([asked_ns]), waited_ns)[0])
            if until_ns > due_ns:
                return (
                    f"NAK {count + 2} for position {place} was not sent until {waited_ns} ns after "
                    "the one before, while it was missing: the repairs until then allow a shorter "
                    "delay"
                )
    return ""


@dataclass(frozen=True)
class _Known:
    """What a driver knew of repairs over time, and the minimum of its retry delay."""

    times_ns: list[int]
    "When it measured repairs, in ascending order."
    timeouts_ns: list[int]
    "Its timeout before the first of these times, before the second one, and so on."
    least_ns: int

    def due_ns(self, asked_ns: int, doublings: int) -> int:
        """Return when a NAK must be repeated that was sent at `asked_ns`, or whose range a frame
        reached then.
        """
        known = bisect_right(self.times_ns, asked_ns - NOTICE_NS)
        latest = bisect_right(self.times_ns, asked_ns)
        timeout_ns = max(self.timeouts_ns[known : latest + 1])
        due_ns = asked_ns + _delay_ns(timeout_ns, doublings, self.least_ns)
        if known == 0 and self.times_ns:
            # The first measurement replaces what was assumed, if it is shorter.
            replaced_ns = asked_ns + _delay_ns(self.timeouts_ns[1], doublings, self.least_ns)
            due_ns = min(due_ns, max(replaced_ns, self.times_ns[0]))
        return due_ns


def _timeouts(
    lost: Lost, own: list[NDArray[np.intp]], *, is_group: bool
) -> tuple[list[int], list[int]]:
    """Return when the driver measured repairs, in ascending order, and its longest timeout before
    the first of these times, before the second one, and so on.

    It measures the first repair, and each repair of the first byte of a NAK that was not repeated.
    In a group, other receivers' NAKs make some of them unknown. There, the limit is three times the
    longest repair of all: the first deviation is half of the first time, and no later error is
    longer than the longest one.
    """
    repairs: list[tuple[int, int, bool]] = []
    for place, came_ns, naks in zip(lost.places.tolist(), lost.came_ns.tolist(), own, strict=True):
        before = naks[lost.times_ns[naks] < came_ns]
        if len(before) and (lost.starts[before] == place).any():
            took_ns = min(came_ns - int(lost.times_ns[before[0]]), REPAIR_NS_MAX)
            repairs.append((came_ns, took_ns, len(before) == 1))
    times_ns: list[int] = []
    timeouts_ns = [INITIAL_REPAIR_NS]
    smoothed_ns = deviation_ns = longest_ns = 0.0
    for came_ns, took_ns, is_single in sorted(repairs):
        if not times_ns:
            smoothed_ns, deviation_ns = took_ns, took_ns / 2
        elif is_single:
            deviation_ns += (abs(took_ns - smoothed_ns) - deviation_ns) / 4
            smoothed_ns += (took_ns - smoothed_ns) / 8
        else:
            continue
        longest_ns = max(longest_ns, took_ns)
        margin_ns = max(4 * deviation_ns, smoothed_ns / MARGIN_SHARE, DEVIATION_NS_MIN)
        timeouts_ns.append(int((smoothed_ns + margin_ns) * TOLERANCE))
        times_ns.append(came_ns)
    if is_group:
        timeouts_ns[1:] = [int(3 * longest_ns)] * len(times_ns)
    return times_ns, timeouts_ns


def _delay_ns(timeout_ns: int, doublings: int, least_ns: int) -> int:
    doubled_ns = min(timeout_ns << min(doublings, DOUBLINGS_MAX), RETRY_NS_MAX)
    return max(timeout_ns, doubled_ns, least_ns)
