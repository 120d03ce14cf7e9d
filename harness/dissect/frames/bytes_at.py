"""Compiled kernels that read integers from a byte array. They do not check the bounds.

All results but that of `u64_le` are signed 64-bit integers, because numba converts operations on a
signed and an unsigned integer to floating point.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel

_1, _2, _3, _4, _5, _6, _7 = (np.uint64(each) for each in range(1, 8))
_8, _16, _24, _32, _40, _48, _56 = (np.uint64(each) for each in range(8, 64, 8))


@kernel
def u16_le(buf: Any, at: int) -> int:
    return int(np.int64(buf[at])) | int(np.int64(buf[at + 1])) << 8


@kernel
def u16_be(buf: Any, at: int) -> int:
    return int(np.int64(buf[at])) << 8 | int(np.int64(buf[at + 1]))


@kernel
def u32_le(buf: Any, at: int) -> int:
    return u16_le(buf, at) | u16_le(buf, at + 2) << 16


@kernel
def u32_be(buf: Any, at: int) -> int:
    return u16_be(buf, at) << 16 | u16_be(buf, at + 2)


@kernel
def i32_le(buf: Any, at: int) -> int:
    value = u32_le(buf, at)
    return value - ((value & 0x80000000) << 1)


@kernel
def i64_le(buf: Any, at: int) -> int:
    return i32_le(buf, at + 4) << 32 | u32_le(buf, at)


@kernel
def i64_be(buf: Any, at: int) -> int:
    high = u32_be(buf, at)
    return (high - ((high & 0x80000000) << 1)) << 32 | u32_be(buf, at + 4)


@kernel
def u64_le(buf: Any, at: int) -> Any:
    """Return an unsigned integer, unlike the functions above.

    Indices are unsigned, so that they cannot count from the end: the compiler then merges the eight
    loads into one.
    """
    first = np.uint64(at)
    return (
        np.uint64(buf[first])
        | np.uint64(buf[first + _1]) << _8
        | np.uint64(buf[first + _2]) << _16
        | np.uint64(buf[first + _3]) << _24
        | np.uint64(buf[first + _4]) << _32
        | np.uint64(buf[first + _5]) << _40
        | np.uint64(buf[first + _6]) << _48
        | np.uint64(buf[first + _7]) << _56
    )
