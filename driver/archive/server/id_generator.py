"""Numbers that nobody can foresee: where the ids of sessions begin, and tokens of replays.

A test gives a seed and gets the same numbers each time.
"""

import random
from typing import Self

from windtunnel.driver.base.arith import I32_MAX

NUMBER_BITS = 64


class IdGenerator:
    """One archive's numbers."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._next_id = source.randrange(I32_MAX)

    @classmethod
    def of_system(cls) -> Self:
        """Numbers of the operating system."""
        return cls(random.SystemRandom())

    def next_id(self) -> int:
        """An id of a control session or a replication; one more each time."""
        self._next_id += 1
        return self._next_id

    def number(self) -> int:
        """Any 64-bit integer."""
        return self._source.getrandbits(NUMBER_BITS) - (1 << NUMBER_BITS - 1)
