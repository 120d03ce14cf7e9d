"""Quantiles of the jitter distributions, in multiples of the jitter.

The distributions are those of netem: uniform with a width of twice the jitter; normal, cut off at
four standard deviations; Pareto with exponent 3, shifted to a mean of 0 and scaled by 4/3.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

JITTERS = 4096
DEVIATIONS_MAX = 4.0


def deviations(distribution: str) -> NDArray[np.float64]:
    """Return JITTERS quantiles of a jitter distribution, at the midpoints of equal probability
    intervals.
    """
    shares = (np.arange(JITTERS) + 0.5) / JITTERS
    if distribution == "uniform":
        return 2 * shares - 1
    if distribution == "pareto":
        shape = ((1 - shares) ** (-1 / 3) - 1.5) * 4 / 3
    else:
        normal = NormalDist()
        shape = np.array([normal.inv_cdf(share) for share in shares])
    return np.clip(shape, -DEVIATIONS_MAX, DEVIATIONS_MAX)
