"""The walk through a window of a capture: record after record, down to rows of Aeron frames.

    window -> record -> link layer, IP -> UDP datagram -> frames -> rows, addresses, texts
                                |               |
                             pieces          not Aeron, other ports, ...: counted

One call goes on until the window, the rows or the records of this reader are used up. Whatever the
bytes are, each record is counted in exactly one way.
"""

from typing import Any

import numpy as np

from harness.artifact.frame_class import ERR, RES
from harness.dissect.bytes_at import u16_be
from harness.dissect.capture_format import INTERFACES_MAX, PCAP, PCAP_RECORD_HEADER_LENGTH
from harness.dissect.capture_format import SECTION_HEADER as SECTION_BLOCK
from harness.dissect.capture_records import (
    ENHANCED_PACKET,
    IMPLAUSIBLE,
    INTERFACE_BLOCK,
    PACKET_BLOCK,
    SHORT,
    SIMPLE_PACKET,
    read_interface,
    record_length,
    section_is_big_endian,
    ticks_to_ns,
    u16,
    u32,
)
from harness.dissect.datagram import PIECE, UDP_HEADER_LENGTH, ip_payload, udp_length
from harness.dissect.packet import (
    CUT,
    LINK_TYPES,
    NOT_UDP,
    address_v4,
    address_v6,
    ip_start,
    is_wanted,
)
from harness.dissect.reassembly import IGNORED, INCOMPLETE, begin, expire, go_on, slot_of
from harness.dissect.wire_frame import HEADER_CUT, NOT_AERON, read_control, read_data, recognise
from harness.kernel import kernel

COUNT_NAMES = (
    "packets",
    "datagrams",
    "frames",
    "other_ports",
    "unrecognised",
    "not_udp",
    "ip_fragments",
    "fragments_incomplete",
    "cut",
    "cut_datagrams",
    "unseen_bytes",
    "empty_records",
    "unknown_link",
    "untimed",
    "damaged_places",
    "damaged_bytes",
    "torn_bytes",
)
(
    PACKETS, DATAGRAMS, FRAMES, OTHER_PORTS, UNRECOGNISED, NOT_UDP_COUNT, PIECES,
    PIECES_INCOMPLETE, CUT_COUNT, CUT_DATAGRAMS, UNSEEN_BYTES, EMPTY, UNKNOWN_LINK, UNTIMED,
    DAMAGED_PLACES, DAMAGED_BYTES, TORN_BYTES,
) = range(len(COUNT_NAMES))  # fmt: skip

ADDRESS = np.dtype([("high", "<i8"), ("low", "<i8"), ("is_used", "<i8")])
ADDRESS_SLOTS = 4_096
ADDRESSES_MAX = ADDRESS_SLOTS // 2
TEXTS_LENGTH = 1 << 20
FRAMES_A_DATAGRAM_MAX = 2_048
"""Of 32 bytes each in the longest datagram; so many rows must be free before one is read."""

WALK = np.dtype(
    [
        ("count", "<i8"),  # rows written
        ("address_count", "<i8"),
        ("texts_used", "<i8"),
        ("keeps", "<i8"),  # of payloads: KEEPS_HASH, KEEPS_CRC32
        ("is_tail", "<i8"),  # only datagrams begun before `stop` are still wanted
        ("pending", "<i8"),  # of those: how many are not whole yet
        ("may_meet_section", "<i8"),  # 0 if a pcapng section or interface would come unexpected
    ]
)
STOPPED, MORE, FULL, DAMAGED, TORN, SECTION_MET = range(6)


@kernel
def _address_slot(table: Any, walk: Any, high: int, low: int) -> int:
    mixed = (high * 31 + low) * 0x9E3779B1
    slot = (mixed ^ mixed >> 15 ^ mixed >> 32) & (ADDRESS_SLOTS - 1)
    while table[slot]["is_used"]:
        if table[slot]["low"] == low and table[slot]["high"] == high:
            return int(slot)
        slot = (slot + 1) & (ADDRESS_SLOTS - 1)
    table[slot]["is_used"] = 1
    table[slot]["high"] = high
    table[slot]["low"] = low
    walk["address_count"] += 1
    return int(slot)


@kernel
def _write_rows(buf: Any, at: int, have: int, found: int, walk: Any, rows: Any, texts: Any) -> int:
    """Write the frames of a datagram; returns the bytes of it that they take."""
    done = 0
    for index in range(found):
        row = rows[walk["count"] + index]
        row["frame_index"] = index
        row["text_length"] = 0
        kind = int(buf[at + done + 6])
        if kind <= 1:
            done += read_data(row, buf, at + done, have - done, walk["keeps"])
            continue
        read_control(row, buf, at)
        done = have
        if kind in (ERR, RES):
            header = 40 if kind == ERR else 8
            row["text_at"] = walk["texts_used"]
            row["text_length"] = have - header
            for offset in range(have - header):
                texts[walk["texts_used"] + offset] = buf[at + header + offset]
            walk["texts_used"] += have - header
    return done


@kernel
def _read_datagram(
    buf: Any, udp_at: int, end: int, room: int, addresses: Any, time_ns: int, record_at: int,
    interface: int, ports: Any, walk: Any, counts: Any, rows: Any, table: Any, texts: Any,
) -> None:  # fmt: skip
    """Read the datagram whose UDP header is at `udp_at`; `addresses` is int64[4], both ends."""
    length = udp_length(buf, udp_at, end, room)
    if length == CUT:
        counts[CUT_COUNT] += 1
        return
    source_port, destination_port = u16_be(buf, udp_at), u16_be(buf, udp_at + 2)
    if not is_wanted(ports, source_port, destination_port):
        counts[OTHER_PORTS] += 1
        return
    at = udp_at + UDP_HEADER_LENGTH
    have = min(length, end - at)
    found = recognise(buf, at, length, have)
    if found == NOT_AERON:
        counts[UNRECOGNISED] += 1
        return
    if found == HEADER_CUT:
        counts[CUT_COUNT] += 1
        return
    done = _write_rows(buf, at, have, found, walk, rows, texts)
    counts[DATAGRAMS] += 1
    counts[FRAMES] += found
    if have < length:
        counts[CUT_DATAGRAMS] += 1
        counts[UNSEEN_BYTES] += max(length - done, 0)
    source = _address_slot(table, walk, addresses[0], addresses[1])
    destination = _address_slot(table, walk, addresses[2], addresses[3])
    for index in range(walk["count"], walk["count"] + found):
        row = rows[index]
        row["time_ns"] = time_ns
        row["record_at"] = record_at
        row["interface"] = interface
        row["source"] = source
        row["destination"] = destination
        row["source_port"] = source_port
        row["destination_port"] = destination_port
        row["datagram_length"] = length
    walk["count"] += found


@kernel
def _read_addresses(buf: Any, ip_at: int, addresses: Any) -> None:
    if int(buf[ip_at]) >> 4 == 4:
        addresses[0], addresses[1] = address_v4(buf, ip_at + 12)
        addresses[2], addresses[3] = address_v4(buf, ip_at + 16)
    else:
        addresses[0], addresses[1] = address_v6(buf, ip_at + 8)
        addresses[2], addresses[3] = address_v6(buf, ip_at + 24)


@kernel
def _is_slots(slot: Any, addresses: Any, identification: int) -> bool:
    return bool(
        slot["have"] > 0
        and slot["identification"] == identification
        and slot["source_high"] == addresses[0]
        and slot["source_low"] == addresses[1]
        and slot["destination_high"] == addresses[2]
        and slot["destination_low"] == addresses[3]
    )


@kernel
def _read_piece(
    buf: Any, at: int, length: int, offset: int, more: int, identification: int, record_at: int,
    addresses: Any, walk: Any, counts: Any, pending: Any, store: Any,
) -> tuple[int, int]:  # fmt: skip
    """Take in a piece; returns the slot and the length of the IP payload that it made whole."""
    index = slot_of(addresses[1], addresses[3], identification)
    slot = pending[index]
    lost = expire(slot, record_at)
    if offset == 0:
        if slot["have"]:
            lost += slot["counts"]
        slot["source_high"], slot["source_low"] = addresses[0], addresses[1]
        slot["destination_high"], slot["destination_low"] = addresses[2], addresses[3]
        slot["identification"] = identification
        slot["record_at"] = record_at
        slot["counts"] = 0 if walk["is_tail"] else 1
        walk["pending"] += slot["counts"]
        begin(slot, store[index], buf, at, length)
    counts[PIECES_INCOMPLETE] += lost
    walk["pending"] -= lost
    if offset == 0 or not _is_slots(slot, addresses, identification):
        return index, INCOMPLETE
    whole = go_on(slot, store[index], buf, at, length, offset, more)
    if whole in (INCOMPLETE, IGNORED):
        return index, INCOMPLETE
    slot["have"] = 0
    walk["pending"] -= slot["counts"]
    return index, whole if slot["counts"] else INCOMPLETE


@kernel
def _read_packet(
    buf: Any, at: int, end: int, link_type: int, time_ns: int, record_at: int, interface: int,
    ports: Any, walk: Any, counts: Any, rows: Any, table: Any, texts: Any, pending: Any,
    store: Any, addresses: Any,
) -> None:  # fmt: skip
    counted = 0 if walk["is_tail"] else 1
    ip_at = ip_start(buf, at, end, link_type)
    status, payload_at, length, offset, more, identification = ip_at, 0, 0, 0, 0, 0
    if ip_at >= 0:
        status, payload_at, length, offset, more, identification = ip_payload(buf, ip_at, end)
    if status == NOT_UDP:
        counts[NOT_UDP_COUNT] += counted
        return
    if status == CUT:
        counts[CUT_COUNT] += counted
        return
    _read_addresses(buf, ip_at, addresses)
    if status != PIECE:
        if counted:
            last = min(end, payload_at + length)
            _read_datagram(
                buf, payload_at, last, length, addresses, time_ns, record_at, interface, ports,
                walk, counts, rows, table, texts,
            )  # fmt: skip
        return
    counts[PIECES] += counted
    if payload_at + length > end:
        # Of a datagram whose pieces are cut, the frames at its start can still be read.
        if offset == 0 and counted:
            _read_datagram(
                buf, payload_at, end, 1 << 16, addresses, time_ns, record_at, interface, ports,
                walk, counts, rows, table, texts,
            )  # fmt: skip
        return
    index, whole = _read_piece(
        buf, payload_at, length, offset, more, identification, record_at, addresses, walk, counts,
        pending, store,
    )  # fmt: skip
    if whole > 0:
        _read_datagram(
            store[index], 0, whole, whole, addresses, time_ns, pending[index]["record_at"],
            interface, ports, walk, counts, rows, table, texts,
        )  # fmt: skip


@kernel
def _pcapng_packet(
    buf: Any, at: int, total: int, window: Any, interfaces: Any, counts: Any
) -> tuple[int, int, int, int, int]:
    """Offset, captured length, link type, time and interface of a block's packet; or offset -1."""
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
    captured = u32(buf, at + 20, big_endian)
    return at + 28, captured, interface["link_type"], ticks_to_ns(ticks, interface), index


@kernel
def _meet_block(buf: Any, at: int, total: int, window: Any, interfaces: Any) -> bool:
    """Learn from a section header or interface block; returns whether it was one."""
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
def learn_head(buf: Any, window: Any, interfaces: Any) -> int:
    """Move `window.at` over the section and interface blocks that a pcapng file begins with.

    Returns: STOPPED behind the last of them; MORE, when the window ends before that
    """
    while True:
        at = window["at"]
        length = record_length(buf, at, window["limit"], window, False)
        if length == IMPLAUSIBLE:
            return STOPPED
        if length == SHORT or at + length > window["limit"]:
            return STOPPED if window["is_eof"] else MORE
        if not _meet_block(buf, at, length, window, interfaces):
            return STOPPED
        window["at"] = at + length


@kernel
def _is_full(walk: Any, rows: Any) -> bool:
    return bool(
        walk["count"] + FRAMES_A_DATAGRAM_MAX > len(rows)
        or walk["address_count"] + 2 > ADDRESSES_MAX
        or walk["texts_used"] + (1 << 16) > TEXTS_LENGTH
    )


@kernel
def walk_records(
    buf: Any, window: Any, interfaces: Any, walk: Any, counts: Any, ports: Any, rows: Any,
    table: Any, texts: Any, pending: Any, store: Any, addresses: Any,
) -> int:  # fmt: skip
    """Read records from `window.at` on.

    Shapes:  buf uint8[n], n >= `window.limit`; interfaces INTERFACE[64]; counts int64[17];
             ports int64[p], none for all; rows WIRE_FRAME[m], m > FRAMES_A_DATAGRAM_MAX;
             table ADDRESS[ADDRESS_SLOTS]; texts uint8[TEXTS_LENGTH]; pending PENDING[SLOTS];
             store uint8[SLOTS, SLOT_LENGTH]; addresses int64[4]
    Returns: STOPPED at `window.stop` or the end; MORE, to be called again with the window refilled
             from `at`; FULL, with room for rows made; DAMAGED, with no record at `at`;
             TORN, with one that ends beyond the file; SECTION_MET, at a block that changes what
             is behind it, where none was expected
    """
    while True:
        at = window["at"]
        if window["base"] + at >= window["stop"] and walk["is_tail"] == 0:
            return STOPPED
        if walk["is_tail"] and (walk["pending"] == 0 or window["base"] + at >= window["stop"]):
            return STOPPED
        if at == window["limit"] and window["is_eof"]:
            return STOPPED
        if _is_full(walk, rows):
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
        elif _meet_block(buf, at, length, window, interfaces):
            if walk["may_meet_section"] == 0:
                return SECTION_MET
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
        if captured == 0:
            counts[EMPTY] += 1 - walk["is_tail"]
        elif link_type not in LINK_TYPES:
            counts[UNKNOWN_LINK] += 1 - walk["is_tail"]
        else:
            _read_packet(
                buf, packet_at, packet_at + captured, link_type, time_ns, window["base"] + at,
                index, ports, walk, counts, rows, table, texts, pending, store, addresses,
            )  # fmt: skip
