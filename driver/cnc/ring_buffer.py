"""The command ring: many producers in any process, one consumer in the driver.

`ring` is the to-driver section, uint8[capacity + 768], capacity a power of two.

    0                                                            capacity
    +-----------------------+---------------+-------------------+---------------------------+
    | record, 8-aligned ... | free: zero    | record ...        | trailer (768)             |
    +-----------------------+---------------+-------------------+---------------------------+
    record    0 length, 8 + payload (i32)   4 type (i32)   8 payload
    trailer   128 tail   256 head cache   384 head   512 correlation id   640 heartbeat, epoch ms

A length is 0 while nobody has claimed the place, negative while its producer writes, positive once
it is whole. Type -1 is padding. Positions count bytes for ever; a record never runs across the
end. The consumer zeroes what it has taken before it moves the head: producers rely on zero meaning
free.

Any producer may have written anything. The consumer believes a length only where the record lies
before the tail and inside the block; otherwise it drops all up to the nearer of the two and says
CORRUPT.
Source: driver-protocol 6.3.
"""

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import (
    add_i64,
    cas_i64,
    copy,
    get_i32,
    get_i32_acquire,
    get_i64,
    get_i64_acquire,
    put_i32,
    put_i32_release,
    put_i64_release,
    zero,
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
NO_MESSAGE = 0
"""Read: nothing is there, or its producer has not finished."""
CORRUPT = -2
"""Read: bytes that cannot be a record were dropped; the second value says how many."""

OK = 0
INSUFFICIENT_CAPACITY = -1
"""Write: no room until the consumer moves on."""
TOO_LONG = -3
"""Write: longer than an eighth of the capacity, or negative."""
BAD_TYPE = -4
"""Write: message types begin at 1."""

HEARTBEAT_OF_CLOSED = -1
"""The heartbeat of a driver that has closed in an orderly manner."""

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
    """An id that nobody else gets, in any process."""
    return add_i64(ring, ring.size - TRAILER_LENGTH + CORRELATION_ID, 1)


@kernel
def consumer_heartbeat_ms(ring):
    return get_i64_acquire(ring, ring.size - TRAILER_LENGTH + CONSUMER_HEARTBEAT_MS)


@kernel
def set_consumer_heartbeat_ms(ring, now_ms):
    put_i64_release(ring, ring.size - TRAILER_LENGTH + CONSUMER_HEARTBEAT_MS, now_ms)


@kernel
def _place(index, head_index, room_to_end, required):
    """Where a record of `required` bytes goes: at `index`, at 0 after a pad, or nowhere (-1)."""
    if required <= room_to_end:
        return index
    return 0 if required <= head_index else -1


@kernel
def claim(ring, type_id, length):
    """Take room for a message of `length` bytes; end with `commit` or `abort`.

    A claim that ends up as neither blocks the consumer until `unblock`.

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
        place = _place(index, head & (size - ALIGNMENT), size - index, required)
        if required > size - (tail - head) or place < 0:
            head = get_i64_acquire(ring, size + HEAD)
            place = _place(index, head & (size - ALIGNMENT), size - index, required)
            if required > size - (tail - head) or place < 0:
                return INSUFFICIENT_CAPACITY
            put_i64_release(ring, size + HEAD_CACHE, head)
        padding = size - index if place != index else 0
        if cas_i64(ring, size + TAIL, tail, tail + required + padding):
            if padding > 0:
                put_i32_release(ring, index + LENGTH, -padding)
                put_i32(ring, index + TYPE, PADDING_TYPE)
                put_i32_release(ring, index + LENGTH, padding)
            put_i32_release(ring, place + LENGTH, -(length + RECORD_HEADER_LENGTH))
            put_i32(ring, place + TYPE, type_id)
            return place + RECORD_HEADER_LENGTH
    return INSUFFICIENT_CAPACITY


@kernel
def commit(ring, payload_at):
    """Show a claimed message to the consumer.

    Memory:  the release of the positive length publishes the payload
    Returns: False when the claim is no longer there, because `unblock` has taken it for a dead one
    """
    at = payload_at - RECORD_HEADER_LENGTH
    length = get_i32_acquire(ring, at + LENGTH)
    if length >= 0:
        return False
    put_i32_release(ring, at + LENGTH, -length)
    return True


@kernel
def abort(ring, payload_at):
    """Give a claim up: the consumer will step over it."""
    put_i32(ring, payload_at - RECORD_HEADER_LENGTH + TYPE, PADDING_TYPE)
    return commit(ring, payload_at)


@kernel
def write(ring, type_id, source, source_at, length):
    """Append a copy of a message.

    Returns: OK, INSUFFICIENT_CAPACITY, TOO_LONG or BAD_TYPE
    """
    payload_at = claim(ring, type_id, length)
    if payload_at < 0:
        return payload_at
    copy(ring, payload_at, source, source_at, length)
    commit(ring, payload_at)
    return OK


@kernel
def has_message(ring):
    """Whether a whole record waits, padding included: cheap, for loops that ask at every turn."""
    size = ring.size - TRAILER_LENGTH
    index = get_i64(ring, size + HEAD) & (size - ALIGNMENT)
    return get_i32_acquire(ring, index + LENGTH) > 0


@kernel
def _extent(ring, index, head):
    """How many bytes from `index` can belong to records: up to the tail or to the end."""
    size = ring.size - TRAILER_LENGTH
    claimed = get_i64_acquire(ring, size + TAIL) - head
    if claimed <= 0 or claimed > size:
        # The tail is spoilt too, so only the end of the ring is certain.
        return size - index
    return min(claimed, size - index)


@kernel
def _consume(ring, index, head, length):
    zero(ring, index, length)
    put_i64_release(ring, ring.size - TRAILER_LENGTH + HEAD, head + length)


@kernel
def _believable(length, extent):
    return length >= RECORD_HEADER_LENGTH and align(length, ALIGNMENT) <= extent


@kernel
def peek(ring, scratch):
    """Copy the next message into `scratch` and leave it in the ring; padding before it is consumed.

    Shapes:  scratch uint8[n], `max_message_length` bytes hold any message
    Memory:  the acquire of the length makes the payload visible
    Returns: (type, length) of a message; (NO_MESSAGE, 0); (CORRUPT, bytes dropped)
    """
    size = ring.size - TRAILER_LENGTH
    # Padding is met at the end, after an abort and after an unblock; this many turns pass a whole
    # ring of nothing else.
    for _ in range(size // ALIGNMENT):
        head = get_i64(ring, size + HEAD)
        index = head & (size - ALIGNMENT)
        length = get_i32_acquire(ring, index + LENGTH)
        if length <= 0:
            return NO_MESSAGE, 0
        extent = _extent(ring, index, head)
        if not _believable(length, extent):
            _consume(ring, index, head, extent)
            return CORRUPT, extent
        type_id = get_i32(ring, index + TYPE)
        payload_length = length - RECORD_HEADER_LENGTH
        if type_id >= 1 and payload_length <= scratch.size:
            copy(scratch, 0, ring, index + RECORD_HEADER_LENGTH, payload_length)
            return type_id, payload_length
        taken = align(length, ALIGNMENT)
        _consume(ring, index, head, taken)
        if type_id != PADDING_TYPE:
            return CORRUPT, taken
    return NO_MESSAGE, 0


@kernel
def advance(ring):
    """Consume the record that `peek` has shown. Returns the bytes freed."""
    size = ring.size - TRAILER_LENGTH
    head = get_i64(ring, size + HEAD)
    index = head & (size - ALIGNMENT)
    length = get_i32_acquire(ring, index + LENGTH)
    if length <= 0:
        return 0
    extent = _extent(ring, index, head)
    taken = align(length, ALIGNMENT) if _believable(length, extent) else extent
    _consume(ring, index, head, taken)
    return taken


@kernel
def read(ring, scratch):
    """Move the next message into `scratch`; see `peek` for what comes back."""
    type_id, length = peek(ring, scratch)
    if type_id > NO_MESSAGE:
        advance(ring)
    return type_id, length


@kernel
def _is_zero_between(ring, first, past_last):
    """Whether every length field is still zero, looked at from the back as producers fill it."""
    at = past_last - ALIGNMENT
    while at >= first:
        if get_i32_acquire(ring, at) != 0:
            return False
        at -= ALIGNMENT
    return True


@kernel
def _pad(ring, index, length):
    put_i32(ring, index + TYPE, PADDING_TYPE)
    put_i32_release(ring, index + LENGTH, length)
    return True


@kernel
def unblock(ring):
    """Turn the claim of a dead producer at the head into padding, so that the consumer can go on.

    Call it only when the head has not moved for longer than any living producer needs.

    Returns: whether something was unblocked
    """
    size = ring.size - TRAILER_LENGTH
    head = get_i64_acquire(ring, size + HEAD)
    tail = get_i64_acquire(ring, size + TAIL)
    if head == tail:
        return False
    index = head & (size - ALIGNMENT)
    length = get_i32_acquire(ring, index + LENGTH)
    extent = _extent(ring, index, head)
    if length > 0:
        return False
    if length < 0:
        return _pad(ring, index, -length if _believable(-length, extent) else extent)
    at = index + ALIGNMENT
    while at < index + extent:
        if get_i32_acquire(ring, at) != 0:
            return _is_zero_between(ring, index, at) and _pad(ring, index, at - index)
        at += ALIGNMENT
    # All is zero up to the end, and later records lie at the start: no record crosses the end, so
    # the dead claim reaches exactly to it. A claim that is the very last one has no known length.
    if tail - head > extent and _is_zero_between(ring, index, index + extent):
        return _pad(ring, index, extent)
    return False


def make_scratch(ring: np.ndarray) -> np.ndarray:
    """Room for the longest message that the ring can carry."""
    return np.zeros(int(max_message_length(ring)), dtype=np.uint8)


def is_capacity(length: int) -> bool:
    """Whether a section of `length` bytes can be a ring."""
    size = length - TRAILER_LENGTH
    return size >= 8 * ALIGNMENT and size & (size - 1) == 0
