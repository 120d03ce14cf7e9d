"""Writes blocks of complete frames to the log of an exclusive publication.

`claim` returns where the next block can be written. Nothing becomes readable while the frames are
written there, because the first eight bytes of the block, which contain its first frame length,
stay zero. `publish` stores them last. Source: driver-protocol 2.6.
"""

from windtunnel.driver.base.atomics import copy, get_i64, put_i64_release
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import descriptor, frame, tail
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.wire import data
from windtunnel.driver.wire import frame_type as types

FIRST_WORD_LENGTH = 8
"""The length of the part of a block that is stored last."""


@kernel
def claim(appender, log, limit, length):
    """Return where the next block of an exclusive publication can be written. `length` is only used
    for the error code.

    A claim reserves nothing. The frames must be those of the publication's current position.
    Returns: (current position or a code, offset in the log, number of bytes until the end of the
             term)
    """
    state = appender[0]
    if state.is_exclusive == 0:
        return result.ERROR, 0, 0
    if state.term_offset >= state.term_length:
        outcome = tail.rotate_exclusive(appender, log)
        if outcome != result.ADMIN_ACTION:
            return outcome, 0, 0
    at_position = state.term_begin_position + state.term_offset
    if at_position >= limit:
        outcome = tail.back_pressure(log, state.meta_at, state.term_length, at_position, length)
        return outcome, 0, 0
    at = state.active_index * state.term_length + state.term_offset
    return at_position, at, state.term_length - state.term_offset


@kernel
def is_current(appender, position):
    """Return whether the publication's position is `position`."""
    state = appender[0]
    return state.term_begin_position + state.term_offset == position


@kernel
def publish(appender, log, position, length, first_word):
    """Publish a block of `length` bytes at the position of a claim. Its first eight bytes are
    given, all others have been written.

    Shapes:  first_word uint8[8]
    Memory:  the first word is released last, so the block becomes readable at once
    Returns: the position after the block, or ERROR if the publication has another position or the
             length is impossible
    """
    state = appender[0]
    end = state.term_offset + length
    if length < frame.HEADER_LENGTH or length % frame.FRAME_ALIGNMENT != 0:
        return result.ERROR
    if end > state.term_length or not is_current(appender, position):
        return result.ERROR
    at = state.active_index * state.term_length + state.term_offset
    raw_tail = descriptor.pack_tail(state.term_id, end)
    descriptor.put_raw_tail_release(log, state.meta_at, state.active_index, raw_tail)
    put_i64_release(log, at, get_i64(first_word, 0))
    state.term_offset = end
    return state.term_begin_position + end


@kernel
def is_block(appender, source, source_at, length):
    """Return whether the bytes are whole frames that can be appended at the publication's
    position.
    """
    state = appender[0]
    if length < frame.HEADER_LENGTH or source_at < 0 or source_at + length > source.size:
        return False
    if data.validate(source, source_at, length, state.term_length) != length:
        return False
    return (
        frame.frame_type(source, source_at) == types.DATA
        and data.session_id(source, source_at) == state.session_id
        and data.stream_id(source, source_at) == state.stream_id
        and data.term_id(source, source_at) == state.term_id
        and data.term_offset(source, source_at) == state.term_offset
    )


@kernel
def offer(appender, log, limit, source, source_at, length):
    """Write complete frames at the current position of an exclusive publication.

    Returns: the position after the block, or a code; ERROR if the frames are for another stream or
             position
    """
    at_position, at, _ = claim(appender, log, limit, length)
    if at_position < 0:
        return at_position
    if not is_block(appender, source, source_at, length):
        return result.ERROR
    body_at = source_at + FIRST_WORD_LENGTH
    copy(log, at + FIRST_WORD_LENGTH, source, body_at, length - FIRST_WORD_LENGTH)
    first_word = source[source_at:body_at]
    return publish(appender, log, at_position, length, first_word)
