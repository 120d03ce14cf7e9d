"""Unblocks a stream whose publisher died between claim and commit.

This applies only to concurrent publications: an exclusive one has no other publisher to block.
Source: driver-protocol 5.1.
"""

from windtunnel.driver.base.arith import bits_to_shift, wrap_i32
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import descriptor, frame, position

NO_ACTION = 0
UNBLOCKED = 1
UNBLOCKED_TO_END = 2


@kernel
def is_zero_between(log, base, begin, end):
    """Return whether all frame length fields in the range are 0. Scans backwards."""
    for offset in range(end - frame.FRAME_ALIGNMENT, begin - 1, -frame.FRAME_ALIGNMENT):
        if frame.frame_length_acquire(log, base + offset) != 0:
            return False
    return True


@kernel
def unblock_term(log, base, meta_at, term_length, offset, tail_offset, term_id):
    """Replace the claim that blocks the term at `offset` with padding.

    Returns: NO_ACTION, UNBLOCKED, or UNBLOCKED_TO_END if the padding extends to the end of the term
    """
    if offset >= tail_offset:
        return NO_ACTION
    frame_length = frame.frame_length_acquire(log, base + offset)
    if frame_length > 0:
        return NO_ACTION
    if frame_length < 0:
        # The claim states its length. Padding cannot repair a claim beyond the end of the term.
        if offset + frame.aligned(-frame_length) > term_length:
            return NO_ACTION
        frame.overwrite_with_padding(log, base + offset, meta_at, -frame_length, term_id, offset)
        return UNBLOCKED
    end = offset + frame.FRAME_ALIGNMENT
    while end < tail_offset and frame.frame_length_acquire(log, base + end) == 0:
        end += frame.FRAME_ALIGNMENT
    if end < tail_offset:
        if not is_zero_between(log, base, offset, end):
            return NO_ACTION
        frame.overwrite_with_padding(log, base + offset, meta_at, end - offset, term_id, offset)
        return UNBLOCKED
    if end == term_length and frame.frame_length_acquire(log, base + offset) == 0:
        frame.overwrite_with_padding(log, base + offset, meta_at, end - offset, term_id, offset)
        return UNBLOCKED_TO_END
    return NO_ACTION


@kernel
def unblock(log, meta_at, term_length, initial_term_id, blocked_position):
    """Unblock a stream at the position where its consumer has been waiting too long.

    The driver passes the term length and initial term id, because publishers may have overwritten
    the values in the log. The position is validated, because publishers can also write its counter.

    Returns: whether this call changed the log
    """
    if blocked_position < 0 or blocked_position % frame.FRAME_ALIGNMENT != 0:
        return False
    bits = bits_to_shift(term_length)
    blocked_count = wrap_i32(blocked_position >> bits)
    offset = position.term_offset(blocked_position, term_length)
    count = descriptor.active_term_count_acquire(log, meta_at)
    if offset == 0 and count == wrap_i32(blocked_count - 1):
        # The publisher died after it wrote the padding and before it rotated the log.
        return descriptor.rotate(log, meta_at, count, wrap_i32(count + initial_term_id))
    index = position.index_of_count(blocked_count)
    raw_tail = descriptor.raw_tail_acquire(log, meta_at, index)
    term_id = descriptor.tail_term_id(raw_tail)
    tail_offset = descriptor.tail_offset(raw_tail, term_length)
    base = index * term_length
    status = unblock_term(log, base, meta_at, term_length, offset, tail_offset, term_id)
    if status == UNBLOCKED_TO_END:
        descriptor.rotate(log, meta_at, blocked_count, term_id)
    return status != NO_ACTION
