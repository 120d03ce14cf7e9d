"""Confidence intervals for counts of independent events.

They use exact tails of the binomial distribution, computed in logarithms. A normal approximation
would be wrong if few events are expected, which is the case that matters.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_HALVINGS = 50


def _log_probabilities(trials: int, share: float) -> NDArray[np.float64]:
    """Return the logarithm of the probability of each count from 0 to `trials`."""
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    counts = np.arange(trials + 1)
    ways = log_factorials[trials] - log_factorials - log_factorials[::-1]
    logs: NDArray[np.float64] = ways + counts * math.log(share)
    return logs + (trials - counts) * math.log1p(-share)


def interval(trials: int, share: float, confidence: float) -> tuple[int, int]:
    """Return the inclusive range in which a count lies with at least this confidence.

    `share` is the probability of one event; 0 and 1 give an exact count.
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


def min_trials(share: float, confidence: float) -> int:
    """Return the number of trials needed to observe at least one event with this confidence."""
    if share >= 1.0:
        return 1
    return math.ceil(math.log(1.0 - confidence) / math.log1p(-share))


def rate_interval(events: int, trials: int, confidence: float) -> tuple[float, float]:
    """Return the confidence interval for the true rate of events, given their count.

    This is the Clopper-Pearson interval: each end is the rate at which a count this extreme has a
    probability of (1 - confidence) / 2.
    """
    if trials == 0:
        return 0.0, 1.0
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if events == 0 else _rate_where(trials, tail, lambda odds: odds[events:].sum())
    high = (
        1.0
        if events == trials
        else 1.0 - _rate_where(trials, tail, lambda odds: odds[trials - events :].sum())
    )
    return low, high


def _rate_where(trials: int, tail: float, chance: Callable[[NDArray[np.float64]], float]) -> float:
    """Find the event rate at which a probability equals `tail`, by bisection. The probability must
    increase with the rate.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if chance(np.exp(_log_probabilities(trials, middle))) < tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2
