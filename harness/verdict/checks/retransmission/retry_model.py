"""What a receiver with NAKs for all gaps knew of repair times, according to its host's capture.

    NAK ---- repair time ----> first byte of its range       smoothed as in RFC 6298

    timeout    the smoothed time, plus four deviations, or a sixteenth, or 1 ms

A simulated driver measures repairs nearly as the capture does, except if a frame arrives at the
time of its NAK. In a group, other receivers' NAKs make the times unknown. The mode and its
constants are Windtunnel's: docs/loss-recovery.md.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.verdict.checks.retransmission.all_gaps import (
    DOUBLINGS_MAX,
    INITIAL_REPAIR_NS,
    NEVER_NS,
    REPAIR_NS_MAX,
    RETRY_NS_MAX,
)
from windtunnel.harness.verdict.core.wire import Wire

SAME_NS = 100_000
"""Times that a driver may have seen in either order. NAKs on two paths also leave so soon after
each other."""
NOTICE_NS = 500_000
"""Time in which the driver notices a repair."""
GAPS_MAX = 1_024
"""Maximum number of gaps that a receiver tracks. Source: docs/loss-recovery.md."""
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

    def progress_ns(self, wire: Wire, nak: int, place: int, until_ns: int) -> int | None:
        """Return the last time before `until_ns` at which the first missing byte of a NAK's range
        arrived, while `place` was missing, or that of the NAK. None if bytes before `place` never
        arrived.
        """
        begin, asked_ns = int(self.starts[nak]), int(self.times_ns[nak])
        arrived = wire.arrived
        inside = (arrived.starts >= begin) & (arrived.starts < place)
        covered = np.unique(np.stack([arrived.starts[inside], arrived.ends[inside]]), axis=1)
        if int((covered[1] - covered[0]).sum()) != place - begin:
            return None
        low, high = np.searchsorted(self.places, [begin, place])
        reached_ns = np.maximum.accumulate(self.came_ns[low:high])
        return int(reached_ns[reached_ns < until_ns].max(initial=asked_ns))

    def came_at(self, place: int) -> int:
        """Return when the frame at a missing position arrived, or NEVER_NS."""
        at = int(np.searchsorted(self.places, place))
        is_known = at < len(self.places) and self.places[at] == place
        return int(self.came_ns[at]) if is_known else NEVER_NS

    def naks_of(self, place: int) -> NDArray[np.intp]:
        """Return the indices of the NAKs that request a position."""
        return np.flatnonzero((self.starts <= place) & (place < self.ends))


@dataclass(frozen=True)
class Known:
    """What a driver knew of repairs over time, and the minimum of its retry delay."""

    times_ns: list[int]
    "When it measured repairs, in ascending order."
    timeouts_ns: list[int]
    "Its timeout before the first of these times, before the second one, and so on."
    least_ns: int

    def due_ns(self, asked_ns: int, doublings: int, *, is_measured: bool = False) -> int:
        """Return when a NAK must be repeated that was sent at `asked_ns`, or whose range a frame
        reached then. `is_measured` means that this was its own repair, if that was measured.
        """
        known = bisect_right(self.times_ns, asked_ns - NOTICE_NS)
        own = bisect_left(self.times_ns, asked_ns)
        if is_measured and asked_ns in self.times_ns[own : own + 1]:
            known = own + 1
        latest = bisect_right(self.times_ns, asked_ns)
        timeout_ns = max(self.timeouts_ns[known : latest + 1])
        due_ns = asked_ns + _delay_ns(timeout_ns, doublings, self.least_ns)
        if known == 0 and self.times_ns:
            # The first measurement replaces what was assumed, if it is shorter.
            replaced_ns = asked_ns + _delay_ns(self.timeouts_ns[1], doublings, self.least_ns)
            due_ns = min(due_ns, max(replaced_ns, self.times_ns[0]))
        return due_ns

    def least_delay_ns(self, asked_ns: int, again_ns: int, doublings: int) -> int:
        """Return the shortest delay between NAKs that were sent at two times."""
        first = bisect_right(self.times_ns, asked_ns - NOTICE_NS)
        last = bisect_right(self.times_ns, asked_ns)
        if first == 0:
            # The first measurements replace what was assumed.
            last = bisect_right(self.times_ns, again_ns)
        timeout_ns = min(self.timeouts_ns[first : last + 1])
        return _delay_ns(timeout_ns, doublings, self.least_ns)

    def restarted_delay_ns(self, began_ns: int, doublings: int) -> int:
        """Return the shortest delay after a frame at the begin of a gap."""
        first = bisect_right(self.times_ns, began_ns - NOTICE_NS)
        last = bisect_right(self.times_ns, began_ns + NOTICE_NS)
        return _delay_ns(min(self.timeouts_ns[first : last + 1]), doublings, self.least_ns)


def timeouts(
    lost: Lost, own: list[NDArray[np.intp]], tolerance: float, *, is_group: bool
) -> tuple[list[int], list[int]]:
    """Return when the driver measured repairs, in ascending order, and its timeout before the first
    of these times, before the second one, and so on, multiplied by a tolerance.

    It measures the first repair, and each repair of the first byte of a NAK that was not repeated.
    In a group, other receivers' NAKs make some of them unknown. There, the limit is three times the
    longest repair of all: the first deviation is half of the first time, and no later error is
    longer than the longest one. The minimum of the margin may be longer.
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
        timeouts_ns.append(int((smoothed_ns + margin_ns) * tolerance))
        times_ns.append(came_ns)
    if is_group:
        most_ns = max(3 * longest_ns, longest_ns + DEVIATION_NS_MIN)
        timeouts_ns[1:] = [int(most_ns)] * len(times_ns)
    return times_ns, timeouts_ns


def _delay_ns(timeout_ns: int, doublings: int, least_ns: int) -> int:
    doubled_ns = min(timeout_ns << min(doublings, DOUBLINGS_MAX), RETRY_NS_MAX)
    return max(timeout_ns, doubled_ns, least_ns)


def sure_until_ns(lost: Lost, own: list[NDArray[np.intp]]) -> int:
    """Return the first time at which a driver may have sent a NAK before or after its repair, or
    NEVER_NS if it may not have had a row for each gap.
    """
    if len(lost.places) >= GAPS_MAX:
        return NEVER_NS
    found = [END_OF_TIME_NS]
    for place, came_ns, naks in zip(lost.places.tolist(), lost.came_ns.tolist(), own, strict=True):
        starting = naks[lost.starts[naks] == place]
        if (np.abs(lost.times_ns[starting] - came_ns) <= SAME_NS).any():
            found.append(came_ns - SAME_NS)
    return min(found)
