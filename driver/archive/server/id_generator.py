"""Generates the ids and random numbers of an archive. Session ids start at an unpredictable number,
and replay tokens are unpredictable.

Tests pass a seeded generator and get the same numbers each time.
"""

import random
from typing import Self

from windtunnel.driver.base.arith import I32_MAX

NUMBER_BITS = 64


class IdGenerator:
    """Generates the ids and random numbers of one archive."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._next_id = source.randrange(I32_MAX)

    @classmethod
    def of_system(cls) -> Self:
        """Create a generator that uses the operating system's random numbers."""
        return cls(random.SystemRandom())

    def next_id(self) -> int:
        """Return a new id for a control session or replication: the previous id plus one."""
        self._next_id += 1
        return self._next_id

    def number(self) -> int:
        """Return a random 64-bit integer."""
        return self._source.getrandbits(NUMBER_BITS) - (1 << NUMBER_BITS - 1)
