"""The clock of a simulated world, which advances only between turns.

A turn's compiled kernels and the Python code around them read the same cell, so they always agree
about the time. Times are in nanoseconds. Monotonic and epoch readings differ by a constant.
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
    """A clock for drivers and clients that reads the world's time."""

    def __init__(self, cells: NDArray[np.int64], index: int) -> None:
        self._cells = cells
        self._index = index
        cells[index] = START_NS

    @property
    def address(self) -> int:
        """Return the address of the cell that contains the monotonic time."""
        return int(self._cells[self._index :].ctypes.data)

    def now_ns(self) -> int:
        """Return the monotonic time in nanoseconds."""
        return int(self._cells[self._index])

    def epoch_ns(self) -> int:
        """Return the nanoseconds since the epoch, for timestamps in files."""
        return EPOCH_NS + self.now_ns()

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch."""
        return self.epoch_ns() // NS_PER_MS
