"""Reference implementation of the random NAK delay of multicast receivers, by its formulas."""

import math


def draws(seed: int, count: int) -> list[float]:
    """Return numbers in [0, 1): 32-bit xorshift by 13, 17 and 5."""
    word, found = seed, []
    for _ in range(count):
        word = (word ^ word << 13) % 2**32
        word = word ^ word >> 17
        word = (word ^ word << 5) % 2**32
        found.append(word / 2**32)
    return found


def delay_ns(uniform: float, max_backoff_ns: int, group_size: int) -> int:
    """Return the delay for a uniform number, by the inverse of the distribution."""
    rate = math.log(group_size) + 1
    x = uniform * rate / max_backoff_ns + rate / (max_backoff_ns * (math.exp(rate) - 1))
    return math.floor(
        max_backoff_ns / rate * math.log(x * (math.exp(rate) - 1) * max_backoff_ns / rate)
    )
