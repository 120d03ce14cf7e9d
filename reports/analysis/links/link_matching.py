"""Which passage of a frame at one point is which arrival at the next.

    position 4096   sends     s1 ........ s2            sent again: the same bytes
                    arrivals         a1       a2

Most positions pass once and arrive once. Where there are more, a passage that nothing disturbed
arrives between its neighbours, which were sent just before and just behind it. What is left came
late, the oldest passage first; or it is a copy right behind its original, if this link is known by
other frames both to lose and to copy: one fault is likelier than two. Where passages differ in the
number of their packet, and arrivals have the same numbers, nothing is left to guess. Positions are
looked at together with all their passages, so the answer does not depend on the order of reading.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from windtunnel.harness.dissect.frames.wire_frame import NO_IDENTIFICATION

LOST = -1
_NEIGHBOURS = 8
_SLACK = 8
"""Places in the order of arrival that neighbours may be apart."""
_COPY_PLACES = 4
_COPY_NS = 1_000_000
"""Within which a copy follows its original."""
_EARLY_NS = 20_000
"""By how much a clock may be wrong where ways were compared."""


@dataclass(frozen=True)
class Hop:
    """Sends (m) and arrivals (n) of some positions, each in capture order."""

    arrival_of: Any
    "int64[m]: index of the arrival, or LOST."
    send_of: Any
    "int64[n]: index of the send that arrived, of a copy that of its original; LOST if none was."
    is_copy: Any
    "bool[n]"
    copies: Any
    "int64[m]: how many copies of it arrived beside itself."
    extents: Any
    "int64[n]: RFC 4737's extent by the order of sending; 0 of those in order."
    late_ns: Any
    "int64[n]: since the first that overtook it; 0 of those in order."
    delays_ns: Any
    "int64[m]: 0 of the lost."
    lengths: Any
    "int64[m]: bytes of the stream."
    is_ambiguous: Any
    "bool[n]: another send would explain it as well."


def match(sends: Any, arrivals: Any, correction_ns: int) -> Hop:
    """Match the passages at two points.

    Shapes:  records with `position`, `time_ns`, `length`, `identification`, each in capture order
    """
    arrival_of = np.full(len(sends), LOST, dtype=np.int64)
    send_of = np.full(len(arrivals), LOST, dtype=np.int64)
    is_copy = np.zeros(len(arrivals), dtype=np.bool_)
    is_ambiguous = np.zeros(len(arrivals), dtype=np.bool_)
    times = arrivals["time_ns"] - correction_ns
    by_position = np.argsort(sends["position"], kind="stable")
    arrived = np.argsort(arrivals["position"], kind="stable")
    known, first, sent_counts = np.unique(
        sends["position"][by_position], return_index=True, return_counts=True
    )
    at = np.searchsorted(arrivals["position"][arrived], known, side="left")
    end = np.searchsorted(arrivals["position"][arrived], known, side="right")
    once = np.flatnonzero((sent_counts == 1) & (end > at))
    originals = by_position[first[once]]
    arrival_of[originals] = arrived[at[once]]
    send_of[arrived[at[once]]] = originals
    for index in once[(end - at)[once] > 1]:
        more = arrived[at[index] + 1 : end[index]]
        send_of[more] = by_position[first[index]]
        is_copy[more] = True
    has_copies = bool(((end - at)[once] > 1).any())
    may_copy = has_copies and bool((end - at < sent_counts).any())
    spine = np.sort(originals[(end - at)[once] == 1])
    neighbours = _Neighbours(spine, arrival_of[spine])
    for index in np.flatnonzero((sent_counts > 1) & (end > at)):
        which = by_position[first[index] : first[index] + sent_counts[index]]
        those = arrived[at[index] : end[index]]
        numbers = sends["identification"][which], arrivals["identification"][those]
        if _match_numbered(which, those, *numbers, arrival_of, send_of, is_copy):
            continue
        _match_several(
            which, those, sends["time_ns"], times, neighbours, may_copy, arrival_of, send_of,
            is_copy, is_ambiguous,
        )  # fmt: skip
    copies = np.bincount(send_of[is_copy], minlength=len(sends)).astype(np.int64)
    extents, late_ns = _disorder(send_of, is_copy, times)
    delays = np.zeros(len(sends), dtype=np.int64)
    came = arrival_of != LOST
    delays[came] = times[arrival_of[came]] - sends["time_ns"][came]
    return Hop(
        arrival_of, send_of, is_copy, copies, extents, late_ns, delays, sends["length"],
        is_ambiguous,
    )  # fmt: skip


class _Neighbours:
    """Where a passage would have arrived if nothing had happened to it."""

    def __init__(self, sends: Any, arrivals: Any) -> None:
        self._sends, self._arrivals = sends, arrivals

    def span(self, send: int) -> tuple[float, float]:
        """Between which arrivals."""
        at = int(np.searchsorted(self._sends, send))
        before = self._arrivals[max(0, at - _NEIGHBOURS) : at]
        behind = self._arrivals[at : at + _NEIGHBOURS]
        low = float(np.median(before)) if len(before) else -np.inf
        high = float(np.median(behind)) if len(behind) else np.inf
        return low - _SLACK, high + _SLACK


def _match_numbered(
    sends: Any, arrivals: Any, sent_numbers: Any, came_numbers: Any, arrival_of: Any, send_of: Any,
    is_copy: Any,
) -> bool:  # fmt: skip
    """Match passages by the numbers of their packets if those tell; the last three are written."""
    by_number = {int(number): int(send) for number, send in zip(sent_numbers, sends, strict=True)}
    is_told = len(by_number) == len(sends) and NO_IDENTIFICATION not in by_number
    if not is_told or not set(came_numbers.tolist()) <= by_number.keys():
        return False
    for number, arrival in zip(came_numbers.tolist(), arrivals.tolist(), strict=True):
        send = by_number[number]
        send_of[arrival] = send
        if arrival_of[send] == LOST:
            arrival_of[send] = arrival
        else:
            is_copy[arrival] = True
    return True


def _match_several(
    sends: Any, arrivals: Any, sent_ns: Any, times: Any, neighbours: _Neighbours, may_copy: bool,
    arrival_of: Any, send_of: Any, is_copy: Any, is_ambiguous: Any,
) -> None:  # fmt: skip
    """Match several passages of one position; the last four arrays are written."""
    spans = {int(send): neighbours.span(int(send)) for send in sends}
    free = [int(send) for send in sends]
    matched: list[tuple[int, int]] = []
    left = []
    for arrival in (int(each) for each in arrivals):
        possible = [send for send in free if sent_ns[send] <= times[arrival] + _EARLY_NS]
        in_turn = [send for send in possible if spans[send][0] <= arrival <= spans[send][1]]
        if in_turn:
            free.remove(in_turn[-1])
            matched.append((in_turn[-1], arrival))
            is_ambiguous[arrival] = len(in_turn) > 1
        else:
            left.append(arrival)
    for arrival in left:
        possible = [send for send in free if sent_ns[send] <= times[arrival] + _EARLY_NS]
        close = [send for send, other in matched if _is_behind(arrival, other, times)]
        if (close and may_copy) or not possible:
            origin = close[-1] if close else _nearest(matched, sends, sent_ns, times[arrival])
            send_of[arrival], is_copy[arrival] = origin, True
            continue
        free.remove(possible[0])
        matched.append((possible[0], arrival))
        is_ambiguous[arrival] = len(possible) > 1
    for send, arrival in matched:
        arrival_of[send], send_of[arrival] = arrival, send


def _is_behind(arrival: int, other: int, times: Any) -> bool:
    """Whether an arrival follows another as a copy does."""
    return 0 < arrival - other <= _COPY_PLACES and times[arrival] - times[other] <= _COPY_NS


def _nearest(matched: list[tuple[int, int]], sends: Any, sent_ns: Any, time_ns: int) -> int:
    """The matched send last before a time, or the first send at all."""
    before = [send for send, _ in matched if sent_ns[send] <= time_ns + _EARLY_NS]
    return max(before) if before else int(sends[0])


def _disorder(send_of: Any, is_copy: Any, times: Any) -> tuple[Any, Any]:
    """Extents and lateness of arrivals by the order of sending."""
    extents = np.zeros(len(send_of), dtype=np.int64)
    late_ns = np.zeros(len(send_of), dtype=np.int64)
    counted = np.flatnonzero((send_of != LOST) & ~is_copy)
    order = send_of[counted]
    highest = np.maximum.accumulate(order) if len(order) else order
    overtaken = np.flatnonzero(order < highest)
    # The first that overtook a frame is where the highest so far first passed it.
    passed_at = np.searchsorted(highest, order[overtaken], side="right")
    extents[counted[overtaken]] = overtaken - passed_at
    late_ns[counted[overtaken]] = times[counted[overtaken]] - times[counted[passed_at]]
    return extents, late_ns
