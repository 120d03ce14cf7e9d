"""Assigns session ids to publications that specify none: sequential ids from a random start.

The sequence skips the reserved range and the ids that a publication of the stream uses.
Source: spec 7.5, Aeron 1.53.
"""

import random
from collections.abc import Container

from windtunnel.driver.base.arith import wrap_i32


class SessionIds:
    """A driver's sequence of session ids."""

    def __init__(self, rng: random.Random, reserved_low: int, reserved_high: int) -> None:
        self._next = int(wrap_i32(rng.getrandbits(32)))
        self._reserved = range(reserved_low, reserved_high + 1)

    def next(self, in_use: Container[int]) -> int:
        """Return the next session id that is neither reserved nor in use."""
        while True:
            candidate = self._next
            if candidate in self._reserved:
                candidate = int(wrap_i32(self._reserved.stop))
            self._next = int(wrap_i32(candidate + 1))
            if candidate not in in_use:
                return candidate
