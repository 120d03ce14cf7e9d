"""The broadcast buffer, through which the driver transmits to any number of clients without waiting
for them.

`broadcast` is the to-clients section, uint8[capacity + 128], capacity a power of two.

    0                                                      capacity
    +------------------------------------------------------+------------------------------------+
    | record, 8-aligned ...                                | 0 tail intent  8 tail  16 latest   |
    +------------------------------------------------------+------------------------------------+
    record    0 length, 8 + payload (i32)   4 type (i32)   8 payload

Records have the same layout as in the command ring buffer, but are never zeroed. The transmitter
stores the tail intent before it writes, so after copying a record a receiver can check whether it
was overwritten during the copy. If a client is too slow, its next record is overwritten: `receive`
returns LAPPED, and the client cannot continue.
Source: driver-protocol 6.4.
"""

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import (
    acquire_fence,
    copy,
    full_fence,
    get_i32,
    get_i64,
    get_i64_acquire,
    put_i32,
    put_i64_release,
)
from windtunnel.driver.kernels.jit import kernel

LENGTH = 0
TYPE = 4
RECORD_HEADER_LENGTH = 8
ALIGNMENT = 8

TAIL_INTENT = 0
TAIL = 8
LATEST = 16
TRAILER_LENGTH = 128

PADDING_TYPE = -1
NO_MESSAGE = 0
LAPPED = -1
"""Returned by `receive` when messages were lost. The receiver continues at the latest record."""
CORRUPT = -2
"""Returned by `receive` for an invalid record. The receiver continues at the tail."""

OK = 0
TOO_LONG = -3
BAD_TYPE = -4

RECEIVER = np.dtype(
    (
        np.record,
        [
            ("cursor", "i8"),  # position of the last record that was received
            ("next", "i8"),  # position of the next record
            ("lapped_count", "i8"),
        ],
    )
)


@kernel
def max_message_length(broadcast):
    return (broadcast.size - TRAILER_LENGTH) // 8


@kernel
def tail_position(broadcast):
    return get_i64_acquire(broadcast, broadcast.size - TRAILER_LENGTH + TAIL)


@kernel
def latest_position(broadcast):
    return get_i64_acquire(broadcast, broadcast.size - TRAILER_LENGTH + LATEST)


@kernel
def transmit(broadcast, type_id, source, source_at, length):
    """Transmit a message to all clients. Only the single transmitter may call this function.

    Memory:  the intent and a full fence precede the first byte of the record; the release of the
             tail publishes it
    Returns: OK, TOO_LONG or BAD_TYPE
    """
    if type_id < 1:
        return BAD_TYPE
    if length < 0 or length > max_message_length(broadcast):
        return TOO_LONG
    size = broadcast.size - TRAILER_LENGTH
    tail = get_i64(broadcast, size + TAIL)
    at = tail & (size - ALIGNMENT)
    required = align(length + RECORD_HEADER_LENGTH, ALIGNMENT)
    room_to_end = size - at
    padding = room_to_end if room_to_end < required else 0
    put_i64_release(broadcast, size + TAIL_INTENT, tail + padding + required)
    full_fence()
    if padding > 0:
        put_i32(broadcast, at + LENGTH, padding)
        put_i32(broadcast, at + TYPE, PADDING_TYPE)
        tail += padding
        at = 0
    put_i32(broadcast, at + LENGTH, length + RECORD_HEADER_LENGTH)
    put_i32(broadcast, at + TYPE, type_id)
    copy(broadcast, at + RECORD_HEADER_LENGTH, source, source_at, length)
    put_i64_release(broadcast, size + LATEST, tail)
    put_i64_release(broadcast, size + TAIL, tail + required)
    return OK


@kernel
def _is_overwritten(broadcast, position):
    """Return whether the transmitter has begun to overwrite the record at `position`."""
    size = broadcast.size - TRAILER_LENGTH
    return position + size <= get_i64_acquire(broadcast, size + TAIL_INTENT)


@kernel
def _is_valid_length(length, at, size):
    return length >= RECORD_HEADER_LENGTH and at + align(length, ALIGNMENT) <= size


@kernel
def _lap(broadcast, rec):
    rec.lapped_count += 1
    rec.next = latest_position(broadcast)
    return LAPPED, 0


@kernel
def _skip_invalid(broadcast, rec, position):
    """Skip an invalid record at `position`. Returns LAPPED if the record was overwritten, otherwise
    CORRUPT.
    """
    acquire_fence()
    if _is_overwritten(broadcast, position):
        return _lap(broadcast, rec)
    rec.next = tail_position(broadcast)
    return CORRUPT, 0


@kernel
def receive(broadcast, receiver, scratch):
    """Copy the next message from the broadcast buffer into `scratch`.

    Shapes:  receiver RECEIVER[1]; scratch uint8[n], `max_message_length` bytes hold any message
    Memory:  after the copy, the intent is read again after an acquire fence
    Returns: (type, length) of a message; (NO_MESSAGE, 0), (LAPPED, 0) or (CORRUPT, 0)
    """
    rec = receiver[0]
    size = broadcast.size - TRAILER_LENGTH
    position = int(rec.next)
    if tail_position(broadcast) <= position:
        return NO_MESSAGE, 0
    if _is_overwritten(broadcast, position):
        return _lap(broadcast, rec)
    at = position & (size - ALIGNMENT)
    length = get_i32(broadcast, at + LENGTH)
    type_id = get_i32(broadcast, at + TYPE)
    if type_id == PADDING_TYPE:
        if not _is_valid_length(length, at, size):
            return _skip_invalid(broadcast, rec, position)
        acquire_fence()
        if _is_overwritten(broadcast, position):
            # The record was overwritten: what looked like padding was part of a newer record.
            return _lap(broadcast, rec)
        position += align(length, ALIGNMENT)
        at = 0
        length = get_i32(broadcast, at + LENGTH)
        type_id = get_i32(broadcast, at + TYPE)
    payload_length = length - RECORD_HEADER_LENGTH
    if type_id < 1 or not _is_valid_length(length, at, size) or payload_length > scratch.size:
        return _skip_invalid(broadcast, rec, position)
    copy(scratch, 0, broadcast, at + RECORD_HEADER_LENGTH, payload_length)
    acquire_fence()
    if _is_overwritten(broadcast, position):
        return _lap(broadcast, rec)
    rec.cursor = position
    rec.next = position + align(length, ALIGNMENT)
    return type_id, payload_length


def make_receiver(broadcast: np.ndarray) -> np.recarray:
    """Create a receiver that starts at the latest record."""
    receiver = np.zeros(1, dtype=RECEIVER).view(np.recarray)
    receiver[0].cursor = receiver[0].next = latest_position(broadcast)
    return receiver


def make_scratch(broadcast: np.ndarray) -> np.ndarray:
    """Allocate a buffer for the longest message that the broadcast buffer can carry."""
    return np.zeros(int(max_message_length(broadcast)), dtype=np.uint8)


def is_capacity(length: int) -> bool:
    """Return whether `length` is a valid length in bytes for the to-clients section, including its
    trailer.
    """
    size = length - TRAILER_LENGTH
    return size >= 8 * ALIGNMENT and size & (size - 1) == 0
