"""Zeroes the consumed parts of a log, because a term must be clean before it is reused.

    clean position          limit
       |////////////|         |    at most to the end of the dirty term per call, to limit the
       +------------+---------+        duration of the conductor's duty cycle

Source: spec 2.7, Aeron 1.53.
"""

from windtunnel.driver.base.atomics import bytes_at
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import cleaner, frame, position


@kernel
def clean_to(owner, limit):
    """Zero the log of `owner` (a record with log fields) from its clean position towards `limit`.

    The limit is derived from positions that clients write, so it may not be aligned to a frame.
    """
    length = limit - limit % frame.FRAME_ALIGNMENT - owner.clean_position
    if length <= 0:
        return
    offset = position.term_offset(owner.clean_position, owner.term_length)
    length = min(length, owner.term_length - offset)
    base = position.index(owner.clean_position, owner.bits) * owner.term_length
    log = bytes_at(owner.log_address, owner.log_length)
    cleaner.clean(log, base, offset, length)
    owner.clean_position += length
