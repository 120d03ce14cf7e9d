"""Who reads a log, and how far each has come: linked lists of sub-pos counters in one pool.

An image, a network publication with spies and an IPC publication each own one list, by the index of
its first entry. Only the conductor touches them. An entry that rests or is closed holds nobody
back.
"""

import numpy as np

from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel

NONE = -1

ACTIVE = 0
LINGER = 1  # told that its image is gone, still holding the stream back
RESTING = 2
CLOSED = 3

SUBSCRIBER_POSITION = np.dtype(
    [
        ("counter_id", "i8"),  # of sub-pos
        ("next", "i8"),  # index of the next entry of the list, or NONE
        ("state", "i8"),
        ("state_since_ns", "i8"),
    ]
)


def make_positions(capacity: int) -> np.recarray:
    """A pool of blank entries, SUBSCRIBER_POSITION[capacity]."""
    return np.zeros(capacity, dtype=SUBSCRIBER_POSITION).view(np.recarray)


@kernel
def bounds(positions, first, values):
    """The slowest and the fastest reader of a list.

    Memory:  sub-pos is acquired, since its owner publishes it after reading
    Returns: (lowest, highest, readers that count); without readers (I64_MAX, 0, 0)
    """
    lowest, highest, readers = I64_MAX, 0, 0
    index = first
    while index != NONE:
        rec = positions[index]
        if rec.state == ACTIVE or rec.state == LINGER:
            position = counters.get_acquire(values, rec.counter_id)
            lowest = min(lowest, position)
            highest = max(highest, position)
            readers += 1
        index = rec.next
    return lowest, highest, readers


class PositionPool:
    """Hands out entries of the pool and keeps the lists; an owner's record heads its list."""

    def __init__(self, positions: np.ndarray) -> None:
        self._positions = positions
        self._free = list(range(positions.size - 1, -1, -1))

    def add(self, owner: np.record, counter_id: int, now_ns: int = 0) -> int:
        """Put a reader at the front of an owner's list. Returns its index in the pool."""
        if not self._free:
            raise StorageError(f"all {self._positions.size} subscriber positions are in use")
        index = self._free.pop()
        self._positions[index] = (counter_id, owner["first_subscriber"], ACTIVE, now_ns)
        owner["first_subscriber"] = index
        return index

    def remove(self, owner: np.record, index: int) -> None:
        """Take a reader out of an owner's list and give the entry back."""
        entry = self._positions[index]
        current = owner["first_subscriber"]
        if current == index:
            owner["first_subscriber"] = entry["next"]
        else:
            while self._positions[current]["next"] != index:
                current = self._positions[current]["next"]
                assert current != NONE, f"position {index} is not in this list"
            self._positions[current]["next"] = entry["next"]
        self._free.append(index)

    def bounds(self, owner: np.record, values: np.ndarray) -> tuple[int, int, int]:
        """The slowest and the fastest of an owner's readers, and how many count."""
        lowest, highest, count = bounds(self._positions, int(owner["first_subscriber"]), values)
        return int(lowest), int(highest), int(count)
