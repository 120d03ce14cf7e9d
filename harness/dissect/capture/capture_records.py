"""Compiled kernels that find record boundaries in a capture file, even after damaged bytes.

    window   ...| header | packet | header | packet | header | pack      `limit`: end of the bytes
                ^ at                                                     read so far, or of the file

Within a sequence of records, each header is trusted. After damage, or if reading starts in the
middle of a file, a record is accepted only if it starts a chain of plausible headers that is longer
than any packet, and if it is not inside a packet, whose payload may itself be a capture file.

One plausible header proves nothing: version, flags and type of an Aeron data frame look like the
length of a long record (0x0001c000), and the term offset behind them like its original length.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.capture.capture_format import (
    BLOCK_LENGTH_MAX,
    BYTE_ORDER_MAGIC,
    PCAP,
    PCAP_RECORD_HEADER_LENGTH,
    RECORD_LENGTH_MAX,
    SECTION_HEADER,
)
from windtunnel.harness.dissect.capture.packet import LINK_TYPES, NOT_UDP, ip_start
from windtunnel.harness.dissect.frames.bytes_at import (
    i64_be,
    i64_le,
    u16_be,
    u16_le,
    u32_be,
    u32_le,
)

WINDOW = np.dtype(
    [
        ("kind", "<i8"),  # PCAP or PCAPNG
        ("big_endian", "<i8"),  # byte order of the pcap file, or of the current pcapng section
        ("fraction_ns", "<i8"),
        ("link_type", "<i8"),
        ("near_s", "<i8"),  # time of any packet in the capture, or negative if unknown
        ("first", "<i8"),  # offset in the file of its first record
        ("interface_count", "<i8"),  # number of interfaces in the current pcapng section
        ("base", "<i8"),  # offset in the file of the window's first byte
        ("at", "<i8"),  # offset in the window of the next byte to read
        ("limit", "<i8"),  # number of bytes in the window
        ("is_eof", "<i8"),  # whether the window ends at the end of the file
        ("stop", "<i8"),  # file offset from which records belong to another reader
        ("until", "<i8"),  # file offset at which a search ends
        ("steps", "<i8"),  # number of headers that a search may still examine
    ]
)
"""A reader's state, which is kept between calls to the compiled kernels."""

SHORT = -1
"""Status: fewer bytes are left than a record header needs."""
IMPLAUSIBLE = -2
NOT_FOUND, FOUND, MORE = 0, 1, 2
TIME_MAX_NS = (1 << 62) - 1
"""Latest time of a packet, in 2116. Differences of times, and sums of two, have 64 bits."""
_TIME_MAX_S = TIME_MAX_NS // 1_000_000_000
UNKNOWN_TIME = -1

CHAIN_LENGTH = 66_560
"""Number of bytes that consecutive plausible records must cover to be trusted. It is more than the
longest IP packet, so a capture inside a packet is never mistaken for records of the file.
"""
CHAIN_COUNT_MIN = 3
"""Minimum number of records of a chain."""
TORN_CHAIN_COUNT = 2
"""Minimum number of consecutive plausible headers if the file ends before CHAIN_LENGTH bytes,
within a record.
"""
DISTANCE_MAX_S = 100_000_000
"""Maximum time difference between pcap records: three years. Greater differences mean damage."""

INTERFACE_BLOCK, PACKET_BLOCK, SIMPLE_PACKET, ENHANCED_PACKET = 1, 2, 3, 6
BLOCK_LENGTH_MIN = 12
_KNOWN_BLOCKS = (1, 2, 3, 4, 5, 6, 9, 10, 0xBAD, 0x40000BAD, SECTION_HEADER)
_OPTION_RESOLUTION, _OPTION_OFFSET = 9, 14


@kernel
def u16(buf: Any, at: int, big_endian: int) -> int:
    return u16_be(buf, at) if big_endian else u16_le(buf, at)


@kernel
def u32(buf: Any, at: int, big_endian: int) -> int:
    return u32_be(buf, at) if big_endian else u32_le(buf, at)


@kernel
def i64(buf: Any, at: int, big_endian: int) -> int:
    return i64_be(buf, at) if big_endian else i64_le(buf, at)


@kernel
def _pcap_length(buf: Any, at: int, limit: int, window: Any) -> int:
    if limit - at < PCAP_RECORD_HEADER_LENGTH:
        return SHORT
    big_endian = window["big_endian"]
    seconds = u32(buf, at, big_endian)
    fraction = u32(buf, at + 4, big_endian)
    captured = u32(buf, at + 8, big_endian)
    original = u32(buf, at + 12, big_endian)
    if captured > RECORD_LENGTH_MAX or original > RECORD_LENGTH_MAX or captured > original:
        return IMPLAUSIBLE
    if fraction * window["fraction_ns"] >= 1_000_000_000:
        return IMPLAUSIBLE
    if window["near_s"] >= 0:
        if abs(seconds - window["near_s"]) > DISTANCE_MAX_S:
            return IMPLAUSIBLE
    elif seconds == 0 and original == 0:
        return IMPLAUSIBLE
    return PCAP_RECORD_HEADER_LENGTH + captured


@kernel
def section_is_big_endian(buf: Any, at: int) -> int:
    """Return 1 if a section header block is big-endian, 0 if little-endian, or an error status."""
    if u32_be(buf, at + 8) == BYTE_ORDER_MAGIC:
        return 1
    return 0 if u32_le(buf, at + 8) == BYTE_ORDER_MAGIC else IMPLAUSIBLE


@kernel
def _pcapng_length(buf: Any, at: int, limit: int, big_endian: int, known_only: bool) -> int:
    if limit - at < BLOCK_LENGTH_MIN:
        return SHORT
    kind = u32(buf, at, big_endian)
    if kind == SECTION_HEADER:
        big_endian = section_is_big_endian(buf, at)
        if big_endian < 0:
            return IMPLAUSIBLE
    elif known_only and kind not in _KNOWN_BLOCKS:
        return IMPLAUSIBLE
    total = u32(buf, at + 4, big_endian)
    if total < BLOCK_LENGTH_MIN or total > BLOCK_LENGTH_MAX or total & 3:
        return IMPLAUSIBLE
    if at + total <= limit and u32(buf, at + total - 4, big_endian) != total:
        return IMPLAUSIBLE
    if kind in (ENHANCED_PACKET, PACKET_BLOCK):
        if total < 32 or limit - at < 28:
            return IMPLAUSIBLE if total < 32 else SHORT
        if u32(buf, at + 20, big_endian) > total - 32:
            return IMPLAUSIBLE
    elif (kind == INTERFACE_BLOCK and total < 20) or (kind == SIMPLE_PACKET and total < 16):
        return IMPLAUSIBLE
    return total


@kernel
def record_length(buf: Any, at: int, limit: int, window: Any, known_only: bool) -> int:
    """Return the length of the record at offset `at` including its header, or SHORT or IMPLAUSIBLE.

    The record may end after `limit`. `known_only` rejects pcapng blocks of unknown type.
    """
    if window["kind"] == PCAP:
        return _pcap_length(buf, at, limit, window)
    return _pcapng_length(buf, at, limit, window["big_endian"], known_only)


@kernel
def _chain_status(buf: Any, start: int, limit: int, window: Any) -> int:
    """Return FOUND if a chain of consecutive plausible records begins at `start` and is long enough
    to be trusted, otherwise NOT_FOUND.

    Returns MORE if the window must be refilled first.
    """
    at = start
    count = 0
    while at - start < CHAIN_LENGTH or count < CHAIN_COUNT_MIN:
        if at == limit and window["is_eof"]:
            return FOUND if count else NOT_FOUND
        length = record_length(buf, at, limit, window, True)
        window["steps"] -= 1
        if length == IMPLAUSIBLE:
            return NOT_FOUND
        if length == SHORT or at + length > limit:
            if not window["is_eof"]:
                return MORE
            return FOUND if count + (length != SHORT) >= TORN_CHAIN_COUNT else NOT_FOUND
        at += length
        count += 1
    return FOUND


@kernel
def _is_on_chain(buf: Any, at: int, end: int, limit: int, window: Any) -> bool:
    """Return whether one of the consecutive records that begin at offset `at` ends exactly at
    `end`.
    """
    while at < end:
        length = record_length(buf, at, limit, window, True)
        window["steps"] -= 1
        if length < 0:
            return False
        at += length
    return bool(at == end)


@kernel
def _may_reach(buf: Any, at: int, to: int, limit: int, window: Any) -> bool:
    """Return whether there may be a packet at offset `at` that ends after `to`, judging by its
    length field and its link layer. Only an IP packet, which is shorter than CHAIN_LENGTH, can
    contain a capture.
    """
    if window["kind"] != PCAP or limit - at < PCAP_RECORD_HEADER_LENGTH:
        return True
    length = PCAP_RECORD_HEADER_LENGTH + u32(buf, at + 8, window["big_endian"])
    if length <= to - at or length > CHAIN_LENGTH:
        return False
    link_type = window["link_type"]
    packet_at = at + PCAP_RECORD_HEADER_LENGTH
    return link_type not in LINK_TYPES or ip_start(buf, packet_at, limit, link_type) != NOT_UDP


@kernel
def _end_of_outer(buf: Any, inner: int, limit: int, window: Any) -> int:
    """Return the end of the record whose packet contains the offset `inner`, or a negative status
    if the offset is not inside a packet.

    If a capture inside a packet ends at the end of the packet, its chain continues with the records
    of the file. In this case an earlier record also ends at one of the chain's boundaries.
    """
    first = max(inner - CHAIN_LENGTH, window["first"] - window["base"], 0)
    for at in range(first, inner):
        window["steps"] -= 1
        if not _may_reach(buf, at, inner, limit, window):
            continue
        length = record_length(buf, at, limit, window, True)
        if length > inner - at and _is_on_chain(buf, inner, at + length, limit, window):
            return at + length
    return -1


@kernel
def find_record(buf: Any, window: Any) -> int:
    """Find the next record before `window.until` that starts a chain of plausible records, and move
    `window.at` to it.

    Shapes:  buf uint8[n], n >= limit; window a WINDOW record
    Returns: FOUND; MORE, if the window must be refilled from `at` on; NOT_FOUND, if there is no
             record or `window.steps`, which limits the cost of crafted files, is exhausted
    """
    limit = window["limit"]
    at = window["at"]
    end = min(limit, window["until"] - window["base"])
    while at < end and window["steps"] > 0:
        status = _chain_status(buf, at, limit, window)
        if status == MORE:
            window["at"] = at
            return MORE
        if status == FOUND:
            outer_end = at
            while outer_end >= 0 and window["steps"] > 0:
                at = outer_end
                outer_end = _end_of_outer(buf, at, limit, window)
            window["at"] = at
            return FOUND
        at += 1
    window["at"] = at
    return NOT_FOUND if window["steps"] <= 0 or window["is_eof"] or end < limit else MORE


@kernel
def read_interface(buf: Any, at: int, total: int, big_endian: int, interface: Any) -> None:
    """Parse the interface block at offset `at` into an INTERFACE record."""
    interface["link_type"] = u16(buf, at + 8, big_endian)
    interface["exponent"] = 6
    interface["is_binary"] = 0
    interface["offset_s"] = 0
    end = at + total - 4
    at += 16
    while at + 4 <= end:
        code = u16(buf, at, big_endian)
        length = u16(buf, at + 2, big_endian)
        if code == 0 or at + 4 + length > end:
            break
        if code == _OPTION_RESOLUTION and length == 1:
            interface["exponent"] = int(buf[at + 4]) & 0x7F
            interface["is_binary"] = int(buf[at + 4]) >> 7
        elif code == _OPTION_OFFSET and length == 8:
            interface["offset_s"] = i64(buf, at + 4, big_endian)
        at += 4 + ((length + 3) & ~3)


@kernel
def ticks_to_ns(ticks: int, interface: Any) -> int:
    """Convert a pcapng timestamp to epoch nanoseconds, truncating finer units. Returns UNKNOWN_TIME
    if it is not between 0 and TIME_MAX_NS.
    """
    offset_s = int(interface["offset_s"])
    since_ns = _ticks_since_offset_ns(ticks, int(interface["exponent"]), interface["is_binary"])
    if since_ns == UNKNOWN_TIME or not -_TIME_MAX_S <= offset_s <= _TIME_MAX_S:
        return UNKNOWN_TIME
    time_ns = offset_s * 1_000_000_000 + since_ns
    return time_ns if 0 <= time_ns <= TIME_MAX_NS else UNKNOWN_TIME


@kernel
def _ticks_since_offset_ns(ticks: int, exponent: int, is_binary: int) -> int:
    # Ticks are unsigned: a negative number is one of more than 63 bits.
    if ticks < 0:
        return UNKNOWN_TIME
    if is_binary:
        if exponent > 62:
            return 0
        fraction = ticks & ((1 << exponent) - 1)
        seconds = ticks >> exponent
        if seconds > _TIME_MAX_S:
            return UNKNOWN_TIME
        if exponent > 33:
            fraction >>= exponent - 33
            exponent = 33
        return seconds * 1_000_000_000 + (fraction * 1_000_000_000 >> exponent)
    while exponent < 9:
        if ticks > TIME_MAX_NS // 10:
            return UNKNOWN_TIME
        ticks *= 10
        exponent += 1
    while exponent > 9:
        ticks //= 10
        exponent -= 1
    return ticks if ticks <= TIME_MAX_NS else UNKNOWN_TIME
