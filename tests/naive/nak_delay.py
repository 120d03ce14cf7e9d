"""The random delay of a receiver among many, as the formulas say it."""

import math


def draws(seed: int, count: int) -> list[float]:
    """Numbers from 0 up to 1: xorshift of 32 bits by 13, 17 and 5."""
    word, found = seed, []
    for _ in range(count):
        word = (word ^ word << 13) % 2**32
        word = word ^ word >> 17
        word = (word ^ word << 5) % 2**32
        found.append(word / 2**32)
    return found


def delay_ns(uniform: float, max_backoff_ns: int, group_size: int) -> int:
    """The delay that a uniform number stands for: the inverse of its distribution."""
    rate = math.log(group_size) + 1
    x = uniform * rate / max_backoff_ns + rate / (max_backoff_ns * (math.exp(rate) - 1))
    return math.floor(
        max_backoff_ns / rate * math.log(x * (math.exp(rate) - 1) * max_backoff_ns / rate)
    )
