"""Zeroes consumed parts of a term, so publishers can write there again.

Source: driver-protocol 2.7.
"""

from windtunnel.driver.base.atomics import put_i64_release, zero
from windtunnel.driver.kernels.jit import kernel

_FIRST_WORD = 8


@kernel
def clean(log, base, offset, length):
    """Zero `length` bytes of a log, beginning at the start of a frame. `length` is at least 8.

    Memory: the first eight bytes are released last, so a reader that finds the slot empty also
            finds zeros after it
    """
    at = base + offset
    zero(log, at + _FIRST_WORD, length - _FIRST_WORD)
    put_i64_release(log, at, 0)
