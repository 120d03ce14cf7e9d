"""Finds a NAK that was repeated too late or too early, if a receiver sends NAKs for all gaps.

    NAK ---- timeout, doubled with each NAK ----> NAK        while the position is missing

    timeout    the smoothed time from a NAK to its repair, plus four deviations, as in RFC 6298

A frame that arrives in the range of the NAK restarts the delay, and the end of a silence ends the
doublings. A simulated driver measures repairs nearly as the capture does, except if a frame arrives
at the time of its NAK: from then on, only the wider limit holds. In a group, other receivers' NAKs
make the times unknown. The mode and its constants are Windtunnel's: docs/loss-recovery.md.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.verdict.checks.retransmission.all_gaps import (
    DOUBLINGS_MAX,
    INITIAL_REPAIR_NS,
    REPAIR_NS_MAX,
    RETRY_NS_MAX,
    SILENCE_NS,
)
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.pauses import Pauses
from windtunnel.harness.verdict.views.series import END_OF_TIME_NS

TOLERANCE = 1.02
"""Of a timeout: the driver notices a repair, and sends a NAK, in the next turn of an agent. In
simulations, the capture's timeout was at most 0.7 % shorter than the driver's."""
UNSURE_TOLERANCE = 1.25
"""The same if a repair may not have been measured."""
EARLY_SHARE, EARLY_NS = 0.995, 150_000
"""A NAK is early if its delay is shorter than this share of the timeout, less this time."""
SAME_NS = 100_000
"""Times that a driver may have seen in either order. NAKs on two paths also leave so soon after
each other."""
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
    sure, unsure = (
        _Known(*_timeouts(lost, own, each, is_group=is_group), least_ns)
        for each in (TOLERANCE, UNSURE_TOLERANCE)
    )
    sure_ns = _sure_until_ns(lost, own)
    last_ns = int(wire.feedback_sent["time_ns"].max(initial=0))
    frame_ns, frames = wire.arrived.frames["time_ns"].astype(np.int64), wire.arrived.starts
    for place, came_ns, naks in zip(lost.places.tolist(), lost.came_ns.tolist(), own, strict=True):
        if len(naks) == 0:
            continue
        next_ns = np.minimum(np.append(lost.times_ns[naks[1:]], came_ns), min(came_ns, last_ns))
        for count, (nak, until_ns) in enumerate(zip(naks.tolist(), next_ns.tolist(), strict=True)):
            asked_ns = int(lost.times_ns[nak])
            known = sure if until_ns < sure_ns else unsure
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


def early_retry(wire: Wire, lost: Lost, *, least_ns: int) -> str:
    """Return what is wrong if one receiver repeats a NAK too early, or ""."""
    own = [lost.naks_of(place) for place in lost.places.tolist()]
    times_ns, timeouts_ns = _timeouts(lost, own, EARLY_SHARE, is_group=False)
    known = _Known(times_ns, timeouts_ns, least_ns)
    sure_ns, silences_ns = _sure_until_ns(lost, own), _silences_ns(wire)
    for place, naks in zip(lost.places.tolist(), own, strict=True):
        asked = lost.times_ns[naks].tolist()
        for count, (asked_ns, again_ns) in enumerate(pairwise(asked)):
            ended = bisect_right(silences_ns, again_ns) - bisect_right(silences_ns, asked[0])
            if ended or again_ns >= sure_ns or again_ns - asked_ns <= SAME_NS:
                continue
            delay_ns = known.least_delay_ns(asked_ns, again_ns, count) - EARLY_NS
            if again_ns - asked_ns < delay_ns:
                return (
                    f"NAK {count + 2} for position {place} was sent {again_ns - asked_ns} ns after "
                    f"the one before, expected {delay_ns} ns at least, as long as the repairs "
                    "until then took"
                )
    return ""


def _sure_until_ns(lost: Lost, own: list[NDArray[np.intp]]) -> int:
    """Return the first time at which a driver may have sent a NAK before or after its repair."""
    found = [END_OF_TIME_NS]
    for place, came_ns, naks in zip(lost.places.tolist(), lost.came_ns.tolist(), own, strict=True):
        starting = naks[lost.starts[naks] == place]
        if (np.abs(lost.times_ns[starting] - came_ns) <= SAME_NS).any():
            found.append(came_ns - SAME_NS)
    return min(found)


def _silences_ns(wire: Wire) -> list[int]:
    """Return when packets of the stream arrived after a silence."""
    frames_ns = wire.arrived.frames["time_ns"].astype(np.int64)
    packets_ns = np.sort(np.concatenate([frames_ns, wire.heartbeat_times_ns]))
    found: list[int] = packets_ns[1:][np.diff(packets_ns) >= SILENCE_NS].tolist()
    return found


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

    def least_delay_ns(self, asked_ns: int, again_ns: int, doublings: int) -> int:
        """Return the shortest delay between NAKs that were sent at two times."""
        first = bisect_right(self.times_ns, asked_ns - NOTICE_NS)
        last = bisect_right(self.times_ns, asked_ns)
        if first == 0:
            # The first measurements replace what was assumed.
            last = bisect_right(self.times_ns, again_ns)
        timeout_ns = min(self.timeouts_ns[first : last + 1])
        return _delay_ns(timeout_ns, doublings, self.least_ns)


def _timeouts(
    lost: Lost, own: list[NDArray[np.intp]], tolerance: float, *, is_group: bool
) -> tuple[list[int], list[int]]:
    """Return when the driver measured repairs, in ascending order, and its timeout before the first
    of these times, before the second one, and so on, multiplied by a tolerance.

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
        timeouts_ns.append(int((smoothed_ns + margin_ns) * tolerance))
        times_ns.append(came_ns)
    if is_group:
        timeouts_ns[1:] = [int(3 * longest_ns)] * len(times_ns)
    return times_ns, timeouts_ns


def _delay_ns(timeout_ns: int, doublings: int, least_ns: int) -> int:
    doubled_ns = min(timeout_ns << min(doublings, DOUBLINGS_MAX), RETRY_NS_MAX)
    return max(timeout_ns, doubled_ns, least_ns)
