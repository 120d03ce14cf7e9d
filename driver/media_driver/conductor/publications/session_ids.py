"""Session ids for publications that do not ask for one: counted up from a random start.

A reserved range is passed over, and so are ids that a live publication of the stream has.
Source: spec 7.5, Aeron 1.53.
"""

import random
from collections.abc import Container

from windtunnel.driver.base.arith import wrap_i32


class SessionIds:
    """The sequence of one driver."""

    def __init__(self, rng: random.Random, reserved_low: int, reserved_high: int) -> None:
        self._next = int(wrap_i32(rng.getrandbits(32)))
        self._reserved = range(reserved_low, reserved_high + 1)

    def next(self, in_use: Container[int]) -> int:
        """The next id that is neither reserved nor in use; it will not come again soon."""
        while True:
            candidate = self._next
            if candidate in self._reserved:
                candidate = int(wrap_i32(self._reserved.stop))
            self._next = int(wrap_i32(candidate + 1))
            if candidate not in in_use:
                return candidate
