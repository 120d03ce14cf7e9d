"""Time as values: a clock is something with two readings, so that a test can move it by hand.

Nothing below a process's shell reads a clock; it is told the time. Monotonic nanoseconds measure
intervals and are private to a process; epoch milliseconds are what clients and drivers show each
other.
"""

from dataclasses import dataclass
from typing import Protocol

from windtunnel.driver.base import system


class Clock(Protocol):
    """The two readings that agents need."""

    def now_ns(self) -> int:
        """Monotonic nanoseconds."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""


class SystemClock:
    """The clocks of this machine."""

    def now_ns(self) -> int:
        return int(system.monotonic_ns())

    def now_ms(self) -> int:
        return int(system.epoch_ns()) // system.NS_PER_MS


@dataclass
class ManualClock:
    """A clock that stands still until it is moved."""

    monotonic_ns: int = 1_000_000_000
    epoch_ms: int = 1_600_000_000_000

    def now_ns(self) -> int:
        return self.monotonic_ns

    def now_ms(self) -> int:
        return self.epoch_ms

    def advance(self, duration_ns: int) -> None:
        """Move both readings forward, the epoch in whole milliseconds."""
        before_ms = self.monotonic_ns // system.NS_PER_MS
        self.monotonic_ns += duration_ns
        self.epoch_ms += self.monotonic_ns // system.NS_PER_MS - before_ms
