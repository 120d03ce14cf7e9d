"""The clock of a simulated world, which stands still until the world's next turn.

The kernels of a turn and the Python around them read the same cell, so they always agree about the
time. Nanoseconds since the simulated epoch; monotonic and epoch readings differ by a constant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EPOCH_NS = 1_600_000_000_000_000_000
"""The moment at which every simulated world begins: 2020-09-13, 12:26:40 UTC."""
NS_PER_MS = 1_000_000
START_NS = 1_000 * NS_PER_MS
"""Monotonic time at that moment; not zero, which drivers interpret as never."""


class VirtualClock:
    """A clock for drivers and clients, over the cell that holds the world's time."""

    def __init__(self, cells: NDArray[np.int64], index: int) -> None:
        self._cells = cells
        self._index = index
        cells[index] = START_NS

    def now_ns(self) -> int:
        """Monotonic nanoseconds."""
        return int(self._cells[self._index])

    def epoch_ns(self) -> int:
        """Nanoseconds since the epoch, for timestamps in files."""
        return EPOCH_NS + self.now_ns()

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self.epoch_ns() // NS_PER_MS
