"""Finding the first hole in a term that is being put together.

Source: driver-protocol 2.10.
"""

from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import frame


@kernel
def scan(log, base, offset, limit):
    """Walk the committed frames from `offset`, then measure the hole before `limit`.

    The hole ends at the next slot that is not empty, or at `limit`: how far the stream is known to
    reach.
    Returns: (where the walk ended, length of the hole); a length of 0 says there is none
    """
    while offset < limit:
        frame_length = frame.frame_length_acquire(log, base + offset)
        if frame_length <= 0:
            break
        offset += frame.aligned(frame_length)
    end = offset
    while end < limit and frame.frame_length_acquire(log, base + end) == 0:
        end += frame.FRAME_ALIGNMENT
    return offset, end - offset
