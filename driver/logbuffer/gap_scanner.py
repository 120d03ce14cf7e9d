"""Finds the first gap in a term that is being rebuilt.

Source: driver-protocol 2.10.
"""

from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import frame
from windtunnel.driver.wire import header


@kernel
def scan(log, base, offset, limit):
    """Find the first gap between `offset` and `limit` in a term.

    The gap begins after the frames committed from `offset` on. It ends at the next slot that is not
    empty, or at `limit`, the highest known offset.
    Returns: (offset of the gap, length of the gap); a length of 0 means that there is no gap
    """
    while offset < limit:
        frame_length = frame.frame_length_acquire(log, base + offset)
        if frame_length <= 0:
            break
        step = frame.aligned(frame_length)
        header.prefetch_later(log, base + offset, step)
        offset += step
    end = offset
    while end < limit and frame.frame_length_acquire(log, base + end) == 0:
        end += frame.FRAME_ALIGNMENT
    return offset, end - offset
