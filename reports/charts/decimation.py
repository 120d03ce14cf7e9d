"""Decimation of chart lines: fewer points that keep a line's shape.

    bucket   | . .  '. | .. ' .|       the first, lowest, highest and last point of each bucket
    kept     | .     . | .  ' .|       are kept, so that no peak is lost

A plateau has a point at each end only. If a bucket contained several, all but one would be drawn as
a slope. So buckets are limited in time, too. The page decimates again to fit its width after each
zoom. This module limits the page's size.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

KEPT_PER_BUCKET = 4


def fair_limit(counts: Sequence[int], total_max: int) -> int:
    """Return how many items each of several sets may keep so that they have at most `total_max`
    together. Small sets keep all of theirs.
    """
    left = total_max
    ascending = sorted(counts)
    for index, count in enumerate(ascending):
        share = left // (len(ascending) - index)
        if count > share:
            return share
        left -= count
    return total_max


def level_indices(value: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the points that a line needs: not those between two equal values."""
    needed = np.ones(len(value), dtype=np.bool_)
    needed[1:-1] = (value[1:-1] != value[:-2]) | (value[1:-1] != value[2:])
    return np.flatnonzero(needed)


def kept_indices(
    time_ns: NDArray[np.int64], value: NDArray[np.int64], point_count_max: int
) -> NDArray[np.int64]:
    """Return the indices of the points to keep, ascending and at most `point_count_max`. Half of
    the buckets have equal times, so that the whole run is drawn right, and half have equal numbers
    of points, for those who zoom in where there are many.
    """
    count = len(value)
    if count <= point_count_max:
        return np.arange(count)
    # The lowest and highest point of a bucket are its ends if values never fall, as positions.
    rises = bool((value[1:] >= value[:-1]).all())
    bucket_count = max(1, point_count_max // (2 if rises else KEPT_PER_BUCKET) // 2)
    times_ns = np.linspace(0, time_ns[-1] - time_ns[0], bucket_count + 1)[1:-1]
    by_time = np.searchsorted(time_ns - time_ns[0], times_ns)
    by_count = np.linspace(0, count, bucket_count + 1).astype(np.int64)
    edges = np.union1d(by_time, by_count)
    kept = np.empty((len(edges) - 1, KEPT_PER_BUCKET), dtype=np.int64)
    for bucket, (begin, end) in enumerate(itertools.pairwise(edges.tolist())):
        inside = value[begin:end]
        kept[bucket] = (begin, begin + inside.argmin(), begin + inside.argmax(), end - 1)
    return np.unique(kept)
