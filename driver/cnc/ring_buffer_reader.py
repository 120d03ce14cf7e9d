"""The consumer of the command ring buffer, in the driver: reads records, and recovers from invalid
ones.

Producers may write any bytes. The consumer accepts a length only if the record ends before the tail
and within the buffer; otherwise it drops the bytes up to the next plausible record and returns
CORRUPT. It aligns an unaligned tail, and resets one that no sequence of claims can have produced.
"""

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import (
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
from windtunnel.driver.cnc.ring_buffer import (
    ALIGNMENT,
    HEAD,
    HEAD_CACHE,
    LENGTH,
    PADDING_TYPE,
    RECORD_HEADER_LENGTH,
    TAIL,
    TRAILER_LENGTH,
    TYPE,
    max_message_length,
)
from windtunnel.driver.kernels.jit import kernel

NO_MESSAGE = 0
"""Returned by `read` if the buffer is empty or the next record is not complete."""
CORRUPT = -2
"""Returned by `read` after it dropped invalid bytes. The second value is their number."""
_PLAUSIBLE_RECORDS = 4
"""Number of consecutive valid records after which a position counts as plausible. Fewer are enough
if they are followed by the tail or by free space. Reading continues there after invalid bytes."""
_PLAUSIBLE_TYPE_MAX = 0xFFFF


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
