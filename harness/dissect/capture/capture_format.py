"""What the head of a capture file says: pcap or pcapng, byte order, unit of time, link layer.

    pcap     magic 4 | version 4 | zone 4 | sigfigs 4 | snap length 4 | link type 4 | records
    pcapng   section header block | interface blocks and packet blocks, in any order

Reads a head of bytes, never a file. What pcapng says of its interfaces stands in blocks, which the
kernels of `capture_records` follow. Sources: the file format drafts of the tcpdump group.
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
"""Bytes of a file that are enough to tell what it is."""

RECORD_LENGTH_MAX = 1 << 20
"""Captured bytes of a packet; four times tcpdump's longest. A longer one is a damaged header."""
BLOCK_LENGTH_MAX = 1 << 22
"""Of a pcapng block."""
INTERFACES_MAX = 64
"""Interfaces of a pcapng section; packets of further ones are counted and not read."""

_NANOSECONDS_A_UNIT = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}

INTERFACE = np.dtype(
    [
        ("link_type", "<i8"),
        ("exponent", "<i8"),  # of the unit of time: 10**-exponent or 2**-exponent seconds
        ("is_binary", "<i8"),
        ("offset_s", "<i8"),
    ]
)


class CaptureFormatError(ValueError):
    """The bytes are not the head of a capture; the text says what was expected and found."""


@dataclass(frozen=True)
class CaptureFormat:
    """How the records of a file are written."""

    kind: int
    "PCAP or PCAPNG."
    is_big_endian: bool
    "Of pcapng, of its first section."
    fraction_ns: int
    "Nanoseconds in a unit of a pcap record's fraction of a second; 0 of pcapng."
    link_type: int
    "Of pcapng 0: its interfaces say theirs."

    @property
    def first_record(self) -> int:
        """Offset of the first record; the section header is a record like any other block."""
        return PCAP_HEADER_LENGTH if self.kind == PCAP else 0


def read_format(head: bytes) -> CaptureFormat:
    """The format of a file that begins with these HEAD_LENGTH bytes, fewer if it is shorter.

    Raises CaptureFormatError when it is none that can be read.
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
            f"ends after {len(head)} bytes, within its file header of {PCAP_HEADER_LENGTH}"
        )
    is_big = big in _NANOSECONDS_A_UNIT
    # The upper half tells of checksums behind the packets; no writer of ours has any.
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
        raise CaptureFormatError(f"has byte order mark {head[8:12].hex()}: not that of pcapng")
    return CaptureFormat(PCAPNG, is_big, 0, 0)
