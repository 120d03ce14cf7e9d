"""Writes send timestamps into frames (`channel-snd-ts-offset`).

The timestamp has eight bytes and is in nanoseconds since the epoch. It is written to the first data
frame of each datagram, at an offset in the payload or in the reserved value, if it fits and the
frame begins a message. The frame is modified in the log buffer, which avoids a copy. Source: spec
4.2, Aeron 1.53 (the Java driver; the C driver stamps every fragment).
"""

from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.channel.timestamp_offsets import RESERVED_OFFSET, TIMESTAMP_LENGTH
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import data, frame_type, header


@kernel
def stamp(log, at, length, offset, epoch_ns):
    """Write a send timestamp into the first frame of a datagram, if this frame is the beginning of
    a message. The datagram has `length` bytes at offset `at`.

    Units:   offset in bytes from the start of the payload, or RESERVED_OFFSET
    Returns: whether the timestamp was written
    """
    frame_length = header.frame_length(log, at)
    is_data = header.frame_type(log, at) == frame_type.DATA
    # Only the first fragment of a message, because the assembled payload has one timestamp.
    is_first = header.flags(log, at) & frame_type.BEGIN != 0
    if not is_data or not is_first or frame_length < data.HEADER_LENGTH or frame_length > length:
        return False
    last = frame_length - data.HEADER_LENGTH - TIMESTAMP_LENGTH
    if offset != RESERVED_OFFSET and not 0 <= offset <= last:
        return False
    put_i64(log, at + data.HEADER_LENGTH + offset, epoch_ns)
    return True
