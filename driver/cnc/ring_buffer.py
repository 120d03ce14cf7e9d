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
producers rely on free space being zero.

Producers may write any bytes. The consumer accepts a length only if the record ends before the tail
and within the buffer; otherwise it drops the bytes up to the next plausible record and returns
CORRUPT. It aligns an unaligned tail, and resets one that no sequence of claims can have produced.
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
"""Returned by `read` if the buffer is empty or the next record is not complete."""
CORRUPT = -2
"""Returned by `read` after it dropped invalid bytes. The second value is their number."""

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

_PLAUSIBLE_RECORDS = 4
"""Number of consecutive valid records after which a position counts as plausible. Fewer are enough
if they are followed by the tail or by free space. Reading continues there after invalid bytes."""
_PLAUSIBLE_TYPE_MAX = 0xFFFF


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


@kernel
def has_message(ring):
    """Return whether a complete record is available. Padding counts as a record."""
    size = ring.size - TRAILER_LENGTH
    index = get_i64(ring, size + HEAD) & (size - ALIGNMENT)
    return get_i32_acquire(ring, index + LENGTH) > 0


@kernel
def _extent(ring, index, head):
    """Return the number of contiguous bytes from `index` that can contain claimed records: up to
    the tail or to the end of the buffer.
    """
    size = ring.size - TRAILER_LENGTH
    claimed = get_i64_acquire(ring, size + TAIL) - head
    if claimed <= 0 or claimed > size:
        # The tail is invalid too, so only the end of the buffer limits the record.
        return size - index
    return min(claimed, size - index)


@kernel
def _consume(ring, index, head, length):
    zero(ring, index, length)
    put_i64_release(ring, ring.size - TRAILER_LENGTH + HEAD, head + length)


@kernel
def _is_valid_length(length, extent):
    return length >= RECORD_HEADER_LENGTH and align(length, ALIGNMENT) <= extent


@kernel
def _pad(ring, index, length):
    put_i32(ring, index + TYPE, PADDING_TYPE)
    put_i32_release(ring, index + LENGTH, length)
    return True


@kernel
def _is_chain(ring, at, end):
    """Return whether a chain of valid records, complete or claimed, begins at offset `at`."""
    count = 0
    while at < end and count < _PLAUSIBLE_RECORDS:
        length = abs(get_i32_acquire(ring, at + LENGTH))
        type_id = get_i32(ring, at + TYPE)
        if length == 0:
            break
        is_type = type_id == PADDING_TYPE or 1 <= type_id <= _PLAUSIBLE_TYPE_MAX
        if not is_type or not _is_valid_length(length, end - at):
            return False
        at += align(length, ALIGNMENT)
        count += 1
    return count > 0


@kernel
def _may_resume(ring, at, end):
    """Return whether reading can resume at offset `at`, because only free space or valid records
    follow.
    """
    while at < end and get_i32_acquire(ring, at + LENGTH) == 0:
        at += ALIGNMENT
    return at >= end or _is_chain(ring, at, end)


@kernel
def _invalid_extent(ring, index, extent):
    """Return the distance in bytes from an invalid record to the next plausible record."""
    at = index + ALIGNMENT
    while at < index + extent and not _is_chain(ring, at, index + extent):
        at += ALIGNMENT
    return at - index


@kernel
def _claim_extent(ring, index, extent):
    """Return the length of a claim in bytes. If the claim's length field is wrong, the claim ends
    at the next plausible record.
    """
    length = -get_i32_acquire(ring, index + LENGTH)
    is_valid = _is_valid_length(length, extent)
    if is_valid and _may_resume(ring, index + align(length, ALIGNMENT), index + extent):
        return length
    found = _invalid_extent(ring, index, extent)
    return length if is_valid and found == extent else found


@kernel
def _repair_positions(ring):
    """Correct a head or tail position that is unaligned or out of range. Returns the number of
    bytes dropped.
    """
    size = ring.size - TRAILER_LENGTH
    head = get_i64(ring, size + HEAD)
    tail = get_i64_acquire(ring, size + TAIL)
    if (head | tail) & (ALIGNMENT - 1) == 0 and 0 <= tail - head <= size:
        return 0
    aligned_head = (head + ALIGNMENT - 1) & -ALIGNMENT
    aligned_tail = (tail + ALIGNMENT - 1) & -ALIGNMENT
    if 0 <= aligned_tail - aligned_head <= size:
        put_i64_release(ring, size + HEAD, aligned_head)
        if not cas_i64(ring, size + TAIL, tail, aligned_tail):
            return 0
        # No producer has claimed the bytes up to the aligned tail.
        if tail != aligned_tail and aligned_tail > aligned_head:
            _pad(ring, (aligned_tail - ALIGNMENT) & (size - ALIGNMENT), ALIGNMENT)
        return ALIGNMENT
    zero(ring, 0, size)
    put_i64_release(ring, size + HEAD_CACHE, aligned_head)
    put_i64_release(ring, size + HEAD, aligned_head)
    cas_i64(ring, size + TAIL, tail, aligned_head)
    return size


@kernel
def peek(ring, scratch):
    """Copy the next message into `scratch` without consuming the message. Consumes any padding
    before it.

    Shapes:  scratch uint8[n], `max_message_length` bytes hold any message
    Memory:  the acquire of the length makes the payload visible
    Returns: (type, length) of a message; (NO_MESSAGE, 0); (CORRUPT, bytes dropped)
    """
    size = ring.size - TRAILER_LENGTH
    dropped = _repair_positions(ring)
    if dropped > 0:
        return CORRUPT, dropped
    # Padding occurs at the end of the buffer, after an abort and after an unblock. This many
    # iterations are enough to skip a buffer full of padding.
    for _ in range(size // ALIGNMENT):
        head = get_i64(ring, size + HEAD)
        index = head & (size - ALIGNMENT)
        length = get_i32_acquire(ring, index + LENGTH)
        if length <= 0:
            return NO_MESSAGE, 0
        extent = _extent(ring, index, head)
        if not _is_valid_length(length, extent):
            skipped = _invalid_extent(ring, index, extent)
            _consume(ring, index, head, skipped)
            return CORRUPT, skipped
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
    """Consume the record that `peek` returned. Returns the number of bytes freed."""
    size = ring.size - TRAILER_LENGTH
    head = get_i64(ring, size + HEAD)
    index = head & (size - ALIGNMENT)
    length = get_i32_acquire(ring, index + LENGTH)
    if length <= 0:
        return 0
    extent = _extent(ring, index, head)
    is_valid = _is_valid_length(length, extent)
    taken = align(length, ALIGNMENT) if is_valid else _invalid_extent(ring, index, extent)
    _consume(ring, index, head, taken)
    return taken


@kernel
def read(ring, scratch):
    """Copy the next message into `scratch` and consume it. Returns the same values as `peek`."""
    type_id, length = peek(ring, scratch)
    if type_id > NO_MESSAGE:
        advance(ring)
    return type_id, length


@kernel
def _is_zero_between(ring, first, past_last):
    """Return whether all length fields in a range are zero. Scans backwards, because producers
    write forwards.
    """
    at = past_last - ALIGNMENT
    while at >= first:
        if get_i32_acquire(ring, at) != 0:
            return False
        at -= ALIGNMENT
    return True


@kernel
def unblock(ring):
    """Turn a dead producer's claim at the head into padding, so the consumer can continue.

    Call it only when the head has not moved for longer than any live producer needs.

    Returns: whether a claim was unblocked
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
        return _pad(ring, index, _claim_extent(ring, index, extent))
    at = index + ALIGNMENT
    while at < index + extent:
        if get_i32_acquire(ring, at) != 0:
            return _is_zero_between(ring, index, at) and _pad(ring, index, at - index)
        at += ALIGNMENT
    # All bytes up to the end are zero and later records are at the start. No record crosses the
    # end, so the dead claim extends to it. The length of the very last claim cannot be determined.
    if tail - head > extent and _is_zero_between(ring, index, index + extent):
        return _pad(ring, index, extent)
    return False


def make_scratch(ring: np.ndarray) -> np.ndarray:
    """Allocate a buffer for the longest message that the ring buffer can carry."""
    return np.zeros(int(max_message_length(ring)), dtype=np.uint8)


def is_capacity(length: int) -> bool:
    """Return whether `length` is a valid length in bytes for the to-driver section, including its
    trailer.
    """
    size = length - TRAILER_LENGTH
    return size >= 8 * ALIGNMENT and size & (size - 1) == 0
