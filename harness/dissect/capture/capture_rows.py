"""Converts datagrams to rows, one per Aeron frame, and counts all other datagrams.

    datagram --> frames --> rows, a table of addresses, texts
           |
           +--> other ports, not Aeron, truncated, wrong checksum: counted

Hosts discard a packet with a wrong checksum. The checksum of a fragmented or truncated datagram is
not verified.

The caller checks `is_full` first, so there is always space for a complete datagram.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import ERR, RES
from windtunnel.harness.dissect.capture.checksum import has_wrong_checksum
from windtunnel.harness.dissect.capture.datagram import UDP_HEADER_LENGTH, udp_length
from windtunnel.harness.dissect.capture.packet import CUT, matches_ports
from windtunnel.harness.dissect.frames.bytes_at import u16_be
from windtunnel.harness.dissect.frames.wire_frame import (
    HEADER_CUT,
    NOT_AERON,
    count_frames,
    read_control,
    read_data,
)

COUNT_NAMES = (
    "packets",
    "datagrams",
    "frames",
    "other_ports",
    "unrecognised",
    "wrong_checksums",
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
    PACKETS, DATAGRAMS, FRAMES, OTHER_PORTS, UNRECOGNISED, WRONG_CHECKSUMS, NOT_UDP_COUNT,
    FRAGMENTS, FRAGMENTS_INCOMPLETE, CUT_COUNT, CUT_DATAGRAMS, UNSEEN_BYTES, EMPTY, UNKNOWN_LINK,
    UNTIMED, DAMAGED_PLACES, DAMAGED_BYTES, TORN_BYTES,
) = range(len(COUNT_NAMES))  # fmt: skip

ADDRESS = np.dtype([("high", "<i8"), ("low", "<i8"), ("is_used", "<i8")])
ADDRESS_SLOTS = 4_096
ADDRESSES_MAX = ADDRESS_SLOTS // 2
TEXTS_LENGTH = 1 << 20
FRAMES_A_DATAGRAM_MAX = 2_048
"""Maximum number of 32-byte frames in a datagram. This many rows must be free to read a
datagram.
"""

WALK = np.dtype(
    [
        ("count", "<i8"),  # number of rows written
        ("address_count", "<i8"),
        ("texts_used", "<i8"),
        ("keeps", "<i8"),  # checksums of payloads to compute: KEEPS_HASH, KEEPS_CRC32
        ("is_tail", "<i8"),  # whether to read only fragments of datagrams that began before `stop`
        ("pending", "<i8"),  # number of datagrams that are still incomplete
        ("may_meet_section", "<i8"),  # 0 if a pcapng section or interface block is an error
    ]
)


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
    """Write one row for each frame of a datagram. Returns how many bytes of the UDP payload these
    frames occupy.
    """
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
def read_datagram(
    buf: Any, ip_at: int, udp_at: int, end: int, room: int, addresses: Any, time_ns: int,
    record_at: int, interface: int, identification: int, ports: Any, walk: Any, counts: Any,
    rows: Any, table: Any, texts: Any,
) -> None:  # fmt: skip
    """Read the datagram whose UDP header is at `udp_at`, and write a row for each of its frames.
    Its IP header is at `ip_at`, which is negative if the checksum is not to be verified.
    `addresses` contains the two halves of the source address, then those of the destination
    address.
    """
    length = udp_length(buf, udp_at, end, room)
    if length == CUT:
        counts[CUT_COUNT] += 1
        return
    source_port, destination_port = u16_be(buf, udp_at), u16_be(buf, udp_at + 2)
    if not matches_ports(ports, source_port, destination_port):
        counts[OTHER_PORTS] += 1
        return
    stated = u16_be(buf, udp_at + 4)
    is_whole = ip_at >= 0 and stated > 0 and udp_at + stated <= end
    if is_whole and has_wrong_checksum(buf, ip_at, udp_at):
        counts[WRONG_CHECKSUMS] += 1
        return
    at = udp_at + UDP_HEADER_LENGTH
    have = min(length, end - at)
    found = count_frames(buf, at, length, have)
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
        row["ip_identification"] = identification
    walk["count"] += found


@kernel
def is_full(walk: Any, rows: Any) -> bool:
    """Return whether rows, addresses or texts might lack space for another datagram."""
    return bool(
        walk["count"] + FRAMES_A_DATAGRAM_MAX > len(rows)
        or walk["address_count"] + 2 > ADDRESSES_MAX
        or walk["texts_used"] + (1 << 16) > TEXTS_LENGTH
    )
