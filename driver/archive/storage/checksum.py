"""The two checksums that an archive supports: CRC-32 as in zlib, and CRC-32C (Castagnoli).

One compiled kernel computes both, eight bytes per step. Its table argument determines the
polynomial. A checksum is stored as a signed 32-bit integer. Source: archive-protocol 4.4.
"""

from dataclasses import dataclass, field

import numpy as np

from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.base.atomics import get_i32, get_u8
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.kernels.jit import kernel

_POLYNOMIALS = {"CRC-32": 0xEDB88320, "CRC-32C": 0x82F63B78}
"""Polynomials in reflected form. Source: IEEE 802.3, RFC 3720."""
_STEP = 8
NO_TABLE = np.zeros((_STEP, 0), dtype=np.int64)
"""An empty table. Compiled kernels whose checksum table is optional then compute no checksums."""


def _table(polynomial: int) -> np.ndarray:
    """Return a polynomial's lookup table for eight bytes at a time, as int64[8, 256]."""
    rows = np.zeros((_STEP, 256), dtype=np.int64)
    row = np.arange(256, dtype=np.int64)
    for _ in range(8):
        row = np.where(row & 1, row >> 1 ^ polynomial, row >> 1)
    rows[0] = row
    for later in range(1, _STEP):
        rows[later] = rows[later - 1] >> 8 ^ row[rows[later - 1] & 0xFF]
    return rows


@kernel
def crc(table, buf, start, end):
    """Return the checksum of `buf[start:end]`.

    Shapes:  table int64[8, 256], buf uint8[n]
    """
    value = 0xFFFFFFFF
    at = start
    while at + _STEP <= end:
        low = value ^ (get_i32(buf, at) & 0xFFFFFFFF)
        value = (
            table[7, low & 0xFF]
            ^ table[6, low >> 8 & 0xFF]
            ^ table[5, low >> 16 & 0xFF]
            ^ table[4, low >> 24 & 0xFF]
            ^ table[3, get_u8(buf, at + 4)]
            ^ table[2, get_u8(buf, at + 5)]
            ^ table[1, get_u8(buf, at + 6)]
            ^ table[0, get_u8(buf, at + 7)]
        )
        at += _STEP
    while at < end:
        value = value >> 8 ^ table[0, (value ^ get_u8(buf, at)) & 0xFF]
        at += 1
    return wrap_i32(value ^ 0xFFFFFFFF)


@dataclass(frozen=True, eq=False)
class Checksum:
    """A checksum algorithm (CRC-32 or CRC-32C), with its table and its name in settings."""

    name: str
    table: np.ndarray = field(repr=False)

    def of(self, content: bytes) -> int:
        """Return the checksum of a byte string."""
        view = np.frombuffer(bytearray(content), dtype=np.uint8)
        return int(crc(self.table, view, 0, view.size))


CRC_32 = Checksum("CRC-32", _table(_POLYNOMIALS["CRC-32"]))
CRC_32C = Checksum("CRC-32C", _table(_POLYNOMIALS["CRC-32C"]))
_BY_NAME = {
    "CRC-32": CRC_32,
    "Crc32": CRC_32,
    "CRC-32C": CRC_32C,
    "Crc32c": CRC_32C,
}


def by_name(name: str) -> Checksum:
    """Return the checksum with this name: `CRC-32`, `CRC-32C`, or the name of Aeron's class."""
    found = _BY_NAME.get(name.rpartition(".")[2] or name)
    if found is None:
        raise ConfigurationError(f"checksum {name!r}: expected CRC-32 or CRC-32C")
    return found
