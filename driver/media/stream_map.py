"""Which slot serves a stream: (endpoint, stream id, session id) -> a small number, for one agent.

Open addressing with linear probing; a removal shifts the entries behind it back, so that there are
no tombstones and a probe always ends at an empty entry. `insert` keeps one entry free, and so
refuses when the table is full. The first entry also tells how many there are, whether it is in use
or not.
"""

import numpy as np

from windtunnel.driver.kernels.jit import kernel

STREAM_ENTRY = np.dtype(
    [
        ("used", "i8"),
        ("endpoint", "i8"),  # slot of the channel endpoint
        ("stream_id", "i8"),
        ("session_id", "i8"),
        ("value", "i8"),  # what the owner keeps here, usually a slot
        ("kept", "i8"),  # of the first entry: how many are in use
    ]
)

ABSENT = -1


def make_stream_map(capacity: int) -> np.recarray:
    """An empty map for at least `capacity` streams, as STREAM_ENTRY[power of two]."""
    size = 2
    while size < 2 * capacity:
        size *= 2
    return np.zeros(size, dtype=STREAM_ENTRY).view(np.recarray)


@kernel
def _home(size, endpoint, stream_id, session_id):
    mixed = (endpoint * 0x1E35A7BD) ^ (stream_id * 0x27D4EB2F) ^ (session_id * 0x165667B1)
    mixed = mixed & 0x7FFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 15) ^ (mixed >> 31)) & (size - 1)


@kernel
def _probe(table, endpoint, stream_id, session_id):
    size = table.size
    index = _home(size, endpoint, stream_id, session_id)
    for _ in range(size):
        entry = table[index]
        if entry.used == 0:
            return index
        same_stream = entry.stream_id == stream_id and entry.session_id == session_id
        if same_stream and entry.endpoint == endpoint:
            return index
        index = (index + 1) & (size - 1)
    return ABSENT


@kernel
def find(table, endpoint, stream_id, session_id):
    """The value kept for a stream, or ABSENT."""
    index = _probe(table, endpoint, stream_id, session_id)
    if index == ABSENT or table[index].used == 0:
        return ABSENT
    return table[index].value


@kernel
def count(table):
    """How many streams are kept."""
    return table[0].kept


@kernel
def insert(table, endpoint, stream_id, session_id, value):
    """Keep a value for a stream, replacing an earlier one. Returns False when the table is full."""
    index = _probe(table, endpoint, stream_id, session_id)
    if index == ABSENT:
        return False
    entry = table[index]
    if entry.used == 0:
        if count(table) >= table.size - 1:
            return False
        table[0].kept += 1
    entry.used = 1
    entry.endpoint = endpoint
    entry.stream_id = stream_id
    entry.session_id = session_id
    entry.value = value
    return True


@kernel
def remove(table, endpoint, stream_id, session_id):
    """Forget a stream. Returns whether it was there."""
    size = table.size
    hole = _probe(table, endpoint, stream_id, session_id)
    if hole == ABSENT or table[hole].used == 0:
        return False
    kept = count(table)
    index = hole
    for _ in range(size):
        index = (index + 1) & (size - 1)
        entry = table[index]
        if entry.used == 0:
            break
        home = _home(size, entry.endpoint, entry.stream_id, entry.session_id)
        # An entry may fill the hole when its home does not lie cyclically behind the hole.
        if ((index - home) & (size - 1)) >= ((index - hole) & (size - 1)):
            table[hole] = entry
            hole = index
    table[hole].used = 0
    # Another entry may have moved into the first, all of it.
    table[0].kept = kept - 1
    return True
