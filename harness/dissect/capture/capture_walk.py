"""Loops over the records in a capture window and writes one row for each Aeron frame.

    window -> record -> packet -> rows, addresses, texts
                |
                +-> section, interface: stored; truncated, damaged, full: returned to the caller

A call runs until the window, the rows or the records of this reader are exhausted. Each record is
counted in exactly one counter. The compiled kernels pass a dozen arrays per packet without
reference counting, which would take longer than the parsing itself.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.capture.capture_clock import observe_time
from windtunnel.harness.dissect.capture.capture_format import (
    INTERFACES_MAX,
    PCAP,
    PCAP_RECORD_HEADER_LENGTH,
)
from windtunnel.harness.dissect.capture.capture_format import SECTION_HEADER as SECTION_BLOCK
from windtunnel.harness.dissect.capture.capture_packet import read_packet
from windtunnel.harness.dissect.capture.capture_records import (
    ENHANCED_PACKET,
    IMPLAUSIBLE,
    INTERFACE_BLOCK,
    PACKET_BLOCK,
    SHORT,
    SIMPLE_PACKET,
    UNKNOWN_TIME,
    read_interface,
    record_length,
    section_is_big_endian,
    ticks_to_ns,
    u16,
    u32,
)
from windtunnel.harness.dissect.capture.capture_rows import (
    EMPTY,
    PACKETS,
    UNKNOWN_LINK,
    UNTIMED,
    is_full,
)
from windtunnel.harness.dissect.capture.packet import LINK_TYPES

STOPPED, MORE, FULL, DAMAGED, TORN, UNEXPECTED_SECTION = range(6)


@kernel
def _pcapng_packet(
    buf: Any, at: int, total: int, window: Any, interfaces: Any, counts: Any
) -> tuple[int, int, int, int, int]:
    """Return the offset, captured length, link type, time and interface of the packet in a pcapng
    block. The offset is -1 if the block has no packet.
    """
    big_endian = window["big_endian"]
    kind = u32(buf, at, big_endian)
    if kind == SIMPLE_PACKET:
        counts[PACKETS] += 1
        counts[UNTIMED] += 1
        return -1, 0, 0, 0, 0
    if kind not in (ENHANCED_PACKET, PACKET_BLOCK):
        return -1, 0, 0, 0, 0
    index = u32(buf, at + 8, big_endian)
    if kind == PACKET_BLOCK:
        index = u16(buf, at + 8, big_endian)
    counts[PACKETS] += 1
    if index >= window["interface_count"] or index >= INTERFACES_MAX:
        counts[UNKNOWN_LINK] += 1
        return -1, 0, 0, 0, 0
    interface = interfaces[index]
    ticks = u32(buf, at + 12, big_endian) << 32 | u32(buf, at + 16, big_endian)
    time_ns = ticks_to_ns(ticks, interface)
    if time_ns == UNKNOWN_TIME:
        counts[UNTIMED] += 1
        return -1, 0, 0, 0, 0
    return at + 28, u32(buf, at + 20, big_endian), interface["link_type"], time_ns, index


@kernel
def _read_metadata_block(buf: Any, at: int, total: int, window: Any, interfaces: Any) -> bool:
    """Store a section header or interface block. Returns False for any other block."""
    kind = u32(buf, at, window["big_endian"])
    if kind == SECTION_BLOCK:
        window["big_endian"] = section_is_big_endian(buf, at)
        window["interface_count"] = 0
        return True
    if kind != INTERFACE_BLOCK:
        return False
    if window["interface_count"] < INTERFACES_MAX:
        read_interface(buf, at, total, window["big_endian"], interfaces[window["interface_count"]])
    window["interface_count"] += 1
    return True


@kernel
def read_head_blocks(buf: Any, window: Any, interfaces: Any) -> int:
    """Move `window.at` past the section and interface blocks at the start of a pcapng file.

    Returns: STOPPED after the last of them; MORE, if the window ends before that
    """
    while True:
        at = window["at"]
        length = record_length(buf, at, window["limit"], window, False)
        if length == IMPLAUSIBLE:
            return STOPPED
        if length == SHORT or at + length > window["limit"]:
            return STOPPED if window["is_eof"] else MORE
        if not _read_metadata_block(buf, at, length, window, interfaces):
            return STOPPED
        window["at"] = at + length


@kernel
def walk_records(
    buf: Any, window: Any, interfaces: Any, walk: Any, counts: Any, clock: Any, ports: Any,
    rows: Any, table: Any, texts: Any, pending: Any, store: Any, addresses: Any,
) -> int:  # fmt: skip
    """Read records from `window.at` on, and write their frames to rows.

    Shapes:  buf uint8[n], n >= `window.limit`; interfaces INTERFACE[64]; counts int64[18];
             clock a CLOCK record; ports int64[p], none for all; rows WIRE_FRAME[m],
             m > FRAMES_A_DATAGRAM_MAX; table ADDRESS[ADDRESS_SLOTS]; texts uint8[TEXTS_LENGTH];
             pending PENDING[SLOTS]; store uint8[SLOTS, SLOT_LENGTH]; addresses int64[4]
    Returns: STOPPED at `window.stop` or the end of the file; MORE, if the window must be refilled
             from `at`; FULL, if the rows must be emptied first; DAMAGED, if there is no record at
             `at`; TORN, if the record ends beyond the file; UNEXPECTED_SECTION, at a section or
             interface block that is not at the start of a split file
    """
    while True:
        at = window["at"]
        if window["base"] + at >= window["stop"] and walk["is_tail"] == 0:
            return STOPPED
        if walk["is_tail"] and (walk["pending"] == 0 or window["base"] + at >= window["stop"]):
            return STOPPED
        if at == window["limit"] and window["is_eof"]:
            return STOPPED
        if is_full(walk, rows):
            return FULL
        length = record_length(buf, at, window["limit"], window, False)
        if length == IMPLAUSIBLE:
            return DAMAGED
        if length == SHORT or at + length > window["limit"]:
            return TORN if window["is_eof"] else MORE
        packet_at, captured, link_type, index = -1, 0, window["link_type"], 0
        time_ns = 0
        if window["kind"] == PCAP:
            seconds = u32(buf, at, window["big_endian"])
            fraction = u32(buf, at + 4, window["big_endian"])
            time_ns = seconds * 1_000_000_000 + fraction * window["fraction_ns"]
            packet_at, captured = at + PCAP_RECORD_HEADER_LENGTH, length - PCAP_RECORD_HEADER_LENGTH
            counts[PACKETS] += 1 - walk["is_tail"]
        elif _read_metadata_block(buf, at, length, window, interfaces):
            if walk["may_meet_section"] == 0:
                return UNEXPECTED_SECTION
        else:
            before = counts[PACKETS], counts[UNTIMED], counts[UNKNOWN_LINK]
            packet_at, captured, link_type, time_ns, index = _pcapng_packet(
                buf, at, length, window, interfaces, counts
            )
            if walk["is_tail"]:
                counts[PACKETS], counts[UNTIMED], counts[UNKNOWN_LINK] = before
        window["at"] = at + length
        if packet_at < 0:
            continue
        if walk["is_tail"] == 0:
            observe_time(clock, time_ns, counts[PACKETS])
        if captured == 0:
            counts[EMPTY] += 1 - walk["is_tail"]
        elif link_type not in LINK_TYPES:
            counts[UNKNOWN_LINK] += 1 - walk["is_tail"]
        else:
            read_packet(
                buf, packet_at, packet_at + captured, link_type, time_ns, window["base"] + at,
                index, ports, walk, counts, rows, table, texts, pending, store, addresses,
            )  # fmt: skip
