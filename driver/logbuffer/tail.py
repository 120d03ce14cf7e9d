"""Claims space at the tail of a log, for shared and for exclusive publications.

A claim gets either `framed_length` bytes of the active term or nothing. If the term is too short,
the claim pads the rest of the term, rotates to the next term, and returns ADMIN_ACTION.

`appender` is the length-1 record array declared in `appender`. A concurrent publication's record is
only read here, so several threads may share it. An exclusive publication's record holds its tail.
Source: driver-protocol 2.5, 2.6.
"""

from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.base.atomics import add_i64
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import descriptor, frame, position
from windtunnel.driver.logbuffer import publication_result as result


@kernel
def framed_length(length, max_payload_length):
    """Return the number of bytes that a message occupies in a term, with headers and alignment."""
    whole = length // max_payload_length
    rest = length - whole * max_payload_length
    # An empty message is one empty frame.
    last = frame.aligned(rest + frame.HEADER_LENGTH) if whole == 0 or rest > 0 else 0
    return whole * frame.aligned(max_payload_length + frame.HEADER_LENGTH) + last


@kernel
def back_pressure(log, meta_at, term_length, at_position, length):
    """Return the error code for a message that begins at or beyond the publication limit."""
    needed = frame.aligned(length + frame.HEADER_LENGTH)
    if at_position + needed >= position.max_possible(term_length):
        return result.MAX_POSITION_EXCEEDED
    if descriptor.is_connected_acquire(log, meta_at):
        return result.BACK_PRESSURED
    return result.NOT_CONNECTED


@kernel
def refuse_length(appender, log, limit, length):
    """Return the error code for a message that is longer than the longest one: ERROR, or the reason
    why nothing at all can be written now.
    """
    state = appender[0]
    at_position = state.term_begin_position + state.term_offset
    if state.is_exclusive == 0:
        count = descriptor.active_term_count_acquire(log, state.meta_at)
        seen = descriptor.raw_tail_acquire(log, state.meta_at, position.index_of_count(count))
        if count != wrap_i32(descriptor.tail_term_id(seen) - state.initial_term_id):
            return result.ADMIN_ACTION
        at_position = (count << state.bits) + descriptor.tail_offset(seen, state.term_length)
    if at_position >= limit:
        return back_pressure(log, state.meta_at, state.term_length, at_position, length)
    return result.ERROR


@kernel
def claim(appender, log, limit, framed_length, length):
    """Claim the next `framed_length` bytes of the stream for a message of `length` bytes.

    Returns: (position after the claim or a code, its offset in the log, its term id, its term
             offset)
    """
    if appender[0].is_exclusive != 0:
        return claim_exclusive(appender, log, limit, framed_length, length)
    return claim_shared(appender, log, limit, framed_length, length)


@kernel
def claim_shared(appender, log, limit, framed_length, length):
    """Claim space like `claim`, for a concurrent publication. Other publishers in any process may
    claim space at the same time.

    Memory: fetch-and-add on the raw tail; its previous value decides which bytes the claim owns
    """
    state = appender[0]
    meta_at, term_length = state.meta_at, state.term_length
    count = descriptor.active_term_count_acquire(log, meta_at)
    index = position.index_of_count(count)
    seen = descriptor.raw_tail_acquire(log, meta_at, index)
    if count != wrap_i32(descriptor.tail_term_id(seen) - state.initial_term_id):
        return result.ADMIN_ACTION, 0, 0, 0
    seen_offset = seen & 0xFFFFFFFF
    if seen_offset % frame.FRAME_ALIGNMENT != 0:
        return result.ERROR, 0, 0, 0
    at_position = (count << state.bits) + seen_offset
    if at_position >= limit:
        return back_pressure(log, meta_at, term_length, at_position, length), 0, 0, 0
    raw_tail = add_i64(log, meta_at + descriptor.TERM_TAILS + 8 * index, framed_length)
    term_id = descriptor.tail_term_id(raw_tail)
    offset = raw_tail & 0xFFFFFFFF
    end = offset + framed_length
    base = index * term_length
    end_position = position.of(term_id, end, state.bits, state.initial_term_id)
    if end <= term_length:
        return end_position, base + offset, term_id, offset
    # At most one claim crosses the end of the term, so at most one padding frame is written.
    if offset < term_length:
        rest = term_length - offset
        frame.write_padding(log, base + offset, meta_at, rest, term_id, offset)
    if end_position >= position.max_possible(term_length):
        return result.MAX_POSITION_EXCEEDED, 0, 0, 0
    descriptor.rotate(log, meta_at, wrap_i32(term_id - state.initial_term_id), term_id)
    return result.ADMIN_ACTION, 0, 0, 0


@kernel
def claim_exclusive(appender, log, limit, framed_length, length):
    """Claim space like `claim` for an exclusive publication, whose APPENDER record contains the
    tail.

    Memory: the raw tail is released before the header of the frame is written
    """
    state = appender[0]
    meta_at, term_length = state.meta_at, state.term_length
    offset, term_id = state.term_offset, state.term_id
    at_position = state.term_begin_position + offset
    if at_position >= limit:
        return back_pressure(log, meta_at, term_length, at_position, length), 0, 0, 0
    end = offset + framed_length
    raw_tail = descriptor.pack_tail(term_id, end)
    descriptor.put_raw_tail_release(log, meta_at, state.active_index, raw_tail)
    base = state.active_index * term_length
    if end <= term_length:
        state.term_offset = end
        return state.term_begin_position + end, base + offset, term_id, offset
    if offset < term_length:
        rest = term_length - offset
        frame.write_padding(log, base + offset, meta_at, rest, term_id, offset)
        state.term_offset = term_length
    return rotate_exclusive(appender, log), 0, 0, 0


@kernel
def rotate_exclusive(appender, log):
    """Move an exclusive publication to its next term. Returns ADMIN_ACTION or an error code."""
    state = appender[0]
    next_begin = state.term_begin_position + state.term_length
    if next_begin >= position.max_possible(state.term_length):
        return result.MAX_POSITION_EXCEEDED
    count = wrap_i32(state.term_id - state.initial_term_id)
    descriptor.rotate_exclusive(log, state.meta_at, count, state.term_id)
    state.term_begin_position = next_begin
    state.term_offset = 0
    state.term_id = wrap_i32(state.term_id + 1)
    state.active_index = position.index_of_count(count + 1)
    return result.ADMIN_ACTION
