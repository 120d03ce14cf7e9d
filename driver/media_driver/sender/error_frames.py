"""Error frames on their way from the sender to the conductor: a small ring of whole frames.

    slot i    0             28    32                        1120
              +-------------+-----+-------------------------+
              | source name |     | the error frame         |
              +-------------+-----+-------------------------+

A handoff record is too small for an error's text, so the event that announces a frame carries the
number of its slot. Events keep their order, so one word is enough to give slots back: how many the
conductor has read. When all slots are taken, the sender drops the frame; its receiver repeats it.
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
    """An empty ring, as uint8."""
    return np.zeros(_FIRST + SLOTS * SLOT_LENGTH, dtype=np.uint8)


@kernel
def has_room(ring):
    """For the sender: whether `put` will find a slot."""
    return get_i64(ring, _WRITTEN) - get_i64_acquire(ring, _READ) < SLOTS


@kernel
def put(ring, frames, at, length, name, name_length):
    """For the sender: copy a frame and its source. Returns the slot to announce, or NO_SLOT.

    Memory:  the queue's release of the event that announces the slot publishes the copy
    """
    if length > SLOT_LENGTH - FRAME or not has_room(ring):
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
    """For the conductor: where in the ring an announced slot begins."""
    return _FIRST + slot * SLOT_LENGTH


@kernel
def release(ring):
    """For the conductor: the oldest announced slot may be used again."""
    put_i64_release(ring, _READ, get_i64(ring, _READ) + 1)
