"""The eight-byte header of every frame, and the first check of every datagram.

    0               4       5       6               8
    +---------------+-------+-------+---------------+
    | frame length  |version| flags | type          |
    +---------------+-------+-------+---------------+

The check covers the minimum length of each frame type. The module of a type checks its fields.
Source: driver-protocol 1.1, 1.10.
"""

from windtunnel.driver.base.atomics import (
    AHEAD_LENGTH,
    get_i32,
    get_u8,
    get_u16,
    prefetch,
    put_i32,
    put_u8,
    put_u16,
)
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type as types

FRAME_LENGTH = 0
VERSION = 4
FLAGS = 5
TYPE = 6
LENGTH = TYPE + 2

OK = 0
TOO_SHORT = -1
BAD_LENGTH = -2
BAD_VERSION = -3
BAD_ALIGNMENT = -4
BAD_TYPE = -5
BAD_VALUE = -6
"""A field value is out of range for the frame type. Only the `check` function of a frame type
returns this."""

DATA_HEADER_LENGTH = 32
ALIGNMENT = 32

PREFETCHED_FRAMES = 6
"""Distance at which headers are loaded into the cache before they are read, unless AHEAD_LENGTH is
more.
"""

# Indexed by type code; 0 marks a code that no open-source driver accepts.
MINIMUM_LENGTHS = (32, 32, 28, 36, 40, 40, 40, 22, 0, 0, 0, 20)
assert len(MINIMUM_LENGTHS) == types.RSP_SETUP + 1


@kernel
def frame_length(buf, at):
    return get_i32(buf, at + FRAME_LENGTH)


@kernel
def version(buf, at):
    return get_u8(buf, at + VERSION)


@kernel
def flags(buf, at):
    return get_u8(buf, at + FLAGS)


@kernel
def frame_type(buf, at):
    return get_u16(buf, at + TYPE)


@kernel
def prefetch_later(buf, at, step):
    """Load the header of a frame that a walk will reach soon, if all frames are `step` bytes apart.

    A walk finds a frame by the length in the header before it, so it would wait for each header.
    `at` is the frame that the walk has reached.
    """
    prefetch(buf, at + max(AHEAD_LENGTH, PREFETCHED_FRAMES * step))


@kernel
def write(buf, at, length, flag_bits, type_code):
    """Write all eight bytes of a frame header."""
    put_i32(buf, at + FRAME_LENGTH, length)
    put_u8(buf, at + VERSION, types.VERSION)
    put_u8(buf, at + FLAGS, flag_bits)
    put_u16(buf, at + TYPE, type_code)


@kernel
def check(buf, at, length):
    """Check that a datagram of `length` bytes begins with a frame of a known type and version, and
    contains all fixed fields of this type.

    If the result is OK, every fixed field of the frame type lies inside the datagram.
    Returns: OK, or the first of TOO_SHORT, BAD_LENGTH, BAD_VERSION, BAD_TYPE, BAD_ALIGNMENT that
             applies
    """
    if length < LENGTH:
        return TOO_SHORT
    declared = get_i32(buf, at + FRAME_LENGTH)
    if declared < 0:
        return BAD_LENGTH
    if get_u8(buf, at + VERSION) != types.VERSION:
        return BAD_VERSION
    code = get_u16(buf, at + TYPE)
    if code >= len(MINIMUM_LENGTHS) or MINIMUM_LENGTHS[code] == 0:
        return BAD_TYPE
    if length < MINIMUM_LENGTHS[code]:
        return TOO_SHORT
    if code <= types.DATA:
        # The length field of a PAD exceeds the datagram, so it is not compared with its length.
        return OK if length % ALIGNMENT == 0 else BAD_ALIGNMENT
    return OK if declared <= length else BAD_LENGTH
