"""Decimation of chart lines: fewer points that keep a line's shape.

    bucket   | . .  '. | .. ' .|       the first, lowest, highest and last point of each bucket
    kept     | .     . | .  ' .|       are kept, so that no peak is lost

Both ends of the longest interval without a point are kept, too: otherwise the slope on either side
of a plateau would extend across it. The page decimates again to fit its width after each zoom. This
module limits the page's size.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

KEPT_PER_BUCKET = 6


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
    """Return the indices of the points to keep, ascending and at most `point_count_max`."""
    count = len(value)
    if count <= point_count_max:
        return np.arange(count)
    bucket_count = max(1, point_count_max // KEPT_PER_BUCKET)
    edges = np.linspace(0, count, bucket_count + 1).astype(np.int64)
    kept = np.empty((bucket_count, KEPT_PER_BUCKET), dtype=np.int64)
    for bucket in range(bucket_count):
        begin, end = edges[bucket], edges[bucket + 1]
        inside = value[begin:end]
        low, high = begin + inside.argmin(), begin + inside.argmax()
        rest = begin + np.diff(time_ns[begin:end], append=time_ns[end - 1]).argmax()
        kept[bucket] = (begin, low, high, rest, min(rest + 1, end - 1), end - 1)
    return np.unique(kept)
