"""The clocks of a simulated world, which advance only between turns.

A turn's compiled kernels and the Python code around them read the same cells, so they always agree
about the time. Times are in nanoseconds. All hosts share the monotonic time. Each host has its own
epoch time, which differs from it by a constant until an event steps the host's clock.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EPOCH_NS = 1_600_000_000_000_000_000
"""Epoch time at which the monotonic clock of every simulated world is zero: 2020-09-13, 12:26:40
UTC."""
NS_PER_MS = 1_000_000
AT_ONCE = 0
"""Time of a step that a program needs as soon as possible."""
START_NS = 1_000 * NS_PER_MS
"""Monotonic time at which every simulation starts. Drivers interpret zero as never."""


class VirtualClock:
    """A clock for the drivers and clients of a host."""

    def __init__(self, time_ns: NDArray[np.int64], step_ns: NDArray[np.int64]) -> None:
        """Create a clock that reads the world's time.

        The arrays begin with the monotonic time, and with the sum of all steps of the host's clock.
        """
        self._time_ns = time_ns
        self._step_ns = step_ns

    def now_ns(self) -> int:
        """Return the monotonic time in nanoseconds."""
        return int(self._time_ns[0])

    def epoch_ns(self) -> int:
        """Return the nanoseconds since the epoch, for timestamps in files."""
        return EPOCH_NS + self.now_ns() + int(self._step_ns[0])

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch."""
        return self.epoch_ns() // NS_PER_MS
