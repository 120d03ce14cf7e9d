"""Clocks: the system clock and a manual clock for tests.

Only the outermost layer of a process reads a clock. All other code takes the time as an argument.
Monotonic nanoseconds measure intervals within a process. Clients and drivers exchange epoch
milliseconds.
"""

from dataclasses import dataclass
from typing import Protocol

from windtunnel.driver.base import system


class Clock(Protocol):
    """The interface of a clock that returns both monotonic and epoch time."""

    def now_ns(self) -> int:
        """Return the monotonic time in nanoseconds."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since the epoch."""


class SystemClock:
    """The monotonic clock and the epoch clock of this machine."""

    def now_ns(self) -> int:
        return int(system.monotonic_ns())

    def now_ms(self) -> int:
        return int(system.epoch_ns()) // system.NS_PER_MS


@dataclass
class ManualClock:
    """A clock for tests that advances only when `advance` is called."""

    monotonic_ns: int = 1_000_000_000
    epoch_ms: int = 1_600_000_000_000

    def now_ns(self) -> int:
        return self.monotonic_ns

    def now_ms(self) -> int:
        return self.epoch_ms

    def advance(self, duration_ns: int) -> None:
        """Advance both clocks. The epoch clock advances in whole milliseconds."""
        before_ms = self.monotonic_ns // system.NS_PER_MS
        self.monotonic_ns += duration_ns
        self.epoch_ms += self.monotonic_ns // system.NS_PER_MS - before_ms
