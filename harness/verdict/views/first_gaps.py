"""The first gap of an image over time, according to the frames that arrived.

    time      arrived             contiguous up to      first gap
    10 ms     f0                  1                     none
    20 ms     f0    f2            1                     [1, 2)
    30 ms     f0    f2    f4      1                     [1, 2)          the same period
    40 ms     f0 f1 f2    f4      3                     [3, 4)

A gap ends at the next frame that has arrived, at the highest known position, or with its term. An
Aeron receiver requests the first gap only, and starts its NAK delay again if the gap changes.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.acceptance import certain_heartbeats, certainly_accepted


@dataclass(frozen=True)
class FirstGaps:
    """The periods in which an image had the same first gap, in chronological order."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    since_ns: NDArray[np.int64]
    until_ns: NDArray[np.int64]
    "When the gap changed, or the end of time of the last period."


def first_gaps(wire: Wire, start: int, end_ns: int) -> FirstGaps:
    """Return the first gap over time, up to `end_ns`.

    Where it is unknown which copy of a frame the receiver accepted, gaps that the frame touches, or
    that became the first one with it, are left out.
    """
    lows, highs, from_ns, by_ns = accepted_times(wire, start)
    beats = certain_heartbeats(wire, start)
    events_ns = np.concatenate([by_ns, wire.heartbeat_times_ns[beats]])
    lows_or_none = np.append(lows, np.full(int(beats.sum()), -1))
    tops = np.concatenate([highs, wire.heartbeat_positions[beats]])
    order = np.argsort(events_ns, kind="stable")
    columns = (each[order].tolist() for each in (events_ns, lows_or_none, tops))
    rows = _swept(zip(*columns, strict=True), start, wire.facts.term_length, end_ns)
    begins, ends, since_ns, until_ns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    is_unsure = np.zeros(len(rows), dtype=np.bool_)
    for at in np.flatnonzero(from_ns < by_ns):
        is_near = (lows[at] <= ends) & (highs[at] >= begins)
        is_unsure |= is_near & (from_ns[at] <= until_ns) & (by_ns[at] >= since_ns)
        is_unsure |= since_ns == by_ns[at]
    is_sure = ~is_unsure
    return FirstGaps(*(each[is_sure] for each in (begins, ends, since_ns, until_ns)))


def accepted_times(
    wire: Wire, start: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and the end of each frame that arrived, and when it was accepted: at the
    earliest, its first copy, and at the latest, the first copy that every receiver accepts, or the
    last copy.
    """
    frames, accepted = wire.arrived, certainly_accepted(wire, start)
    times_ns = frames.frames["time_ns"].astype(np.int64)
    # The frames are in order of time.
    lows, first = np.unique(frames.starts, return_index=True)
    last = len(times_ns) - 1 - np.unique(frames.starts[::-1], return_index=True)[1]
    by_ns = times_ns[last]
    sure, first_sure = np.unique(frames.starts[accepted], return_index=True)
    by_ns[np.searchsorted(lows, sure)] = times_ns[accepted][first_sure]
    return lows, frames.ends[first], times_ns[first], by_ns


def _swept(
    events: Iterable[tuple[int, int, int]], start: int, term_length: int, end_ns: int
) -> list[tuple[int, int, int, int]]:
    """Return (start, end, since, until) of each period. Events have a time, the start of a frame or
    -1, and a position that is known from then on.
    """
    rows: list[tuple[int, int, int, int]] = []
    beyond: list[tuple[int, int]] = []
    contiguous = highest = start
    now_ns, gap, since_ns = 0, (start, start), 0
    # What the last event changes is found at the end.
    for time_ns, low, high in chain(events, [(end_ns, -1, start)]):
        if time_ns > now_ns:
            found = _gap(contiguous, highest, beyond, term_length)
            if found != gap:
                rows.append((*gap, since_ns, now_ns))
                gap, since_ns = found, now_ns
            now_ns = time_ns
        if time_ns >= end_ns:
            break
        highest = max(highest, high)
        if low >= 0:
            heapq.heappush(beyond, (low, high))
        while beyond and beyond[0][0] <= contiguous:
            contiguous = max(contiguous, heapq.heappop(beyond)[1])
    rows.append((*gap, since_ns, end_ns))
    return [each for each in rows if each[1] > each[0] and each[3] > each[2]]


def _gap(
    contiguous: int, highest: int, beyond: list[tuple[int, int]], term_length: int
) -> tuple[int, int]:
    term_end = contiguous - contiguous % term_length + term_length
    known = beyond[0][0] if beyond else highest
    return contiguous, max(contiguous, min(known, highest, term_end))
