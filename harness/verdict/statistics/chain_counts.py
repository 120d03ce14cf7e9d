"""How many strokes of a chain with memory chance allows among so many steps: exactly.

    steps    good good bad bad bad good ...      strokes come in bursts, so their count spreads
    strokes              x   x   x               further than that of independent ones, to the right

The count's characteristic function is a product of one small matrix per step, so for each frequency
a power of a matrix; a Fourier transform turns it into the chance of each count. A normal limit is
too short on the right, just where the interval ends.
"""

import math

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.scenario.schema.loss_model import Chain
from windtunnel.harness.verdict.statistics import binomial

_REACH = 24
"""Standard deviations that are looked at, and as many times the memory of the first state: beyond
them chance has nothing to say."""
_COUNTS_MIN = 256


def interval(chain: Chain, trials: int, confidence: float) -> tuple[int, int]:
    """The counts, both ends included, between which chance lands with at least this confidence.

    The chain begins in its first state, as the relay's and netem's do. Whether it steps before a
    stroke or behind it makes no more difference than one step does.
    """
    if len(chain.strokes) == 1:
        return binomial.interval(trials, chain.share, confidence)
    if trials == 0:
        return 0, 0
    first, chances = _chances(chain, trials)
    tail = (1.0 - confidence) / 2.0
    cumulated = np.cumsum(chances)
    low = first + int(np.searchsorted(cumulated, tail, side="right"))
    high = first + int(np.searchsorted(cumulated, 1.0 - tail, side="left"))
    return low, min(high, trials)


def _chances(chain: Chain, trials: int) -> tuple[int, NDArray[np.float64]]:
    """The first count that is looked at, and the chance of it and of those behind it."""
    memory = 1.0 / max(1.0 - _second(chain), 1.0 / trials)
    reach = _REACH * (math.sqrt(trials * max(0.0, chain.variance)) + memory) + _COUNTS_MIN
    count = min(trials + 1, 2 * math.ceil(reach))
    first = min(max(0, round(trials * chain.share - reach)), trials + 1 - count)
    turns = np.exp(-2j * np.pi * np.arange(count) / count)
    weights = 1 - chain.strokes + chain.strokes * turns[:, None]
    factors = chain.steps * weights[:, None, :]
    transform = _powers(factors, trials)[:, 0, :].sum(axis=1)
    chances = np.clip(np.fft.ifft(transform).real, 0.0, None)
    return first, np.roll(chances, -first)


def _second(chain: Chain) -> float:
    """How much of what state it was in a chain still knows after a step."""
    sizes = np.sort(np.abs(np.linalg.eigvals(chain.steps)))
    return float(sizes[-2])


def _powers(factors: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Each matrix to the same power, by squaring."""
    result = np.broadcast_to(np.eye(factors.shape[1], dtype=np.complex128), factors.shape)
    while exponent:
        if exponent & 1:
            result = result @ factors
        factors = factors @ factors
        exponent >>= 1
    return result
