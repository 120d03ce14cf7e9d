"""Error frame: a receiver rejects an image and sends the reason.

    0       8       12      16              24              32      36      40
    +-------+-------+-------+---------------+---------------+-------+-------+-------
    | header|session|stream | receiver id   | group tag     | code  |length | text
    +-------+-------+-------+---------------+---------------+-------+-------+-------

The group tag is valid only with the flag HAS_GROUP_TAG. The text has no terminator, and the frame
is not padded.
Source: driver-protocol 1.7.
"""

from windtunnel.driver.base.atomics import copy, get_i32, get_i64, put_i32, put_i64
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header

SESSION_ID = 8
STREAM_ID = 12
RECEIVER_ID = 16
GROUP_TAG = 24
ERROR_CODE = 32
TEXT_LENGTH = 36
TEXT = TEXT_LENGTH + 4
LENGTH = TEXT
TEXT_LENGTH_MAX = 1023
LENGTH_MAX = LENGTH + TEXT_LENGTH_MAX


@kernel
def check(buf, at, length):
    """Check that the error text is within a datagram that passed `header.check`.

    Returns: OK, TOO_SHORT, or BAD_VALUE
    """
    if length < LENGTH:
        return header.TOO_SHORT
    text = get_i32(buf, at + TEXT_LENGTH)
    if text < 0 or text > TEXT_LENGTH_MAX or LENGTH + text > header.frame_length(buf, at):
        return header.BAD_VALUE
    return header.OK


@kernel
def session_id(buf, at):
    return get_i32(buf, at + SESSION_ID)


@kernel
def stream_id(buf, at):
    return get_i32(buf, at + STREAM_ID)


@kernel
def receiver_id(buf, at):
    return get_i64(buf, at + RECEIVER_ID)


@kernel
def has_group_tag(buf, at):
    return header.flags(buf, at) & types.HAS_GROUP_TAG != 0


@kernel
def group_tag(buf, at):
    return get_i64(buf, at + GROUP_TAG)


@kernel
def error_code(buf, at):
    return get_i32(buf, at + ERROR_CODE)


@kernel
def text_length(buf, at):
    return get_i32(buf, at + TEXT_LENGTH)


@kernel
def write(
    buf, at, session_id, stream_id, receiver_id, has_tag, group_tag, error_code, text, text_length
):
    """Write a whole error frame, truncating a long `text`. Returns the frame length."""
    kept = min(text_length, TEXT_LENGTH_MAX)
    header.write(buf, at, LENGTH + kept, types.HAS_GROUP_TAG if has_tag else 0, types.ERR)
    put_i32(buf, at + SESSION_ID, session_id)
    put_i32(buf, at + STREAM_ID, stream_id)
    put_i64(buf, at + RECEIVER_ID, receiver_id)
    put_i64(buf, at + GROUP_TAG, group_tag)
    put_i32(buf, at + ERROR_CODE, error_code)
    put_i32(buf, at + TEXT_LENGTH, kept)
    copy(buf, at + TEXT, text, 0, kept)
    return LENGTH + kept
