"""The order in which a stream passes its vantage points, and their clock offsets.

    frames with the data   t(q) - t(p) =   transit there + offset of q's clock
    frames against it      t(q) - t(p) = - transit back  + offset of q's clock

The difference between the two is the round-trip time, regardless of the clocks. It is positive if p
comes before q. If one of the points captured no control frames, the clocks have to be trusted.

Receivers of a multicast group are on different branches, and no data travels between them. Captures
on two branches both have control frames, but none in common, or control frames in both directions:

    from a receiver at p   t(q) - t(p) =   way from p to q + offset      the time of the data
    from a receiver at q   t(q) - t(p) = - way from q to p + offset      is between these two
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from windtunnel.reports.analysis.links.links import Clock, clock_between

CONTROL_NAMES = ("kind", "receiver", "position", "length")
"""Columns that identify a control frame."""
_BEYOND_SHARE = 0.75
"""Minimum delay of control frames that crossed a link, as a fraction of the link's round-trip time.
Control frames from other branches take less.
"""


@dataclass
class Path:
    """One flow's path: its vantage points in order, and their clock offsets."""

    order: list[int] = field(default_factory=list)
    "The vantage points in path order."
    before: dict[int, int] = field(default_factory=dict)
    "The preceding vantage point of each one except the first."
    clocks: dict[int, Clock] = field(default_factory=dict)
    "The clock offset of each vantage point relative to the preceding one."
    receivers: dict[int, list[int]] = field(default_factory=dict)
    "The receivers whose control frames travel from each vantage point to the preceding one."


def find_path(frames: Any, control: Any) -> Path:
    """Determine the order in which a flow passes its vantage points, from the frames captured at
    each.
    """
    points = [int(each) for each in np.unique(frames["point"])]
    further: dict[int, list[tuple[float, int]]] = {point: [] for point in points}
    links: dict[tuple[int, int], _Link] = {}
    for index, one in enumerate(points):
        for other in points[index + 1 :]:
            link = _link_between(one, other, frames, control)
            if link is not None:
                further[link.far].append((link.round_trip_ns, link.near))
                links[link.near, link.far] = link
    path = Path()
    waiting = sorted(points, key=lambda each: (len(further[each]), each))
    while waiting:
        before = {each: min(further[each])[1] if further[each] else None for each in waiting}
        ready = [each for each in waiting if before[each] is None or before[each] in path.order]
        # Contradictory times cause a cycle, which is broken at its first vantage point.
        point = ready[0] if ready else waiting[0]
        waiting.remove(point)
        path.order.append(point)
        near = before[point]
        if near is not None and ready:
            path.before[point] = near
            path.clocks[point] = links[near, point].clock
            path.receivers[point] = links[near, point].receivers
    return path


@dataclass(frozen=True)
class _Link:
    """Two vantage points that the data passes one after the other."""

    near: int
    far: int
    round_trip_ns: float
    clock: Clock
    receivers: list[int]
    "The receivers whose control frames travel over the link."


def _link_between(one: int, other: int, frames: Any, control: Any) -> _Link | None:
    """Return the link between two vantage points, or None if no data travels between them."""
    there = differences(frames, one, other, ("position",))
    if not len(there):
        return None
    middle_ns = float(np.median(there))
    back = {
        int(receiver): differences(
            control[control["receiver"] == receiver], one, other, CONTROL_NAMES
        )
        for receiver in np.unique(control["receiver"])
    }
    receivers = list(back)
    back = {receiver: found for receiver, found in back.items() if len(found)}
    if not back:
        if all((control["point"] == point).any() for point in (one, other)):
            return None
        near, far = (one, other) if middle_ns >= 0 else (other, one)
        return _Link(near, far, abs(middle_ns), clock_between(there, there[:0]), receivers)
    trips = {each: middle_ns - float(np.median(found)) for each, found in back.items()}
    sign = 1 if max(trips.values()) >= 0 else -1
    if min(sign * each for each in trips.values()) < 0:
        return None
    round_trip_ns = max(sign * each for each in trips.values())
    # Control frames from other branches take different paths to the two vantage points.
    beyond = [each for each in trips if sign * trips[each] >= _BEYOND_SHARE * round_trip_ns]
    against = np.concatenate([back[each] for each in beyond])
    near, far = (one, other) if sign > 0 else (other, one)
    clock = clock_between(sign * there, sign * against)
    return _Link(near, far, round_trip_ns, clock, beyond)


def differences(rows: Any, one: int, other: int, names: tuple[str, ...]) -> Any:
    """Return the capture times at `other` minus those at `one`, for the frames that were captured
    exactly once at each of them.

    If there are none, use those that were captured equally often, in the order of capture.
    """
    keys, counts, starts, times = _by_key(rows[rows["point"] == one], names)
    other_keys, other_counts, other_starts, other_times = _by_key(
        rows[rows["point"] == other], names
    )
    _, at, other_at = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    is_equal = counts[at] == other_counts[other_at]
    is_alone = is_equal & (counts[at] == 1)
    chosen = is_alone if is_alone.any() else is_equal
    at, other_at = at[chosen], other_at[chosen]
    lengths = counts[at]
    index = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    found = other_times[np.repeat(other_starts[other_at], lengths) + index]
    return (found - times[np.repeat(starts[at], lengths) + index]).astype(np.int64)


def _by_key(rows: Any, names: tuple[str, ...]) -> tuple[Any, Any, Any, Any]:
    """Return the distinct keys, how often each occurs, the index of its first time, and the times
    by key, in the order of capture.
    """
    keyed = rows[names[0]] if len(names) == 1 else rows[list(names)]
    keys, inverse, counts = np.unique(keyed, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    return keys, counts, np.cumsum(counts) - counts, rows["time_ns"][order]
