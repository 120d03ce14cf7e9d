"""Setup frame: a sender describes its stream to receivers.

    0       8       12      16      20       24       28      32      36      40
    +-------+-------+-------+-------+--------+--------+-------+-------+-------+
    | header|offset |session|stream |initial |active  |term   | mtu   | ttl   |
    |       |       |       |       |term id |term id |length |       |       |
    +-------+-------+-------+-------+--------+--------+-------+-------+-------+

The active term id and the offset are the sender's position, not the publisher's.
Source: driver-protocol 1.3.
"""

from windtunnel.driver.base.arith import is_power_of_two, wrap_i32
from windtunnel.driver.base.atomics import get_i32, put_i32
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header

TERM_OFFSET = 8
SESSION_ID = 12
STREAM_ID = 16
INITIAL_TERM_ID = 20
ACTIVE_TERM_ID = 24
TERM_LENGTH = 28
MTU_LENGTH = 32
TTL = 36
LENGTH = TTL + 4

TERM_LENGTH_MIN = 64 * 1024
TERM_LENGTH_MAX = 1024 * 1024 * 1024
MTU_LENGTH_MIN = header.DATA_HEADER_LENGTH
MTU_LENGTH_MAX = 65_504


@kernel
def check(buf, at, length):
    """Check that the values in a SETUP frame that passed `header.check` are valid for creating an
    image.

    Returns: OK, TOO_SHORT, or BAD_VALUE if the term length, the offset or the MTU is out of range,
             or the active term id lies before the initial one
    """
    if length < LENGTH:
        return header.TOO_SHORT
    term = get_i32(buf, at + TERM_LENGTH)
    if term < TERM_LENGTH_MIN or term > TERM_LENGTH_MAX or not is_power_of_two(term):
        return header.BAD_VALUE
    offset = get_i32(buf, at + TERM_OFFSET)
    if offset < 0 or offset >= term or offset % header.ALIGNMENT != 0:
        return header.BAD_VALUE
    mtu = get_i32(buf, at + MTU_LENGTH)
    if mtu < MTU_LENGTH_MIN or mtu > MTU_LENGTH_MAX or mtu % header.ALIGNMENT != 0:
        return header.BAD_VALUE
    # An active term before the initial one would give a negative position, which no reader reaches.
    active, initial = get_i32(buf, at + ACTIVE_TERM_ID), get_i32(buf, at + INITIAL_TERM_ID)
    if wrap_i32(active - initial) < 0:
        return header.BAD_VALUE
    return header.OK


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
def initial_term_id(buf, at):
    return get_i32(buf, at + INITIAL_TERM_ID)


@kernel
def active_term_id(buf, at):
    return get_i32(buf, at + ACTIVE_TERM_ID)


@kernel
def term_length(buf, at):
    return get_i32(buf, at + TERM_LENGTH)


@kernel
def mtu_length(buf, at):
    return get_i32(buf, at + MTU_LENGTH)


@kernel
def ttl(buf, at):
    return get_i32(buf, at + TTL)


@kernel
def write(
    buf,
    at,
    flags,
    term_offset,
    session_id,
    stream_id,
    initial_term_id,
    active_term_id,
    term_length,
    mtu_length,
    ttl,
):
    """Write a whole setup frame. Returns the frame length."""
    header.write(buf, at, LENGTH, flags, types.SETUP)
    put_i32(buf, at + TERM_OFFSET, term_offset)
    put_i32(buf, at + SESSION_ID, session_id)
    put_i32(buf, at + STREAM_ID, stream_id)
    put_i32(buf, at + INITIAL_TERM_ID, initial_term_id)
    put_i32(buf, at + ACTIVE_TERM_ID, active_term_id)
    put_i32(buf, at + TERM_LENGTH, term_length)
    put_i32(buf, at + MTU_LENGTH, mtu_length)
    put_i32(buf, at + TTL, ttl)
    return LENGTH
