"""Fewer points, same picture.

    bucket   | . .  '. | .. ' .|       of each bucket the first, lowest, highest and last point stay
    kept     | .     . | .  ' .|       so no peak, however short, is lost

The page thins out again for its own width at each zoom; this bounds what is put into the page.
"""

import numpy as np
from numpy.typing import NDArray

KEPT_PER_BUCKET = 4


def keep(value: NDArray[np.int64], point_count_max: int) -> NDArray[np.int64]:
    """Indices, ascending, of the points that must stay for at most `point_count_max` of them."""
    count = len(value)
    if count <= point_count_max:
        return np.arange(count)
    bucket_count = max(1, point_count_max // KEPT_PER_BUCKET)
    edges = np.linspace(0, count, bucket_count + 1).astype(np.int64)
    kept = np.empty((bucket_count, KEPT_PER_BUCKET), dtype=np.int64)
    for bucket in range(bucket_count):
        begin, end = edges[bucket], edges[bucket + 1]
        inside = value[begin:end]
        kept[bucket] = (begin, begin + inside.argmin(), begin + inside.argmax(), end - 1)
    return np.unique(kept)
