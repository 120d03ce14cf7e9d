"""Selects the frames that a sender sends in one datagram: whole frames, with a padding frame only
at the end.

Source: driver-protocol 2.8.
"""

from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import frame
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header


@kernel
def scan(log, base, term_length, offset, max_length):
    """Measure the committed frames, starting at `offset`, that fit into one datagram.

    Units:   bytes; `available` counts the bytes to send, which are only the header of a padding
             frame
    Returns: (available, padding); the position advances by `available` + `padding`. If the first
             frame alone exceeds `max_length`, `available` is its negated length
    """
    limit = min(max_length, term_length - offset)
    available = 0
    while available < limit:
        frame_length = frame.frame_length_acquire(log, base + offset + available)
        if frame_length <= 0:
            break
        step = frame.aligned(frame_length)
        header.prefetch_later(log, base + offset + available, step)
        if offset + available + step > term_length:
            # Only a damaged file contains such a frame; do not send bytes of another term.
            break
        padding = 0
        if frame.frame_type(log, base + offset + available) == types.PAD:
            padding = step - frame.HEADER_LENGTH
            step = frame.HEADER_LENGTH
        if available + step > limit:
            return (-step, 0) if available == 0 else (available, 0)
        available += step
        if padding > 0:
            return available, padding
    return available, 0
