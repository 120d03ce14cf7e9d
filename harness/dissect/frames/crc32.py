"""CRC-32 as in zlib, and the CRC of two consecutive blocks, computed from the CRCs of both.

    crc(a + b) = crc(a) shifted by the length of b  xor  crc(b)

The checksum of a message, or of an entire stream, can therefore be computed from the checksums of
its fragments, without their bytes and in any order of arrival.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel

_POLYNOMIAL = 0xEDB88320
_TOP = 0x80000000
SLICES = 8


def _tables() -> Any:
    tables = np.zeros((SLICES, 256), dtype=np.int64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for index in range(1, SLICES):
        tables[index] = tables[index - 1] >> 8 ^ tables[0][tables[index - 1] & 0xFF]
    return tables


def _powers() -> Any:
    """Return x to the power of 2**n, modulo the polynomial, for n from 0 to 63."""
    found = np.zeros(64, dtype=np.int64)
    found[0] = _TOP >> 1
    for index in range(1, 64):
        found[index] = _product(int(found[index - 1]), int(found[index - 1]))
    return found


def _product(a: int, b: int) -> int:
    total, mask = 0, _TOP
    while mask:
        if a & mask:
            total ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
        mask >>= 1
    return total


_TABLES = _tables()
_POWERS = _powers()


@kernel
def crc32(buf: Any, at: int, length: int) -> int:
    """Return the CRC-32 of the `length` bytes at offset `at`.

    Shapes:  buf uint8[n], at + length <= n
    """
    crc = np.int64(0xFFFFFFFF)
    end = at + length
    while at + SLICES <= end:
        crc ^= np.int64(buf[at]) | np.int64(buf[at + 1]) << 8 | np.int64(buf[at + 2]) << 16
        crc ^= np.int64(buf[at + 3]) << 24
        crc = (
            _TABLES[7, crc & 0xFF]
            ^ _TABLES[6, crc >> 8 & 0xFF]
            ^ _TABLES[5, crc >> 16 & 0xFF]
            ^ _TABLES[4, crc >> 24]
            ^ _TABLES[3, buf[at + 4]]
            ^ _TABLES[2, buf[at + 5]]
            ^ _TABLES[1, buf[at + 6]]
            ^ _TABLES[0, buf[at + 7]]
        )
        at += SLICES
    while at < end:
        crc = crc >> 8 ^ _TABLES[0, (crc ^ np.int64(buf[at])) & 0xFF]
        at += 1
    return int(crc ^ 0xFFFFFFFF)


@kernel
def _times(a: int, b: int) -> int:
    total, mask = 0, _TOP
    while mask:
        if a & mask:
            total ^= b
        b = (b >> 1 ^ _POLYNOMIAL) if b & 1 else b >> 1
        mask >>= 1
    return total


@kernel
def combined_crc32(first: int, second: int, second_length: int) -> int:
    """Return the CRC-32 of two consecutive blocks, from their CRCs and the length of the second."""
    shift = _TOP
    bits = second_length * 8
    index = 0
    while bits:
        if bits & 1:
            shift = _times(_POWERS[index], shift)
        bits >>= 1
        index += 1
    return int(_times(shift, first) ^ second)
