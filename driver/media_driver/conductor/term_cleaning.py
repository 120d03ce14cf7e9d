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
    """Zero a log from its clean position towards `limit`. `owner` is the limit record of the
    log's publication.

    The limit is derived from positions that clients write, so it is not always aligned to a frame.
    """
    length = limit - limit % frame.FRAME_ALIGNMENT - owner.clean_position
    offset = position.term_offset(owner.clean_position, owner.term_length)
    length = min(length, owner.term_length - offset)
    if length > 0:
        log = bytes_at(owner.log_address, owner.log_length)
        base = position.index(owner.clean_position, owner.bits) * owner.term_length
        cleaner.clean(log, base, offset, length)
        owner.clean_position += length
