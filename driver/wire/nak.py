"""Negative acknowledgement (NAK): a receiver reports one missing range of a term.

    0       8       12      16      20      24      28
    +-------+-------+-------+-------+-------+-------+
    | header|session|stream | term  |offset |length |
    +-------+-------+-------+-------+-------+-------+

A range never crosses the end of its term.
Source: driver-protocol 1.5.
"""

from windtunnel.driver.base.atomics import get_i32, put_i32
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header

SESSION_ID = 8
STREAM_ID = 12
TERM_ID = 16
TERM_OFFSET = 20
GAP_LENGTH = 24
LENGTH = GAP_LENGTH + 4


@kernel
def check(buf, at, length, term_length):
    """Check that the range requested by a NAK that passed `header.check` is inside one term.

    Returns: OK (also for a length of zero), TOO_SHORT, or BAD_VALUE
    """
    if length < LENGTH:
        return header.TOO_SHORT
    offset = get_i32(buf, at + TERM_OFFSET)
    if offset < 0 or offset >= term_length or offset % header.ALIGNMENT != 0:
        return header.BAD_VALUE
    gap = get_i32(buf, at + GAP_LENGTH)
    if gap < 0 or offset + gap > term_length:
        return header.BAD_VALUE
    return header.OK


@kernel
def session_id(buf, at):
    return get_i32(buf, at + SESSION_ID)


@kernel
def stream_id(buf, at):
    return get_i32(buf, at + STREAM_ID)


@kernel
def term_id(buf, at):
    return get_i32(buf, at + TERM_ID)


@kernel
def term_offset(buf, at):
    return get_i32(buf, at + TERM_OFFSET)


@kernel
def gap_length(buf, at):
    return get_i32(buf, at + GAP_LENGTH)


@kernel
def write(buf, at, session_id, stream_id, term_id, term_offset, gap_length):
    """Write a whole NAK frame. Returns the frame length."""
    header.write(buf, at, LENGTH, 0, types.NAK)
    put_i32(buf, at + SESSION_ID, session_id)
    put_i32(buf, at + STREAM_ID, stream_id)
    put_i32(buf, at + TERM_ID, term_id)
    put_i32(buf, at + TERM_OFFSET, term_offset)
    put_i32(buf, at + GAP_LENGTH, gap_length)
    return LENGTH
