"""Parses a captured packet down to its UDP datagram, including IP reassembly.

    packet -> link layer -> IP --complete--> datagram -> rows
                             |                   ^
                             +--fragment--> reassembly

If the capture truncates IP fragments, the frames at the start of the first fragment are still read.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.capture.capture_rows import (
    CUT_COUNT,
    FRAGMENTS,
    FRAGMENTS_INCOMPLETE,
    NOT_UDP_COUNT,
    read_datagram,
)
from windtunnel.harness.dissect.capture.datagram import FRAGMENT, ip_payload
from windtunnel.harness.dissect.capture.packet import CUT, NOT_UDP, address_v4, address_v6, ip_start
from windtunnel.harness.dissect.capture.reassembly import (
    IGNORED,
    INCOMPLETE,
    append_fragment,
    expire,
    slot_of,
    store_first,
)
from windtunnel.harness.dissect.frames.wire_frame import NO_IDENTIFICATION

_NO_IP_HEADER = -1
"""There is no IP header to verify the checksum with."""


@kernel
def _read_addresses(buf: Any, ip_at: int, addresses: Any) -> None:
    if int(buf[ip_at]) >> 4 == 4:
        addresses[0], addresses[1] = address_v4(buf, ip_at + 12)
        addresses[2], addresses[3] = address_v4(buf, ip_at + 16)
    else:
        addresses[0], addresses[1] = address_v6(buf, ip_at + 8)
        addresses[2], addresses[3] = address_v6(buf, ip_at + 24)


@kernel
def _matches_slot(slot: Any, addresses: Any, identification: int) -> bool:
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
    """Add an IP fragment to the reassembly slot of its packet. Returns the slot's index and, once
    the packet is complete, the length of the IP payload.
    """
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
        store_first(slot, store[index], buf, at, length)
    counts[FRAGMENTS_INCOMPLETE] += lost
    walk["pending"] -= lost
    if offset == 0 or not _matches_slot(slot, addresses, identification):
        return index, INCOMPLETE
    whole = append_fragment(slot, store[index], buf, at, length, offset, more)
    if whole in (INCOMPLETE, IGNORED):
        return index, INCOMPLETE
    slot["have"] = 0
    walk["pending"] -= slot["counts"]
    return index, whole if slot["counts"] else INCOMPLETE


@kernel
def read_packet(
    buf: Any, at: int, end: int, link_type: int, time_ns: int, record_at: int, interface: int,
    ports: Any, walk: Any, counts: Any, rows: Any, table: Any, texts: Any, pending: Any,
    store: Any, addresses: Any,
) -> None:  # fmt: skip
    """Read the Aeron frames in the packet between the offsets `at` and `end`. The array shapes are
    the same as in `capture_walk.walk_records`.
    """
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
    # Only fragmented IPv6 packets have an identification, so it cannot show the order of all
    # packets.
    named = identification if int(buf[ip_at]) >> 4 == 4 else NO_IDENTIFICATION
    if status != FRAGMENT:
        if counted:
            last = min(end, payload_at + length)
            read_datagram(
                buf, ip_at, payload_at, last, length, addresses, time_ns, record_at, interface,
                named, ports, walk, counts, rows, table, texts,
            )  # fmt: skip
        return
    counts[FRAGMENTS] += counted
    if payload_at + length > end:
        # The frames at the start of a truncated first fragment can still be read.
        if offset == 0 and counted:
            read_datagram(
                buf, _NO_IP_HEADER, payload_at, end, 1 << 16, addresses, time_ns, record_at,
                interface, named, ports, walk, counts, rows, table, texts,
            )  # fmt: skip
        return
    index, whole = _read_piece(
        buf, payload_at, length, offset, more, identification, record_at, addresses, walk, counts,
        pending, store,
    )  # fmt: skip
    if whole > 0:
        read_datagram(
            store[index], _NO_IP_HEADER, 0, whole, whole, addresses, time_ns,
            pending[index]["record_at"], interface, named, ports, walk, counts, rows, table, texts,
        )  # fmt: skip
