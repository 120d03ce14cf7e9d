"""The times of receiving, written into the messages themselves where a channel asks for it.

    | header .......... reserved value | payload ...
                        ^ offset -8      ^ offset 0, 8, ...     8 bytes, epoch nanoseconds

Both times, of the media and of the channel, are when the datagram was taken from its socket. Only
what begins a message is stamped, and only where the place lies inside the frame. Source: spec 3.3
and 9.2, Aeron 1.53.
"""

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.channel.timestamp_offsets import RESERVED_OFFSET, TIMESTAMP_LENGTH
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.image.publication_image import NO_STAMP
from windtunnel.driver.wire import data, frame_type, header


@kernel
def stamp(packet, at, length, offset, time_ns):
    """Write a time into each message that begins in a datagram which `data.validate` accepts."""
    if offset == NO_STAMP:
        return
    here = 0
    # Every turn moves at least one alignment forward, so the datagram's length bounds the walk.
    while here <= length - data.HEADER_LENGTH:
        frame_length = header.frame_length(packet, at + here)
        is_data = header.frame_type(packet, at + here) == frame_type.DATA
        begins = header.flags(packet, at + here) & frame_type.BEGIN != 0
        # Only a padding frame is longer than what is there of it.
        if is_data and begins:
            place = data.HEADER_LENGTH + offset
            if offset == RESERVED_OFFSET or place + TIMESTAMP_LENGTH <= frame_length:
                put_i64(packet, at + here + place, time_ns)
        here += max(align(frame_length, data.ALIGNMENT), data.ALIGNMENT)
