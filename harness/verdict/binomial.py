"""How far a count of independent events may stray before chance cannot explain it.

Exact tails of the binomial distribution, summed in logarithms; no approximation by a normal curve,
which is wrong just where it matters, at a handful of expected events.
"""

import math

import numpy as np
from numpy.typing import NDArray


def _log_probabilities(trials: int, share: float) -> NDArray[np.float64]:
    """Logarithm of the probability of each count from 0 to `trials`."""
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    counts = np.arange(trials + 1)
    ways = log_factorials[trials] - log_factorials - log_factorials[::-1]
    logs: NDArray[np.float64] = ways + counts * math.log(share)
    return logs + (trials - counts) * math.log1p(-share)


def interval(trials: int, share: float, confidence: float) -> tuple[int, int]:
    """The counts, both ends included, between which chance lands with at least this confidence.

    `share` is the probability of one event; 0 and 1 leave no room for chance.
    """
    if trials == 0 or share <= 0.0:
        return 0, 0
    if share >= 1.0:
        return trials, trials
    tail = (1.0 - confidence) / 2.0
    cumulated = np.cumsum(np.exp(_log_probabilities(trials, share)))
    low = int(np.searchsorted(cumulated, tail, side="right"))
    high = int(np.searchsorted(cumulated, 1.0 - tail, side="left"))
    return low, min(high, trials)


def least_trials(share: float, confidence: float) -> int:
    """How many trials it takes for at least one event with this confidence."""
    if share >= 1.0:
        return 1
    return math.ceil(math.log(1.0 - confidence) / math.log1p(-share))
