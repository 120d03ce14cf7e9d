"""Keeping to a pace: when an application may handle its next message.

    handled   1 MiB          2 MiB
              |--- rest ---| |--- rest ---|
    due       ^ not before the rest is over, nor before the rate allows it

Time is an argument: real of a workload, virtual of a simulated one. Refuses to wait by itself.
"""

from __future__ import annotations

from windtunnel.harness.scenario.schema.pace import PaceCase
from windtunnel.harness.scenario.schema.units import BILLION

SLACK_NS = 2_000_000
"""How far it may make up for lost time: sleeping is coarse, and a rate that is missed by what one
sleep takes too long would never be reached with short messages. More would be a burst."""


class Pacer:
    """Counts bytes of whole messages, and tells how long to wait before the next."""

    def __init__(self, pace: PaceCase) -> None:
        self._pace = pace
        self._count_bytes = 0
        self._due_ns = 0

    @property
    def is_free(self) -> bool:
        """Whether it never has to wait."""
        return self._pace.is_free

    def wait_ns(self, now_ns: int) -> int:
        """How long to wait; 0 when the next message may be handled."""
        return max(0, self._due_ns - now_ns)

    def add(self, length_bytes: int, now_ns: int) -> None:
        """A message was handled."""
        pace = self._pace
        if pace.bytes_per_s:
            start_ns = max(self._due_ns, now_ns - SLACK_NS)
            self._due_ns = start_ns + length_bytes * BILLION // pace.bytes_per_s
        before, self._count_bytes = self._count_bytes, self._count_bytes + length_bytes
        if pace.rest_every_bytes:
            every = pace.rest_every_bytes
            passed = self._count_bytes // every - before // every
            if passed:
                self._due_ns = max(self._due_ns, now_ns) + passed * pace.rest_ns
