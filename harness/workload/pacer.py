"""Computes when an application can handle its next message without exceeding a given pace.

    handled   1 MiB          2 MiB
              |--- rest ---| |--- rest ---|
    due       ^ not before the rest is over, nor before the rate allows it

Time is an argument: real for a workload, virtual for a simulated one. The caller does the waiting.
"""

from __future__ import annotations

from windtunnel.harness.scenario.schema.pace import PaceCase
from windtunnel.harness.scenario.schema.units import BILLION

SLACK_NS = 2_000_000
"""Lost time that the pacer may make up for, because sleeping is imprecise.

Otherwise short messages would never reach their rate, because each sleep takes too long. A larger
value would allow a burst.
"""


class Pacer:
    """Counts the bytes of whole messages, and computes how long to wait before the next message."""

    def __init__(self, pace: PaceCase) -> None:
        self._pace = pace
        self._count_bytes = 0
        self._due_ns = 0

    @property
    def is_unlimited(self) -> bool:
        """Whether the pace never requires a wait."""
        return self._pace.is_unlimited

    def wait_ns(self, now_ns: int) -> int:
        """Return the time to wait, or 0 if the application can handle the next message now."""
        return max(0, self._due_ns - now_ns)

    def add(self, length_bytes: int, now_ns: int) -> None:
        """Record a message that has been handled."""
        pace = self._pace
        if pace.bytes_per_s:
            # Before the first message, no time was lost.
            start_ns = max(self._due_ns, now_ns - SLACK_NS) if self._count_bytes else now_ns
            self._due_ns = start_ns + length_bytes * BILLION // pace.bytes_per_s
        before, self._count_bytes = self._count_bytes, self._count_bytes + length_bytes
        if pace.rest_every_bytes:
            every = pace.rest_every_bytes
            passed = self._count_bytes // every - before // every
            if passed:
                self._due_ns = max(self._due_ns, now_ns) + passed * pace.rest_ns
