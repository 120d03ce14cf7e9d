"""Round-trip time measurement (RTTM) frame: a timestamp that the other side sends back.

    0       8       12      16              24              32              40
    +-------+-------+-------+---------------+---------------+---------------+
    | header|session|stream | echo timestamp|reception delta| receiver id   |
    +-------+-------+-------+---------------+---------------+---------------+

The timestamp is in nanoseconds of the requester's clock, so only the requester can interpret it.
Source: driver-protocol 1.6.
"""

from windtunnel.driver.base.atomics import get_i32, get_i64, put_i32, put_i64
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header

SESSION_ID = 8
STREAM_ID = 12
ECHO_TIMESTAMP = 16
RECEPTION_DELTA = 24
RECEIVER_ID = 32
LENGTH = RECEIVER_ID + 8


@kernel
def check(buf, at, length):
    """Check a frame's length. Every field value is valid, so nothing else is checked. Returns OK or
    TOO_SHORT.
    """
    return header.OK if length >= LENGTH else header.TOO_SHORT


@kernel
def is_request(buf, at):
    return header.flags(buf, at) & types.REPLY != 0


@kernel
def session_id(buf, at):
    return get_i32(buf, at + SESSION_ID)


@kernel
def stream_id(buf, at):
    return get_i32(buf, at + STREAM_ID)


@kernel
def echo_timestamp_ns(buf, at):
    return get_i64(buf, at + ECHO_TIMESTAMP)


@kernel
def reception_delta_ns(buf, at):
    return get_i64(buf, at + RECEPTION_DELTA)


@kernel
def receiver_id(buf, at):
    return get_i64(buf, at + RECEIVER_ID)


@kernel
def write(
    buf, at, flags, session_id, stream_id, echo_timestamp_ns, reception_delta_ns, receiver_id
):
    """Write a whole RTTM frame. Returns the frame length."""
    header.write(buf, at, LENGTH, flags, types.RTTM)
    put_i32(buf, at + SESSION_ID, session_id)
    put_i32(buf, at + STREAM_ID, stream_id)
    put_i64(buf, at + ECHO_TIMESTAMP, echo_timestamp_ns)
    put_i64(buf, at + RECEPTION_DELTA, reception_delta_ns)
    put_i64(buf, at + RECEIVER_ID, receiver_id)
    return LENGTH
