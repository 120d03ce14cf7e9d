"""A hash map from (endpoint, stream id, session id) to an integer, used by one agent.

Open addressing with linear probing. A removal shifts later entries back, so there are no tombstones
and a probe always ends at an empty entry. `insert` keeps one entry free and fails when the table is
full. The first entry also holds the number of entries in use.
"""

import numpy as np

from windtunnel.driver.kernels.jit import kernel

STREAM_ENTRY = np.dtype(
    (
        np.record,
        [
            ("used", "i8"),
            ("endpoint", "i8"),  # slot of the channel endpoint
            ("stream_id", "i8"),
            ("session_id", "i8"),
            ("value", "i8"),  # usually a slot
            ("entry_count", "i8"),  # first entry only: number of entries in use
        ],
    )
)

ABSENT = -1


def make_stream_map(capacity: int) -> np.recarray:
    """Create an empty map for at least `capacity` streams. The map is an array of STREAM_ENTRY
    records whose length is a power of two.
    """
    size = 2
    while size < 2 * capacity:
        size *= 2
    return np.zeros(size, dtype=STREAM_ENTRY).view(np.recarray)


@kernel
def home(size, endpoint, stream_id, session_id):
    """Return the index of the entry at which the search for a stream begins, in a table of `size`
    entries.
    """
    mixed = (endpoint * 0x1E35A7BD) ^ (stream_id * 0x27D4EB2F) ^ (session_id * 0x165667B1)
    mixed = mixed & 0x7FFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 15) ^ (mixed >> 31)) & (size - 1)


@kernel
def _probe(table, endpoint, stream_id, session_id):
    size = table.size
    index = home(size, endpoint, stream_id, session_id)
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
    """Return the value stored for a stream, or ABSENT if the map does not contain the stream."""
    index = _probe(table, endpoint, stream_id, session_id)
    if index == ABSENT or table[index].used == 0:
        return ABSENT
    return table[index].value


@kernel
def count(table):
    """Return the number of streams in the map."""
    return table[0].entry_count


@kernel
def insert(table, endpoint, stream_id, session_id, value):
    """Store a value for a stream, replacing any existing value. Returns False if the map is
    full.
    """
    index = _probe(table, endpoint, stream_id, session_id)
    if index == ABSENT:
        return False
    entry = table[index]
    if entry.used == 0:
        if count(table) >= table.size - 1:
            return False
        table[0].entry_count += 1
    entry.used = 1
    entry.endpoint = endpoint
    entry.stream_id = stream_id
    entry.session_id = session_id
    entry.value = value
    return True


@kernel
def remove(table, endpoint, stream_id, session_id):
    """Remove a stream from the map. Returns whether the map contained it."""
    size = table.size
    vacant = _probe(table, endpoint, stream_id, session_id)
    if vacant == ABSENT or table[vacant].used == 0:
        return False
    entry_count = count(table)
    index = vacant
    for _ in range(size):
        index = (index + 1) & (size - 1)
        entry = table[index]
        if entry.used == 0:
            break
        home_index = home(size, entry.endpoint, entry.stream_id, entry.session_id)
        # Move the entry unless its home lies cyclically after the vacant slot.
        if ((index - home_index) & (size - 1)) >= ((index - vacant) & (size - 1)):
            table[vacant] = entry
            vacant = index
    table[vacant].used = 0
    # The first entry may have been overwritten, including its count.
    table[0].entry_count = entry_count - 1
    return True
