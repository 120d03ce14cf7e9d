"""Confidence intervals for counts of independent events.

They use exact tails of the binomial distribution, computed in logarithms. A normal approximation
would be wrong if few events are expected, which is the case that matters.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

WHOLE_MAX = 1 << 20
"""Most trials for which the probabilities of all counts are computed."""
TRIALS_MAX = 1 << 40
"""More trials than any run has. Beyond that, nothing is said about a count."""
DEVIATIONS, COUNTS_MIN = 12.0, 60.0
"""How far from the mean counts may occur, in standard deviations and in counts."""
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
    if trials > TRIALS_MAX:
        return 0, trials
    tail = (1.0 - confidence) / 2.0
    first, probabilities = _probabilities_near_mean(trials, share)
    cumulated = np.cumsum(probabilities)
    low = first + int(np.searchsorted(cumulated, tail, side="right"))
    high = first + int(np.searchsorted(cumulated, 1.0 - tail, side="left"))
    return low, min(high, trials)


def _probabilities_near_mean(trials: int, share: float) -> tuple[int, NDArray[np.float64]]:
    """Return the lowest count that is not practically impossible, and the probabilities of the
    counts from there. With few trials, these are all counts.

    Counts come from run folders, so memory must not grow with a number of trials that no run has.
    """
    if trials <= WHOLE_MAX:
        return 0, np.exp(_log_probabilities(trials, share))
    mean = trials * share
    reach = DEVIATIONS * math.sqrt(mean * (1.0 - share)) + COUNTS_MIN
    first, last = max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))
    counts = np.arange(first, last, dtype=np.float64)
    steps = np.log((trials - counts) / (counts + 1.0)) + math.log(share) - math.log1p(-share)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    probabilities = np.exp(logs - logs.max())
    return first, probabilities / probabilities.sum()


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
