"""The delay before a NAK is sent: fixed for unicast, random in a group of receivers.

In a group, only one receiver should send a NAK. Each receiver draws its delay from a truncated
exponential distribution over the maximum backoff T. About one of G receivers therefore sends its
NAK early:

    lambda = ln(G) + 1       x uniform in [0, lambda / T) + lambda / (T (e^lambda - 1))
    delay  = T / lambda * ln(x (e^lambda - 1) T / lambda)

After every NAKS_PER_BACKOFF NAKs for the same gap, the delay until a retry doubles, at most
BACKOFFS_MAX times. Aeron has no such backoff: it sends NAKs for a gap that a forged frame made
until the image times out. The random state is one seeded word per image. Source: spec 3.5, Aeron
1.53.
"""

import math

import numpy as np

from windtunnel.driver.kernels.jit import kernel

NAKS_PER_BACKOFF = 16
BACKOFFS_MAX = 4
"""Maximum number of doublings of the retry delay. Retries therefore continue, at most 16 retry
delays apart, and a sender that pauses for a long time still receives a NAK soon after it
continues."""

_WORD = 0xFFFFFFFF
_SCALE = 1.0 / (1 << 32)


def fill_static(record: np.record, delay_ns: int, retry_ns: int) -> None:
    """Configure fixed delays before the first NAK and before each retry."""
    record["nak_is_random"] = 0
    record["nak_delay_ns"], record["nak_retry_ns"] = delay_ns, retry_ns


def fill_backoff(record: np.record, max_backoff_ns: int, group_size: int, seed: int) -> None:
    """Configure a random NAK delay for a group of `group_size` receivers."""
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
    """Return the delay until the next NAK of an image (a PUBLICATION_IMAGE record)."""
    backoffs = min(image.gap_naks // NAKS_PER_BACKOFF, BACKOFFS_MAX) if is_retry else 0
    if image.nak_is_random == 0:
        return image.nak_retry_ns << backoffs if is_retry else image.nak_delay_ns
    x = _draw(image) * image.nak_x_range + image.nak_x_base
    return max(0, int(image.nak_scale_ns * math.log(x * image.nak_x_factor))) << backoffs


@kernel
def _draw(image):
    """Return the next random number in [0, 1) from a 32-bit xorshift generator."""
    word = int(image.nak_random)
    word ^= (word << 13) & _WORD
    word ^= word >> 17
    word ^= (word << 5) & _WORD
    image.nak_random = word
    return word * _SCALE
