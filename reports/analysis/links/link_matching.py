"""Matches a frame's transmissions at one vantage point with its arrivals at the next one.

    position 4096   sends     s1 ........ s2            a retransmit: the same bytes
                    arrivals         a1       a2

Most positions are sent once and arrive once. For the others, an undisturbed transmission arrives
between its neighbours, which were sent directly before and after it. Any other arrival is late and
belongs to the oldest transmission, because one fault is likelier than two. If other frames show
that this link both loses and duplicates frames, it may be a copy directly after its original. If
the transmissions have different IPv4 identifications and the arrivals have the same ones, the match
is exact. All transmissions of a position are considered together, so the result does not depend on
the order of reading.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from windtunnel.harness.dissect.frames.wire_frame import NO_IDENTIFICATION

LOST = -1
_NEIGHBOURS = 8
_SLACK = 8
"""Tolerance for the expected place of an arrival between its neighbours, in frames."""
_COPY_PLACES = 4
_COPY_NS = 1_000_000
"""Maximum time between an original and its copy."""
_EARLY_NS = 20_000
"""Allowance for the clock error that remains after correction."""


@dataclass(frozen=True)
class LinkMatch:
    """The result of matching m transmissions with n arrivals, each in capture order."""

    arrival_of: Any
    "int64[m]: index of each transmission's arrival, or LOST."
    send_of: Any
    "int64[n]: index of each arrival's transmission, or LOST. A copy has its original's index."
    is_copy: Any
    "bool[n]: whether each arrival is a copy."
    copies: Any
    "int64[m]: number of additional copies of each transmission that arrived."
    extents: Any
    "int64[n]: RFC 4737 reordering extent, relative to the sending order; 0 if in order."
    late_ns: Any
    "int64[n]: time since the first arrival of a frame that was sent later; 0 if in order."
    delays_ns: Any
    "int64[m]: delay from sending to arrival; 0 if lost."
    lengths: Any
    "int64[m]: length of each transmission, in stream bytes."
    is_ambiguous: Any
    "bool[n]: whether another transmission would match the arrival equally well."
    is_send_unobserved: Any
    "bool[m]: whether each transmission has no arrival and was outside the arrivals' capture."
    is_arrival_unobserved: Any
    "bool[n]: whether each arrival has no transmission and was outside the sends' capture."


class Period(NamedTuple):
    """The times of the first and the last frame of a stream in a capture, by its own clock."""

    first_ns: int
    last_ns: int

    def lacks(self, earliest_ns: Any, latest_ns: Any) -> Any:
        """Return for each frame whether it may have passed before or after the period, given the
        times between which it passed.
        """
        return (earliest_ns < self.first_ns) | (latest_ns > self.last_ns)

    def extended(self, times_ns: Any) -> "Period":
        """Return the period with further frames in it."""
        first_ns, last_ns = times_ns.min(initial=self.first_ns), times_ns.max(initial=self.last_ns)
        return Period(int(first_ns), int(last_ns))


ALWAYS = Period(np.iinfo(np.int64).min, np.iinfo(np.int64).max)
NEVER = Period(ALWAYS.last_ns, ALWAYS.first_ns)
"""The period of a capture without frames."""


def match(
    sends: Any,
    arrivals: Any,
    correction_ns: int,
    sending: Period = ALWAYS,
    arriving: Period = ALWAYS,
) -> LinkMatch:
    """Match the transmissions at one vantage point with the arrivals at the next one, whose
    captures cover these periods.

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
    undisturbed = np.sort(originals[(end - at)[once] == 1])
    neighbours = _Neighbours(undisturbed, arrival_of[undisturbed])
    for index in np.flatnonzero((sent_counts > 1) & (end > at)):
        sent = by_position[first[index] : first[index] + sent_counts[index]]
        received = arrived[at[index] : end[index]]
        numbers = sends["identification"][sent], arrivals["identification"][received]
        if _match_numbered(sent, received, *numbers, arrival_of, send_of, is_copy):
            continue
        _match_several(
            sent, received, sends["time_ns"], times, neighbours, may_copy, arrival_of, send_of,
            is_copy, is_ambiguous,
        )  # fmt: skip
    copies = np.bincount(send_of[is_copy], minlength=len(sends)).astype(np.int64)
    extents, late_ns = _reordering(send_of, is_copy, times)
    delays = np.zeros(len(sends), dtype=np.int64)
    has_arrived = arrival_of != LOST
    delays[has_arrived] = times[arrival_of[has_arrived]] - sends["time_ns"][has_arrived]
    known = delays[has_arrived]
    shortest_ns, longest_ns = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    sent_ns = sends["time_ns"] + correction_ns
    return LinkMatch(
        arrival_of, send_of, is_copy, copies, extents, late_ns, delays, sends["length"],
        is_ambiguous,
        ~has_arrived & arriving.lacks(sent_ns + shortest_ns, sent_ns + longest_ns),
        (send_of == LOST) & sending.lacks(times - longest_ns, times - shortest_ns),
    )  # fmt: skip


class _Neighbours:
    """Transmissions that arrived exactly once. They show where transmissions between them are
    expected to arrive.
    """

    def __init__(self, sends: Any, arrivals: Any) -> None:
        self._sends, self._arrivals = sends, arrivals

    def span(self, send: int) -> tuple[float, float]:
        """Return the range of arrival indices in which a transmission is expected to arrive."""
        at = int(np.searchsorted(self._sends, send))
        before = self._arrivals[max(0, at - _NEIGHBOURS) : at]
        behind = self._arrivals[at : at + _NEIGHBOURS]
        low = float(np.median(before)) if len(before) else -np.inf
        high = float(np.median(behind)) if len(behind) else np.inf
        return low - _SLACK, high + _SLACK


def _match_numbered(
    sends: Any, arrivals: Any, sent_numbers: Any, arrived_numbers: Any, arrival_of: Any,
    send_of: Any, is_copy: Any,
) -> bool:  # fmt: skip
    """Match transmissions with arrivals by IPv4 identification, and fill the last three arguments.
    Return False if the match is ambiguous.
    """
    by_number = {int(number): int(send) for number, send in zip(sent_numbers, sends, strict=True)}
    is_unique = len(by_number) == len(sends) and NO_IDENTIFICATION not in by_number
    if not is_unique or not set(arrived_numbers.tolist()) <= by_number.keys():
        return False
    for number, arrival in zip(arrived_numbers.tolist(), arrivals.tolist(), strict=True):
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
    """Match several transmissions of the same position, and fill the last four arguments."""
    spans = {int(send): neighbours.span(int(send)) for send in sends}
    free = [int(send) for send in sends]
    matched: list[tuple[int, int]] = []
    left = []
    for arrival in (int(each) for each in arrivals):
        possible = [send for send in free if sent_ns[send] <= times[arrival] + _EARLY_NS]
        expected = [send for send in possible if spans[send][0] <= arrival <= spans[send][1]]
        if expected:
            free.remove(expected[0])
            matched.append((expected[0], arrival))
            is_ambiguous[arrival] = len(expected) > 1
        else:
            left.append(arrival)
    for arrival in left:
        possible = [send for send in free if sent_ns[send] <= times[arrival] + _EARLY_NS]
        close = [send for send, other in matched if _may_be_copy(arrival, other, times)]
        if (close and may_copy) or not possible:
            origin = close[-1] if close else _nearest(matched, sends, sent_ns, times[arrival])
            send_of[arrival], is_copy[arrival] = origin, True
            continue
        free.remove(possible[0])
        matched.append((possible[0], arrival))
        is_ambiguous[arrival] = len(possible) > 1
    for send, arrival in matched:
        arrival_of[send], send_of[arrival] = arrival, send


def _may_be_copy(arrival: int, other: int, times: Any) -> bool:
    """Return whether one arrival follows another closely enough to be its copy."""
    return 0 < arrival - other <= _COPY_PLACES and times[arrival] - times[other] <= _COPY_NS


def _nearest(matched: list[tuple[int, int]], sends: Any, sent_ns: Any, time_ns: int) -> int:
    """Return the last matched transmission before a time, or the first transmission if none was
    earlier.
    """
    before = [send for send, _ in matched if sent_ns[send] <= time_ns + _EARLY_NS]
    return max(before) if before else int(sends[0])


def _reordering(send_of: Any, is_copy: Any, times: Any) -> tuple[Any, Any]:
    """Return the reordering extent and lateness of each arrival, relative to the sending order."""
    extents = np.zeros(len(send_of), dtype=np.int64)
    late_ns = np.zeros(len(send_of), dtype=np.int64)
    counted = np.flatnonzero((send_of != LOST) & ~is_copy)
    order = send_of[counted]
    highest = np.maximum.accumulate(order) if len(order) else order
    late = np.flatnonzero(order < highest)
    # The first later transmission to arrive is where the running maximum first exceeds the frame.
    first_later = np.searchsorted(highest, order[late], side="right")
    extents[counted[late]] = late - first_later
    late_ns[counted[late]] = times[counted[late]] - times[counted[first_later]]
    return extents, late_ns
