"""XXH64 of a frame's payload, for comparing payloads in two captures without storing them.

    32 bytes per round, 8 in each of 4 lanes  ->  lanes merged  ->  rest by 8, 4, 1  ->  avalanche

The seed is 0, for which every implementation of XXH64 returns the same values. The arithmetic is
unsigned and wraps, as the algorithm requires. Source: the published description of XXH64.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.frames.bytes_at import u64_le

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_LANE_1 = np.uint64(0x60EA27EEADC0B5D6)
"""_P1 + _P2, wrapped. It is a constant because numpy warns about wrapping additions of scalars."""
_LANE_4 = np.uint64(0x61C8864E7A143579)
"""The initial value of the fourth lane: 0 - _P1, wrapped."""
_64 = np.uint64(64)
_0, _1, _7, _11, _12, _18 = (np.uint64(each) for each in (0, 1, 7, 11, 12, 18))
_23, _27, _29, _31, _32, _33 = (np.uint64(each) for each in (23, 27, 29, 31, 32, 33))
_8, _16, _24 = (np.uint64(each) for each in (8, 16, 24))


@kernel
def _u32(buf: Any, at: int) -> Any:
    return (
        np.uint64(buf[at])
        | np.uint64(buf[at + 1]) << _8
        | np.uint64(buf[at + 2]) << _16
        | np.uint64(buf[at + 3]) << _24
    )


@kernel
def _rotated(value: Any, bits: Any) -> Any:
    return value << bits | value >> (_64 - bits)


@kernel
def _round(lane: Any, word: Any) -> Any:
    return _rotated(lane + word * _P2, _31) * _P1


@kernel
def _merged(total: Any, lane: Any) -> Any:
    return (total ^ _round(_0, lane)) * _P1 + _P4


@kernel
def _rest(total: Any, buf: Any, at: int, end: int) -> Any:
    while at + 8 <= end:
        total = _rotated(total ^ _round(_0, u64_le(buf, at)), _27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        total = _rotated(total ^ _u32(buf, at) * _P1, _23) * _P2 + _P3
        at += 4
    while at < end:
        total = _rotated(total ^ np.uint64(buf[at]) * _P5, _11) * _P1
        at += 1
    total = (total ^ total >> _33) * _P2
    total = (total ^ total >> _29) * _P3
    return total ^ total >> _32


@kernel
def payload_hash(buf: Any, at: int, length: int) -> int:
    """Return the XXH64 (seed 0) of `length` bytes at offset `at`, as a signed integer."""
    end = at + length
    total = _P5
    if length >= 32:
        first, second, third, fourth = _LANE_1, _P2, _0, _LANE_4
        while at + 32 <= end:
            first = _round(first, u64_le(buf, at))
            second = _round(second, u64_le(buf, at + 8))
            third = _round(third, u64_le(buf, at + 16))
            fourth = _round(fourth, u64_le(buf, at + 24))
            at += 32
        total = _rotated(first, _1) + _rotated(second, _7) + _rotated(third, _12)
        total = total + _rotated(fourth, _18)
        total = _merged(_merged(_merged(_merged(total, first), second), third), fourth)
    return int(np.int64(_rest(total + np.uint64(length), buf, at, end)))
