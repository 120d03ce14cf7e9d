"""Writes receive timestamps into messages (`media-rcv-ts-offset`, `channel-rcv-ts-offset`).

    | header .......... reserved value | payload ...
                        ^ offset -8      ^ offset 0, 8, ...     8 bytes, epoch nanoseconds

The media timestamp and the channel timestamp are both the time at which the datagram was read from
its socket. Only the first fragment of a message is stamped, and only if the timestamp fits into the
frame. Source: spec 3.3 and 9.2, Aeron 1.53.
"""

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.channel.timestamp_offsets import RESERVED_OFFSET, TIMESTAMP_LENGTH
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.image.publication_image import NO_STAMP
from windtunnel.driver.wire import data, frame_type, header


@kernel
def stamp(packet, at, length, offset, time_ns):
    """Write a receive timestamp into each message that begins in a datagram. The datagram must be
    valid.
    """
    if offset == NO_STAMP:
        return
    here = 0
    # Each iteration advances by at least the frame alignment, so the loop is bounded.
    while here <= length - data.HEADER_LENGTH:
        frame_length = header.frame_length(packet, at + here)
        is_data = header.frame_type(packet, at + here) == frame_type.DATA
        begins = header.flags(packet, at + here) & frame_type.BEGIN != 0
        # Only a padding frame may be longer than its datagram.
        if is_data and begins:
            place = data.HEADER_LENGTH + offset
            if offset == RESERVED_OFFSET or place + TIMESTAMP_LENGTH <= frame_length:
                put_i64(packet, at + here + place, time_ns)
        here += max(align(frame_length, data.ALIGNMENT), data.ALIGNMENT)
