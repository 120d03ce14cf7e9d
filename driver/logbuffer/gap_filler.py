"""Fills a gap in an image with padding, for streams without retransmission.

A late frame for the beginning of the gap finds the padding and is dropped. A late frame for the
middle of the gap is stored in the empty slots, but never read, because the padding frame covers
them.
Source: driver-protocol 2.11.
"""

from windtunnel.driver.base.atomics import get_i32_acquire
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import frame


@kernel
def try_fill(log, base, meta_at, term_id, offset, length):
    """Fill a gap of `length` bytes at `offset` with padding if the gap is still empty. Returns
    whether the gap was filled.
    """
    for at in range(offset + length - frame.FRAME_ALIGNMENT, offset - 1, -frame.FRAME_ALIGNMENT):
        if get_i32_acquire(log, base + at) != 0:
            return False
    frame.overwrite_with_padding(log, base + offset, meta_at, length, term_id, offset)
    return True
