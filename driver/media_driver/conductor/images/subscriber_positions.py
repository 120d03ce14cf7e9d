"""The subscriber positions of each log: linked lists of sub-pos counters, in one pool for all logs.

An image, a network publication with spies and an IPC publication each have one list, and store the
index of the list's first entry. Only the conductor accesses the lists. RESTING and CLOSED entries
do not count for flow control.
"""

import numpy as np

from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.agent.agent_proxy import FreeIndexes

NONE = -1

ACTIVE = 0
LINGER = 1  # notified that its image is unavailable, still counts for flow control
RESTING = 2
CLOSED = 3

SUBSCRIBER_POSITION = np.dtype(
    (
        np.record,
        [
            ("counter_id", "i8"),  # of sub-pos
            ("next", "i8"),  # index of the next entry of the list, or NONE
            ("state", "i8"),
            ("state_since_ns", "i8"),
        ],
    )
)


def make_positions(capacity: int) -> np.recarray:
    """Create a pool of `capacity` zeroed subscriber positions."""
    return np.zeros(capacity, dtype=SUBSCRIBER_POSITION).view(np.recarray)


@kernel
def bounds(positions, first, values):
    """Return the lowest and the highest subscriber position in a list, and the number of positions.

    Memory:  sub-pos is acquired, since its owner publishes it after reading
    Returns: (lowest, highest, count) of the ACTIVE and LINGER entries, or (I64_MAX, 0, 0) if the
             list has no such entries
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
    """Allocates subscriber positions from the pool, and maintains a list of them for each stream.
    The stream's record (`owner`) contains the head of the list.
    """

    def __init__(self, positions: np.ndarray) -> None:
        self._positions = positions
        self._free = FreeIndexes(positions.size)

    def add(self, owner: np.record, counter_id: int, now_ns: int = 0) -> int:
        """Add a subscriber position at the front of a stream's list. Returns its index in the
        pool.
        """
        if not self._free:
            raise StorageError(f"all {self._positions.size} subscriber positions are in use")
        index = self._free.take()
        self._positions[index] = (counter_id, owner["first_subscriber"], ACTIVE, now_ns)
        owner["first_subscriber"] = index
        return index

    def remove(self, owner: np.record, index: int) -> None:
        """Remove a subscriber position from a stream's list and return it to the pool."""
        entry = self._positions[index]
        current = owner["first_subscriber"]
        if current == index:
            owner["first_subscriber"] = entry["next"]
        else:
            while self._positions[current]["next"] != index:
                current = self._positions[current]["next"]
                assert current != NONE, f"position {index} is not in this list"
            self._positions[current]["next"] = entry["next"]
        self._free.release(index)

    def bounds(self, owner: np.record, values: np.ndarray) -> tuple[int, int, int]:
        """Return the lowest and the highest subscriber position of a stream, and the number of
        positions.
        """
        lowest, highest, count = bounds(self._positions, int(owner["first_subscriber"]), values)
        return int(lowest), int(highest), int(count)
