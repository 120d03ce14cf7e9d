"""Data, padding and heartbeat frames. Their layout is the same in a term and on the wire.

    0       4  5  6   8       12      16      20      24              32
    +-------+--+--+---+-------+-------+-------+-------+---------------+---------
    | length|v |f |typ|offset |session|stream | term  |reserved value | payload
    +-------+--+--+---+-------+-------+-------+-------+---------------+---------

A datagram is a copy of part of a term: whole frames, each padded to 32 bytes. For a padding frame
only the header is sent, at the end of a datagram. A heartbeat is a datagram of 32 bytes whose
length field is zero.
Source: driver-protocol 1.2, 3.3.
"""

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import get_i32, get_i64, put_i32, put_i64
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header

TERM_OFFSET = 8
SESSION_ID = 12
STREAM_ID = 16
TERM_ID = 20
RESERVED_VALUE = 24
PAYLOAD = RESERVED_VALUE + 8
HEADER_LENGTH = PAYLOAD
ALIGNMENT = header.ALIGNMENT
assert HEADER_LENGTH == header.DATA_HEADER_LENGTH

INVALID = -1
"""Result of `validate` for a datagram that must be counted and dropped."""


@kernel
def term_offset(buf, at):
    return get_i32(buf, at + TERM_OFFSET)


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
def reserved_value(buf, at):
    return get_i64(buf, at + RESERVED_VALUE)


@kernel
def write(
    buf,
    at,
    frame_length,
    flags,
    frame_type,
    term_offset,
    session_id,
    stream_id,
    term_id,
    reserved_value,
):
    """Write a 32-byte data frame header. Returns the header's length."""
    header.write(buf, at, frame_length, flags, frame_type)
    put_i32(buf, at + TERM_OFFSET, term_offset)
    put_i32(buf, at + SESSION_ID, session_id)
    put_i32(buf, at + STREAM_ID, stream_id)
    put_i32(buf, at + TERM_ID, term_id)
    put_i64(buf, at + RESERVED_VALUE, reserved_value)
    return HEADER_LENGTH


@kernel
def write_heartbeat(buf, at, session_id, stream_id, term_id, term_offset, flags):
    """Write a heartbeat frame that contains the sender's position. Returns the frame length."""
    return write(buf, at, 0, flags, types.DATA, term_offset, session_id, stream_id, term_id, 0)


@kernel
def is_heartbeat(buf, at, length):
    """Return whether a datagram is a heartbeat: 32 bytes with a length field of zero."""
    return length == HEADER_LENGTH and get_i32(buf, at + header.FRAME_LENGTH) == 0


@kernel
def validate(buf, at, length, term_length):
    """Check that the frames in a datagram that passed `header.check` are contiguous and fit into
    one term.

    Shapes:  buf uint8[n], at + length <= n, length >= 32
    Returns: the distance from the first frame to the end of the last one in the stream: the sum of
             the aligned frame lengths, with padding frames counted in full, 0 for a heartbeat, or
             INVALID
    Source:  driver-protocol 3.3
    """
    start = get_i32(buf, at + TERM_OFFSET)
    if start < 0 or start >= term_length or start % ALIGNMENT != 0:
        return INVALID
    if is_heartbeat(buf, at, length):
        return 0
    offset = 0
    last_type = types.DATA
    # Each iteration advances by at least 32 bytes, so the datagram's length bounds the loop.
    while offset <= length - HEADER_LENGTH:
        declared = get_i32(buf, at + offset + header.FRAME_LENGTH)
        last_type = header.frame_type(buf, at + offset)
        if declared <= 0 or last_type > types.DATA:
            return INVALID
        if get_i32(buf, at + offset + TERM_OFFSET) != start + offset:
            return INVALID
        step = align(declared, ALIGNMENT)
        header.prefetch_later(buf, at + offset, step)
        offset += step
        if start + offset > term_length:
            return INVALID
    if offset == length or (offset > length and last_type == types.PAD):
        return offset
    return INVALID
