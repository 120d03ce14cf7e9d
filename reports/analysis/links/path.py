"""The order in which a stream passes its vantage points, and their clock offsets.

    frames with the data   t(q) - t(p) =   transit there + offset of q's clock
    frames against it      t(q) - t(p) = - transit back  + offset of q's clock

The difference between the two is the round-trip time, regardless of the clocks. It is positive if p
comes before q. Without control frames, the clocks have to be trusted. Two points that do not see
each other's control frames are on different branches, like receivers of a multicast group.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from windtunnel.reports.analysis.links.links import Clock, clock_between


@dataclass
class Path:
    """The path of one flow: its vantage points in order, and their clocks."""

    order: list[int] = field(default_factory=list)
    "The points in path order."
    before: dict[int, int] = field(default_factory=dict)
    "The preceding point of each point except the first."
    clocks: dict[int, Clock] = field(default_factory=dict)
    "The clock of each point relative to the preceding one."


def find_path(frames: Any, control: Any) -> Path:
    """Determine a flow's path through its vantage points from OBSERVATION rows."""
    points = [int(each) for each in np.unique(frames["point"])]
    further: dict[int, list[tuple[float, int]]] = {point: [] for point in points}
    clocks: dict[tuple[int, int], Clock] = {}
    for index, one in enumerate(points):
        for other in points[index + 1 :]:
            there = differences(frames, one, other, ("position",))
            back = differences(control, one, other, ("kind", "position", "length"))
            if not len(there) or (len(control) and not len(back)):
                continue
            round_trip = float(np.median(there)) - (float(np.median(back)) if len(back) else 0.0)
            near, far = (one, other) if round_trip >= 0 else (other, one)
            sign = 1 if round_trip >= 0 else -1
            further[far].append((abs(round_trip), near))
            clocks[near, far] = clock_between(sign * there, sign * back)
    path = Path()
    for point in sorted(points, key=lambda each: (len(further[each]), each)):
        path.order.append(point)
        if further[point]:
            nearest = min(further[point])[1]
            path.before[point] = nearest
            path.clocks[point] = clocks[nearest, point]
    return path


def differences(rows: Any, one: int, other: int, names: tuple[str, ...]) -> Any:
    """Return time at `other` minus time at `one`, for frames seen exactly once at each point."""
    found = []
    for point in (one, other):
        here = rows[rows["point"] == point]
        keyed = here[names[0]] if len(names) == 1 else here[list(names)]
        keys, first, counts = np.unique(keyed, return_index=True, return_counts=True)
        alone = counts == 1
        found.append((keys[alone], here["time_ns"][first[alone]]))
    (keys, times), (other_keys, other_times) = found
    _, at, other_at = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    return (other_times[other_at] - times[at]).astype(np.int64)
