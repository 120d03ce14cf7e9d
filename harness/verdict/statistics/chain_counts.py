"""Exact confidence intervals for the number of losses in a Markov chain model.

    states   good good bad bad bad good ...      losses come in bursts, so their count has a larger
    losses               x   x   x               variance than independent losses, and a right skew

The characteristic function of the count is a product of one small matrix per step, and thus a
matrix power for each frequency. A Fourier transform turns it into the probability of each count. A
normal approximation would be too narrow on the right, where the interval ends.
"""

import math

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.scenario.schema.loss_model import MarkovChain
from windtunnel.harness.verdict.statistics import binomial

_REACH = 24
"""Half-width of the computed range: this many standard deviations, plus this many times the memory
of the first state. Probabilities outside the range are negligible."""
_COUNTS_MIN = 256


def interval(chain: MarkovChain, trials: int, confidence: float) -> tuple[int, int]:
    """Return the inclusive range in which a count lies with at least this confidence.

    The chain starts in its first state, as it does in the relay and in netem. Whether it steps
    before or after a loss makes a difference of one step at most.
    """
    if len(chain.loss_probabilities) == 1:
        return binomial.interval(trials, chain.share, confidence)
    if trials == 0:
        return 0, 0
    first, chances = _chances(chain, trials)
    tail = (1.0 - confidence) / 2.0
    cumulated = np.cumsum(chances)
    low = first + int(np.searchsorted(cumulated, tail, side="right"))
    high = first + int(np.searchsorted(cumulated, 1.0 - tail, side="left"))
    return low, min(high, trials)


def _chances(chain: MarkovChain, trials: int) -> tuple[int, NDArray[np.float64]]:
    """Compute the probability of each count of losses near the mean. Returns the lowest of these
    counts, and the probabilities in order.
    """
    memory = 1.0 / max(1.0 - _second(chain), 1.0 / trials)
    reach = _REACH * (math.sqrt(trials * max(0.0, chain.variance)) + memory) + _COUNTS_MIN
    count = min(trials + 1, 2 * math.ceil(reach))
    first = min(max(0, round(trials * chain.share - reach)), trials + 1 - count)
    turns = np.exp(-2j * np.pi * np.arange(count) / count)
    weights = 1 - chain.loss_probabilities + chain.loss_probabilities * turns[:, None]
    factors = chain.transitions * weights[:, None, :]
    transform = _powers(factors, trials)[:, 0, :].sum(axis=1)
    chances = np.clip(np.fft.ifft(transform).real, 0.0, None)
    return first, np.roll(chances, -first)


def _second(chain: MarkovChain) -> float:
    """Return a chain's second largest absolute eigenvalue, which measures how strongly a state
    depends on the previous state.
    """
    sizes = np.sort(np.abs(np.linalg.eigvals(chain.transitions)))
    return float(sizes[-2])


def _powers(factors: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Raise each matrix to the same power by repeated squaring."""
    result = np.broadcast_to(np.eye(factors.shape[1], dtype=np.complex128), factors.shape)
    while exponent:
        if exponent & 1:
            result = result @ factors
        factors = factors @ factors
        exponent >>= 1
    return result
