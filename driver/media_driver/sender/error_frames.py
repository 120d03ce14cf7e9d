"""A ring buffer through which the sender passes received error frames to the conductor.

    slot i    0             28    32                        1120
              +-------------+-----+-------------------------+
              | source name |     | the error frame         |
              +-------------+-----+-------------------------+

An event record is too small for the message in an error frame, so the event contains the index of a
slot in this ring. Events are ordered, so a read count is sufficient to free slots. If all slots are
in use, the sender drops the frame. The receiver will send it again.
"""

import numpy as np

from windtunnel.driver.base.atomics import copy, get_i64, get_i64_acquire, put_i64, put_i64_release
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import error

FRAME = 32
SLOT_LENGTH = 1120
SLOTS = 32
_WRITTEN = 0
_READ = 64
_FIRST = 128
NO_SLOT = -1
assert FRAME + error.LENGTH_MAX <= SLOT_LENGTH, "a slot holds the longest error frame"


def make_error_frames() -> np.ndarray:
    """Create an empty ring of error frames, as a uint8 array."""
    return np.zeros(_FIRST + SLOTS * SLOT_LENGTH, dtype=np.uint8)


@kernel
def has_free_slot(ring):
    """Return whether the ring has a free slot. Called by the sender."""
    return get_i64(ring, _WRITTEN) - get_i64_acquire(ring, _READ) < SLOTS


@kernel
def put(ring, frames, at, length, name, name_length):
    """Copy a frame and its source address into a free slot. Returns the slot, or NO_SLOT if the
    frame is too long or no slot is free.

    Memory:  the event queue's release store publishes the copy
    """
    if length > SLOT_LENGTH - FRAME or not has_free_slot(ring):
        return NO_SLOT
    written = get_i64(ring, _WRITTEN)
    slot = written % SLOTS
    start = _FIRST + slot * SLOT_LENGTH
    copy(ring, start, name, 0, min(max(name_length, 0), NAME_LENGTH_MAX))
    copy(ring, start + FRAME, frames, at, length)
    put_i64(ring, _WRITTEN, written + 1)
    return slot


@kernel
def slot_at(slot):
    """Return the byte offset of a slot in the ring. Called by the conductor."""
    return _FIRST + slot * SLOT_LENGTH


@kernel
def release(ring):
    """Free the oldest slot in use. Called by the conductor."""
    put_i64_release(ring, _READ, get_i64(ring, _READ) + 1)
