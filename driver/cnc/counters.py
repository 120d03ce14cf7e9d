"""Counters: 64-bit values in shared memory, each with a type, a key and a label.

A counter is `(values, counter_id)`: `values` is the values section of the file, uint8[n * 128].

    value record      0        8                16         24             32        128
                      +--------+----------------+----------+--------------+---------+
                      | value  |registration id | owner id | reference id | padding |
                      +--------+----------------+----------+--------------+---------+
    metadata record   0       4       8                    16       128     132     512
                      +-------+-------+--------------------+--------+-------+-------+
                      | state | type  | reuse deadline, ms | key    |label n| label |
                      +-------+-------+--------------------+--------+-------+-------+

The state is stored last, with release ordering. The first UNUSED record ends the list. A value has
one writer, unless all writers use `add_atomic`.
Source: driver-protocol 6.5.
"""

from windtunnel.driver.base.atomics import (
    add_i64,
    get_i32,
    get_i32_acquire,
    get_i64,
    get_i64_acquire,
    put_i64,
    put_i64_release,
)
from windtunnel.driver.kernels.jit import kernel

COUNTER_LENGTH = 128
VALUE = 0
REGISTRATION_ID = 8
OWNER_ID = 16
REFERENCE_ID = 24

METADATA_LENGTH = 512
STATE = 0
TYPE_ID = 4
FREE_FOR_REUSE_DEADLINE_MS = 8
KEY = 16
KEY_LENGTH_MAX = 112
LABEL_LENGTH = KEY + KEY_LENGTH_MAX
LABEL = LABEL_LENGTH + 4
LABEL_LENGTH_MAX = METADATA_LENGTH - LABEL

UNUSED = 0
ALLOCATED = 1
RECLAIMED = -1

NULL_COUNTER_ID = -1

assert LABEL_LENGTH_MAX == 380


@kernel
def get(values, counter_id):
    return get_i64(values, counter_id * COUNTER_LENGTH)


@kernel
def get_acquire(values, counter_id):
    return get_i64_acquire(values, counter_id * COUNTER_LENGTH)


@kernel
def set(values, counter_id, value):
    put_i64(values, counter_id * COUNTER_LENGTH, value)


@kernel
def set_release(values, counter_id, value):
    put_i64_release(values, counter_id * COUNTER_LENGTH, value)


@kernel
def add(values, counter_id, delta):
    """Add to a counter that has a single writer.

    Memory: plain load, release store; concurrent writers would lose updates
    """
    at = counter_id * COUNTER_LENGTH
    put_i64_release(values, at, get_i64(values, at) + delta)


@kernel
def increment(values, counter_id):
    """Add one to a counter that has a single writer."""
    at = counter_id * COUNTER_LENGTH
    put_i64_release(values, at, get_i64(values, at) + 1)


@kernel
def add_atomic(values, counter_id, delta):
    """Add to a counter that has several writers. Returns the previous value."""
    return add_i64(values, counter_id * COUNTER_LENGTH, delta)


@kernel
def propose_max_release(values, counter_id, value):
    """Set a counter with a single writer to `value` if `value` is greater than the counter's
    current value.

    Returns whether it was set.
    """
    at = counter_id * COUNTER_LENGTH
    if value <= get_i64(values, at):
        return False
    put_i64_release(values, at, value)
    return True


@kernel
def registration_id(values, counter_id):
    return get_i64_acquire(values, counter_id * COUNTER_LENGTH + REGISTRATION_ID)


@kernel
def owner_id(values, counter_id):
    return get_i64(values, counter_id * COUNTER_LENGTH + OWNER_ID)


@kernel
def reference_id(values, counter_id):
    return get_i64(values, counter_id * COUNTER_LENGTH + REFERENCE_ID)


@kernel
def state(metadata, counter_id):
    return get_i32_acquire(metadata, counter_id * METADATA_LENGTH + STATE)


@kernel
def type_id(metadata, counter_id):
    return get_i32(metadata, counter_id * METADATA_LENGTH + TYPE_ID)


@kernel
def capacity(metadata, values):
    """Return the number of counters that fit into both the metadata section and the
    values section.
    """
    return min(metadata.size // METADATA_LENGTH, values.size // COUNTER_LENGTH)


@kernel
def is_active(metadata, values, counter_id, expected_registration_id):
    """Return whether a counter is allocated and still has the given registration id.

    A reader that stores counter ids must check this, because a freed id may be reused after a
    second.
    """
    if counter_id < 0 or counter_id >= capacity(metadata, values):
        return False
    return (
        state(metadata, counter_id) == ALLOCATED
        and registration_id(values, counter_id) == expected_registration_id
    )


@kernel
def find(metadata, values, expected_type_id, expected_registration_id):
    """Return the id of the first allocated counter with this type and registration id, or
    NULL_COUNTER_ID.
    """
    for counter_id in range(capacity(metadata, values)):
        current = state(metadata, counter_id)
        if current == UNUSED:
            return NULL_COUNTER_ID
        if (
            current == ALLOCATED
            and type_id(metadata, counter_id) == expected_type_id
            and registration_id(values, counter_id) == expected_registration_id
        ):
            return counter_id
    return NULL_COUNTER_ID
