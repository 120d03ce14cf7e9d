"""Zeroes consumed parts of a term, so publishers can write there again.

Source: driver-protocol 2.7.
"""

from windtunnel.driver.base.atomics import put_i64_release, zero, zero_past_caches
from windtunnel.driver.kernels.jit import kernel

_FIRST_WORD = 8
LARGE_LOG_LENGTH = 32 << 20
"""Length in bytes of a log that does not stay in a cache until its next term."""
_LONG_RANGE = 4096


@kernel
def clean(log, base, offset, length):
    """Zero `length` bytes of a log, beginning at the start of a frame. `length` is at least 8.

    Memory: the first eight bytes are released last, so a reader that finds the slot empty also
            finds zeros after it
    """
    at = base + offset
    zero(log, at + _FIRST_WORD, length - _FIRST_WORD)
    put_i64_release(log, at, 0)


@kernel
def zero_content(log, at, length):
    """Zero a range of an image's log. Its bytes are written again after one or two terms. If the
    log is larger than caches are, the zeros would only displace what they contain.

    A publication's log is zeroed in the caches: past them takes a third more processor time.
    """
    if log.size >= LARGE_LOG_LENGTH and length >= _LONG_RANGE:
        zero_past_caches(log, at, length)
    else:
        zero(log, at, length)
