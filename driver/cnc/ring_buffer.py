"""The command ring buffer, with producers in any number of processes and one consumer in the
driver.

`ring` is the to-driver section, uint8[capacity + 768], capacity a power of two.

    0                                                            capacity
    +-----------------------+---------------+-------------------+---------------------------+
    | record, 8-aligned ... | free: zero    | record ...        | trailer (768)             |
    +-----------------------+---------------+-------------------+---------------------------+
    record    0 length, 8 + payload (i32)   4 type (i32)   8 payload
    trailer   128 tail   256 head cache   384 head   512 correlation id   640 heartbeat, epoch ms

The length field is 0 in free space, negative while the producer writes a record, and positive once
the record is complete. Type -1 is padding. Positions count bytes and never wrap; a record never
crosses the end of the buffer. The consumer zeroes a record before it advances the head, because
producers rely on free space being zero. It is in `ring_buffer_reader`.

Source: driver-protocol 6.3.
"""

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import (
    add_i64,
    cas_i64,
    copy,
    get_i32_acquire,
    get_i64_acquire,
    put_i32,
    put_i32_release,
    put_i64_release,
)
from windtunnel.driver.kernels.jit import kernel

LENGTH = 0
TYPE = 4
RECORD_HEADER_LENGTH = 8
ALIGNMENT = 8

TAIL = 128
HEAD_CACHE = 256
HEAD = 384
CORRELATION_ID = 512
CONSUMER_HEARTBEAT_MS = 640
TRAILER_LENGTH = 768

PADDING_TYPE = -1

OK = 0
INSUFFICIENT_CAPACITY = -1
"""Returned by `write` if there is no room until the consumer advances."""
TOO_LONG = -3
"""Returned by `write` if the length is negative or more than an eighth of the capacity."""
BAD_TYPE = -4
"""Returned by `write` for a type below 1, the first valid message type."""

HEARTBEAT_OF_CLOSED = -1
"""The heartbeat value of a driver that has shut down normally."""

_CLAIM_ATTEMPTS_MAX = 1 << 20


@kernel
def capacity(ring):
    return ring.size - TRAILER_LENGTH


@kernel
def max_message_length(ring):
    return (ring.size - TRAILER_LENGTH) // 8


@kernel
def producer_position(ring):
    return get_i64_acquire(ring, ring.size - TRAILER_LENGTH + TAIL)


@kernel
def consumer_position(ring):
    return get_i64_acquire(ring, ring.size - TRAILER_LENGTH + HEAD)


@kernel
def next_correlation_id(ring):
    """Return a new correlation id, unique among all processes that use this ring buffer."""
    return add_i64(ring, ring.size - TRAILER_LENGTH + CORRELATION_ID, 1)


@kernel
def consumer_heartbeat_ms(ring):
    return get_i64_acquire(ring, ring.size - TRAILER_LENGTH + CONSUMER_HEARTBEAT_MS)


@kernel
def set_consumer_heartbeat_ms(ring, now_ms):
    put_i64_release(ring, ring.size - TRAILER_LENGTH + CONSUMER_HEARTBEAT_MS, now_ms)


@kernel
def _record_offset(index, head_index, room_to_end, required):
    """Return the offset at which a record of `required` bytes fits, or -1 if there is no room."""
    if required <= room_to_end:
        return index
    return 0 if required <= head_index else -1


@kernel
def claim(ring, type_id, length):
    """Claim room for a message of `length` bytes. Every claim must end with `commit` or `abort`.

    An unfinished claim blocks the consumer until `unblock` is called.

    Returns: the offset of the payload, INSUFFICIENT_CAPACITY, TOO_LONG or BAD_TYPE
    """
    if type_id < 1:
        return BAD_TYPE
    if length < 0 or length > max_message_length(ring):
        return TOO_LONG
    size = ring.size - TRAILER_LENGTH
    required = align(length + RECORD_HEADER_LENGTH, ALIGNMENT)
    head = get_i64_acquire(ring, size + HEAD_CACHE)
    for _ in range(_CLAIM_ATTEMPTS_MAX):
        tail = get_i64_acquire(ring, size + TAIL)
        index = tail & (size - ALIGNMENT)
        offset = _record_offset(index, head & (size - ALIGNMENT), size - index, required)
        if required > size - (tail - head) or offset < 0:
            head = get_i64_acquire(ring, size + HEAD)
            offset = _record_offset(index, head & (size - ALIGNMENT), size - index, required)
            if required > size - (tail - head) or offset < 0:
                return INSUFFICIENT_CAPACITY
            put_i64_release(ring, size + HEAD_CACHE, head)
        padding = size - index if offset != index else 0
        if cas_i64(ring, size + TAIL, tail, tail + required + padding):
            if padding > 0:
                put_i32_release(ring, index + LENGTH, -padding)
                put_i32(ring, index + TYPE, PADDING_TYPE)
                put_i32_release(ring, index + LENGTH, padding)
            put_i32_release(ring, offset + LENGTH, -(length + RECORD_HEADER_LENGTH))
            put_i32(ring, offset + TYPE, type_id)
            return offset + RECORD_HEADER_LENGTH
    return INSUFFICIENT_CAPACITY


@kernel
def commit(ring, payload_at):
    """Publish a claimed message to the consumer.

    Memory:  the release of the positive length publishes the payload
    Returns: False if `unblock` has already turned the claim into padding
    """
    at = payload_at - RECORD_HEADER_LENGTH
    length = get_i32_acquire(ring, at + LENGTH)
    if length >= 0:
        return False
    put_i32_release(ring, at + LENGTH, -length)
    return True


@kernel
def abort(ring, payload_at):
    """Turn a claim into padding, which the consumer skips. Returns the same values as `commit`."""
    put_i32(ring, payload_at - RECORD_HEADER_LENGTH + TYPE, PADDING_TYPE)
    return commit(ring, payload_at)


@kernel
def write(ring, type_id, source, source_at, length):
    """Append a copy of a message to the ring buffer.

    Returns: OK, INSUFFICIENT_CAPACITY, TOO_LONG or BAD_TYPE
    """
    payload_at = claim(ring, type_id, length)
    if payload_at < 0:
        return payload_at
    copy(ring, payload_at, source, source_at, length)
    commit(ring, payload_at)
    return OK


def is_capacity(length: int) -> bool:
    """Return whether `length` is a valid length in bytes for the to-driver section, including its
    trailer.
    """
    size = length - TRAILER_LENGTH
    return size >= 8 * ALIGNMENT and size & (size - 1) == 0
