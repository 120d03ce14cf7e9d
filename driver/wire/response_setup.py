"""Response setup frame: the receiver of a request stream sends the session id of its response
stream to the requester.

    0       8       12      16        20
    +-------+-------+-------+---------+
    | header|session|stream |response |
    |       |       |       |session  |
    +-------+-------+-------+---------+

Source: driver-protocol 1.8.
"""

from windtunnel.driver.base.atomics import get_i32, put_i32
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header

SESSION_ID = 8
STREAM_ID = 12
RESPONSE_SESSION_ID = 16
LENGTH = RESPONSE_SESSION_ID + 4


@kernel
def check(buf, at, length):
    """Check a frame's length. Every id is valid, so nothing else is checked. Returns OK or
    TOO_SHORT.
    """
    return header.OK if length >= LENGTH else header.TOO_SHORT


@kernel
def session_id(buf, at):
    return get_i32(buf, at + SESSION_ID)


@kernel
def stream_id(buf, at):
    return get_i32(buf, at + STREAM_ID)


@kernel
def response_session_id(buf, at):
    return get_i32(buf, at + RESPONSE_SESSION_ID)


@kernel
def write(buf, at, session_id, stream_id, response_session_id):
    """Write a whole response setup frame. Returns the frame length."""
    header.write(buf, at, LENGTH, 0, types.RSP_SETUP)
    put_i32(buf, at + SESSION_ID, session_id)
    put_i32(buf, at + STREAM_ID, stream_id)
    put_i32(buf, at + RESPONSE_SESSION_ID, response_session_id)
    return LENGTH
