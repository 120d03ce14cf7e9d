"""Detects a capture file's format: pcap or pcapng, byte order, time unit, link layer.

    pcap     magic 4 | version 4 | zone 4 | sigfigs 4 | snap length 4 | link type 4 | records
    pcapng   section header block | interface blocks and packet blocks, in any order

This module parses the first bytes of a file. The compiled kernels in `capture_records` parse the
interface blocks of pcapng. Sources: the file format drafts of the tcpdump group.
"""

from dataclasses import dataclass

import numpy as np

from windtunnel.harness.dissect.capture.packet import LINK_TYPES

PCAP, PCAPNG = 0, 1
PCAP_HEADER_LENGTH = 24
PCAP_RECORD_HEADER_LENGTH = 16
SECTION_HEADER = 0x0A0D0D0A
SECTION_HEADER_LENGTH_MIN = 28
BYTE_ORDER_MAGIC = 0x1A2B3C4D
HEAD_LENGTH = 28
"""Number of bytes at the start of a file that are enough to detect its format."""

RECORD_LENGTH_MAX = 1 << 20
"""Maximum captured bytes of a packet: four times tcpdump's maximum. Greater lengths mean damage."""
BLOCK_LENGTH_MAX = 1 << 22
"""Maximum length of a pcapng block."""
INTERFACES_MAX = 64
"""Maximum number of interfaces in a pcapng section. Packets of additional interfaces are only
counted."""

_NANOSECONDS_A_UNIT = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}

INTERFACE = np.dtype(
    [
        ("link_type", "<i8"),
        ("exponent", "<i8"),  # exponent of the time unit: 10**-exponent or 2**-exponent seconds
        ("is_binary", "<i8"),
        ("offset_s", "<i8"),
    ]
)


class CaptureFormatError(ValueError):
    """The file does not begin like a capture. The message gives the expected and actual values."""


@dataclass(frozen=True)
class CaptureFormat:
    """The format of a capture file: kind, byte order, time unit, link type."""

    kind: int
    "PCAP or PCAPNG."
    is_big_endian: bool
    "Byte order of the file or, for pcapng, of the first section."
    fraction_ns: int
    "Nanoseconds per unit of a pcap timestamp's fraction, or 0 for pcapng."
    link_type: int
    "Link type of a pcap file, or 0 for pcapng, where each interface has a link type."

    @property
    def first_record(self) -> int:
        """Offset of the first record. The section header of pcapng counts as a record."""
        return PCAP_HEADER_LENGTH if self.kind == PCAP else 0


def read_format(head: bytes) -> CaptureFormat:
    """Return the format of a capture file, given its first HEAD_LENGTH bytes or fewer.

    Raises CaptureFormatError if the format is not supported.
    """
    if not head:
        raise CaptureFormatError("is empty: expected a pcap or pcapng file")
    if head[:4] == SECTION_HEADER.to_bytes(4, "little"):
        return _pcapng(head)
    little, big = int.from_bytes(head[:4], "little"), int.from_bytes(head[:4], "big")
    if little not in _NANOSECONDS_A_UNIT and big not in _NANOSECONDS_A_UNIT:
        raise CaptureFormatError(
            f"begins with {head[:4].hex()}: expected the magic number of pcap or pcapng"
        )
    if len(head) < PCAP_HEADER_LENGTH:
        raise CaptureFormatError(
            f"ends after {len(head)} bytes, within its file header of {PCAP_HEADER_LENGTH} bytes"
        )
    is_big = big in _NANOSECONDS_A_UNIT
    # The upper half specifies frame check sequences, which our capture programs do not write.
    link_type = int.from_bytes(head[20:24], "big" if is_big else "little") & 0xFFFF
    if link_type not in LINK_TYPES:
        known = ", ".join(str(each) for each in LINK_TYPES)
        raise CaptureFormatError(f"has link type {link_type}: expected one of {known}")
    return CaptureFormat(PCAP, is_big, _NANOSECONDS_A_UNIT[big if is_big else little], link_type)


def _pcapng(head: bytes) -> CaptureFormat:
    if len(head) < SECTION_HEADER_LENGTH_MIN:
        raise CaptureFormatError(f"ends after {len(head)} bytes, within its section header")
    is_big = head[8:12] == BYTE_ORDER_MAGIC.to_bytes(4, "big")
    if not is_big and head[8:12] != BYTE_ORDER_MAGIC.to_bytes(4, "little"):
        magic = f"{BYTE_ORDER_MAGIC:08x}"
        raise CaptureFormatError(
            f"has byte order magic {head[8:12].hex()}: expected {magic} in either byte order"
        )
    return CaptureFormat(PCAPNG, is_big, 0, 0)
