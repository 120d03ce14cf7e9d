"""Status message (SM): a receiver reports its consumption position and receiver window.

    0       8       12      16      20      24      28              36              44
    +-------+-------+-------+-------+-------+-------+---------------+---------------+
    | header|session|stream | term  |offset |window | receiver id   | group tag     |
    +-------+-------+-------+-------+-------+-------+---------------+---------------+

The receiver id is not naturally aligned. The group tag is present only in a frame of exactly 44
bytes; any other number of bytes after the first 36 is not a tag.
Source: driver-protocol 1.4.
"""

from windtunnel.driver.base.atomics import get_i32, get_i64, put_i32, put_i64
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header

SESSION_ID = 8
STREAM_ID = 12
TERM_ID = 16
TERM_OFFSET = 20
WINDOW_LENGTH = 24
RECEIVER_ID = 28
GROUP_TAG = 36
LENGTH = GROUP_TAG
LENGTH_TAGGED = GROUP_TAG + 8


@kernel
def check(buf, at, length, term_length):
    """Check that a datagram that passed `header.check` is a valid status message for a stream with
    this term length.

    Units:   `term_length` of the publication that the message is for, or the maximum term length if
             there is no such publication
    Returns: OK, TOO_SHORT, or BAD_VALUE if the offset or the window does not fit such a term
    """
    if length < LENGTH:
        return header.TOO_SHORT
    offset = get_i32(buf, at + TERM_OFFSET)
    if offset < 0 or offset >= term_length or offset % header.ALIGNMENT != 0:
        return header.BAD_VALUE
    window = get_i32(buf, at + WINDOW_LENGTH)
    if window < 0 or window > term_length // 2:
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
def window_length(buf, at):
    return get_i32(buf, at + WINDOW_LENGTH)


@kernel
def receiver_id(buf, at):
    return get_i64(buf, at + RECEIVER_ID)


@kernel
def feedback_length(buf, at):
    """Return the number of bytes after the fixed part of a status message: 8 if there is a group
    tag, or 0 if not. Other numbers are invalid.
    """
    return header.frame_length(buf, at) - LENGTH


@kernel
def has_group_tag(buf, at):
    return header.frame_length(buf, at) == LENGTH_TAGGED


@kernel
def group_tag(buf, at):
    """Return the group tag, which is valid only if `has_group_tag` returns True."""
    return get_i64(buf, at + GROUP_TAG)


@kernel
def write(
    buf,
    at,
    flags,
    session_id,
    stream_id,
    term_id,
    term_offset,
    window_length,
    receiver_id,
    has_tag,
    group_tag,
):
    """Write a whole status message, with a group tag if `has_tag` is true. Returns the frame
    length, 36 or 44.
    """
    length = LENGTH_TAGGED if has_tag else LENGTH
    header.write(buf, at, length, flags, types.SM)
    put_i32(buf, at + SESSION_ID, session_id)
    put_i32(buf, at + STREAM_ID, stream_id)
    put_i32(buf, at + TERM_ID, term_id)
    put_i32(buf, at + TERM_OFFSET, term_offset)
    put_i32(buf, at + WINDOW_LENGTH, window_length)
    put_i64(buf, at + RECEIVER_ID, receiver_id)
    if has_tag:
        put_i64(buf, at + GROUP_TAG, group_tag)
    return length
