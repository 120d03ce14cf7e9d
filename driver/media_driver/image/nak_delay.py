"""How long a receiver waits before it asks for a gap: a fixed time, or a random one among many.

Of a group only one receiver should ask. Each draws its delay from a truncated exponential
distribution over the largest back-off T, so that with G receivers about one asks early:

    lambda = ln(G) + 1       x uniform in [0, lambda / T) + lambda / (T (e^lambda - 1))
    delay  = T / lambda * ln(x (e^lambda - 1) T / lambda)

Chance is a word of state that was given a seed. Source: spec 3.5, Aeron 1.53.
"""

import math

import numpy as np

from windtunnel.driver.kernels.jit import kernel

_WORD = 0xFFFFFFFF
_SCALE = 1.0 / (1 << 32)


def fill_static(record: np.record, delay_ns: int, retry_ns: int) -> None:
    """Ask after a fixed delay, and again after another."""
    record["nak_is_random"] = 0
    record["nak_delay_ns"], record["nak_retry_ns"] = delay_ns, retry_ns


def fill_backoff(record: np.record, max_backoff_ns: int, group_size: int, seed: int) -> None:
    """Ask after a random delay that many receivers share out among themselves."""
    rate = math.log(group_size) + 1.0
    growth = math.expm1(rate)
    record["nak_is_random"] = 1
    record["nak_random"] = (seed & _WORD) or 1
    record["nak_x_range"] = rate / max_backoff_ns
    record["nak_x_base"] = rate / (max_backoff_ns * growth)
    record["nak_scale_ns"] = max_backoff_ns / rate
    record["nak_x_factor"] = growth * max_backoff_ns / rate


@kernel
def next_delay_ns(image, is_retry):
    """The time until a gap of `image` (a PUBLICATION_IMAGE) is to be asked for."""
    if image.nak_is_random == 0:
        return image.nak_retry_ns if is_retry else image.nak_delay_ns
    x = _draw(image) * image.nak_x_range + image.nak_x_base
    return max(0, int(image.nak_scale_ns * math.log(x * image.nak_x_factor)))


@kernel
def _draw(image):
    """The next number from 0 up to 1, of a xorshift generator of 32 bits."""
    word = int(image.nak_random)
    word ^= (word << 13) & _WORD
    word ^= word >> 17
    word ^= (word << 5) & _WORD
    image.nak_random = word
    return word * _SCALE
