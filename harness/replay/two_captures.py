"""Matches a stream's transmissions at one capture point with their arrivals at another one.

    sent      s1 .. s2 .. s3
    arrived        r2'     r3'    s1 was lost

Each transmission is followed, and the clocks need not be synchronized.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import NAMES, SM
from windtunnel.harness.replay.frame_outcome import COPY, DROP, LATE, FrameOutcome
from windtunnel.harness.replay.sightings import Stream

SLACK_NS = 50_000
"""Tolerance in nanoseconds: how much faster a frame may be than the fastest frame with an
unambiguous match.
"""
Times = dict[int, list[int]]


def match_captures(near: Stream, far: Stream) -> list[FrameOutcome]:
    """Return a stream's lost, late and duplicate transmissions between two capture points."""
    base_ns, slack_ns = _transit(near, far)
    sent, arrived = _by_position(near.transmissions), _by_position(far.transmissions)
    first = {int(each["position"]): each for each in near.transmissions[::-1]}
    sent_order, arrival_order = _orders(near, far)
    found = []
    for position, departures in sent.items():
        frame = first[position]
        name, length = NAMES[int(frame["frame_type"])], int(frame["length"])
        matched, copies = match(departures, arrived.get(position, []), base_ns, slack_ns)
        for attempt, arrival_ns in enumerate(matched, 1):
            if arrival_ns is None:
                found.append(FrameOutcome(DROP, name, position, length, attempt))
                continue
            delay_ns = arrival_ns - departures[attempt - 1] - base_ns
            overtaken_by = _count_overtaken(
                sent_order, arrival_order, departures[attempt - 1], arrival_ns, base_ns, slack_ns
            )
            if overtaken_by and delay_ns > slack_ns:
                found.append(
                    FrameOutcome(LATE, name, position, length, attempt, delay_ns, overtaken_by)
                )
        for attempt, behind_ns in copies:
            found.append(FrameOutcome(COPY, name, position, length, attempt, behind_ns))
    return found


def match(
    departures: list[int], arrivals: list[int], base_ns: int, slack_ns: int
) -> tuple[list[int | None], list[tuple[int, int]]]:
    """Match a frame's arrivals at the second capture point with its departures at the first one.

    An arrival is matched with the last possible departure that has no match yet. A frame therefore
    does not count as late if it can be the retransmission.

    Returns: (for each departure, the arrival time, or None if it was lost; for each additional
    arrival, the number of the transmission that it duplicates, and the delay after the original)
    """
    matched: list[int | None] = [None] * len(departures)
    copies = []
    for arrival_ns in arrivals:
        possible = [
            index
            for index, departed_ns in enumerate(departures)
            if departed_ns + base_ns - slack_ns <= arrival_ns
        ] or [0]
        free = [index for index in possible if matched[index] is None]
        if free:
            matched[free[-1]] = arrival_ns
        else:
            original = matched[possible[-1]]
            assert original is not None
            copies.append((possible[-1] + 1, arrival_ns - original))
    return matched, copies


def round_trip_between_ns(first: Stream, second: Stream) -> int:
    """Return the round trip between two capture points, or 0 if no frames or no feedback are in
    both. The clocks need not be synchronized.
    """
    there = _differences(_by_position(first.transmissions), _by_position(second.transmissions))
    back = _differences(_by_feedback(second.feedback), _by_feedback(first.feedback))
    if not len(there) or not len(back):
        return 0
    return abs(int(np.median(there)) + int(np.median(back)))


def is_nearer(first: Stream, second: Stream) -> bool:
    """Return whether the first capture point is nearer to the sender than the second.

    The clocks need not be synchronized: their offset cancels out in the sum of both directions.
    """
    there = _differences(_by_position(first.transmissions), _by_position(second.transmissions))
    back = _differences(_by_feedback(second.feedback), _by_feedback(first.feedback))
    if len(there) and len(back):
        return float(np.median(there) + np.median(back)) > 0
    if len(first.transmissions) != len(second.transmissions):
        return len(first.transmissions) > len(second.transmissions)
    return not len(there) or float(np.median(there)) > 0


def _transit(near: Stream, far: Stream) -> tuple[int, int]:
    """Return the median transit time between two capture points, and how much shorter than the
    median a transit time can be.
    """
    found = _differences(_by_position(near.transmissions), _by_position(far.transmissions))
    if not len(found):
        return 0, SLACK_NS
    base_ns = int(np.median(found))
    return base_ns, base_ns - int(found.min()) + SLACK_NS


def _differences(before: Times, after: Times) -> NDArray[np.int64]:
    """Return the transit times of the frames that occur exactly once in each of two captures."""
    return np.array(
        [
            after[name][0] - times[0]
            for name, times in before.items()
            if len(times) == 1 and len(after.get(name, ())) == 1
        ],
        dtype=np.int64,
    )


def _by_position(transmissions: NDArray[Any]) -> Times:
    found: Times = defaultdict(list)
    for position, time_ns in zip(
        transmissions["position"].tolist(), transmissions["time_ns"].tolist(), strict=True
    ):
        found[position].append(time_ns)
    return found


def _by_feedback(feedback: NDArray[Any]) -> Times:
    """Return the times of status messages and NAKs, grouped by their contents."""
    found: Times = defaultdict(list)
    columns = (feedback[name].tolist() for name in ("position", "length", "frame_type", "time_ns"))
    for position, length, kind, time_ns in zip(*columns, strict=True):
        found[hash((position, length, kind == SM))].append(time_ns)
    return found


def _orders(near: Stream, far: Stream) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first departure time and the first arrival time of each frame that both captures
    contain.
    """
    sent, arrived = _by_position(near.transmissions), _by_position(far.transmissions)
    both = [
        (times[0], arrived[position][0]) for position, times in sent.items() if position in arrived
    ]
    pairs = np.array(sorted(both), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _count_overtaken(
    departures: NDArray[Any],
    arrivals: NDArray[Any],
    departed_ns: int,
    arrival_ns: int,
    base_ns: int,
    slack_ns: int,
) -> int:
    """Return how many frames departed after a given frame but arrived before it."""
    first = int(np.searchsorted(departures, departed_ns, side="right"))
    last = int(np.searchsorted(departures, arrival_ns - base_ns + slack_ns, side="right"))
    return int(np.count_nonzero(arrivals[first:last] < arrival_ns))
