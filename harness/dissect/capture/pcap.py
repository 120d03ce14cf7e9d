"""Parser for pcap files. It returns a row for each Aeron frame.

    file header 24 | packet header 16 | packet | packet header 16 | packet | ...

The parser supports microsecond and nanosecond files of either byte order. The input may be
arbitrary bytes: errors are counted and described, not raised. Captures are completely mapped into
memory.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.compressed_file import CompressionError, map_plain_bytes
from windtunnel.harness.dissect.capture.capture_format import (
    HEAD_LENGTH,
    PCAP,
    PCAP_HEADER_LENGTH,
    PCAP_RECORD_HEADER_LENGTH,
    CaptureFormatError,
    read_format,
)
from windtunnel.harness.dissect.capture.checksum import has_valid_checksums
from windtunnel.harness.dissect.capture.packet import (
    CUT,
    IP_FRAGMENT,
    LINK_ETHERNET,
    address_v4,
    address_v6,
    ip_start,
    matches_ports,
    udp_payload_length,
    udp_start,
)
from windtunnel.harness.dissect.frames.bytes_at import u16_be, u32_be, u32_le
from windtunnel.harness.dissect.frames.frames import FRAME, Frames, walk

PACKET_LENGTH_MAX = 1 << 26
"""Maximum length of a packet. A greater length means that the header is damaged."""

PACKETS, DATAGRAMS, OTHER_PORTS, NOT_UDP_COUNT, FRAGMENTS, CUT_COUNT, TORN, DAMAGED = range(8)
_STATISTICS = 8
_GROUP_BIT = 1 << 40
"""The group bit of a MAC address. It is set in broadcast and multicast addresses."""


@kernel
def _u32(buf: Any, at: int, big_endian: bool) -> int:
    return u32_be(buf, at) if big_endian else u32_le(buf, at)


@kernel
def _stamp(rows: Any, first: int, count: int, time_ns: int, datagram: int, length: int) -> None:
    for index in range(first, min(count, len(rows))):
        row = rows[index]
        row["time_ns"] = time_ns
        row["datagram"] = datagram
        row["datagram_length"] = length


@kernel
def _address(rows: Any, first: int, count: int, buf: Any, ip_at: int, udp_at: int) -> None:
    if int(buf[ip_at]) >> 4 == 4:
        source_high, source_low = address_v4(buf, ip_at + 12)
        destination_high, destination_low = address_v4(buf, ip_at + 16)
    else:
        source_high, source_low = address_v6(buf, ip_at + 8)
        destination_high, destination_low = address_v6(buf, ip_at + 24)
    source_port = u16_be(buf, udp_at)
    destination_port = u16_be(buf, udp_at + 2)
    for index in range(first, min(count, len(rows))):
        row = rows[index]
        row["source_high"] = source_high
        row["source_low"] = source_low
        row["destination_high"] = destination_high
        row["destination_low"] = destination_low
        row["source_port"] = source_port
        row["destination_port"] = destination_port


@kernel
def _is_for_its_host(buf: Any, at: int, ip_at: int, macs: Any) -> bool:
    """Return whether a packet has the same destination MAC address as the first packet to the same
    IP address. A packet with another MAC address was damaged.

    Shapes: macs int64[2, 2]: for each host the low half of its IP address, and its MAC address
    """
    if int(buf[ip_at]) >> 4 == 4:
        _, low = address_v4(buf, ip_at + 16)
    else:
        _, low = address_v6(buf, ip_at + 24)
    mac = u32_be(buf, at) << 16 | u16_be(buf, at + 4)
    for host in range(len(macs)):
        if macs[host, 0] == 0:
            macs[host, 0] = low
            macs[host, 1] = mac
        if macs[host, 0] == low:
            return bool((macs[host, 1] ^ mac) & ~_GROUP_BIT == 0)
    return True


@kernel
def _read_packet(
    buf: Any,
    at: int,
    end: int,
    link_type: int,
    time_ns: int,
    ports: Any,
    rows: Any,
    count: int,
    statistics: Any,
    macs: Any,
) -> int:
    """Read one packet, and write a row for each of its frames. Returns `count` plus the number of
    these frames.
    """
    ip_at = ip_start(buf, at, end, link_type)
    status = ip_at
    if ip_at >= 0:
        status, packet_end = udp_start(buf, ip_at, end)
        udp_at = status
        if status >= 0:
            status = udp_payload_length(buf, udp_at, packet_end)
    if status < 0:
        if status == CUT:
            statistics[CUT_COUNT] += 1
        elif status == IP_FRAGMENT:
            statistics[FRAGMENTS] += 1
        else:
            statistics[NOT_UDP_COUNT] += 1
        return count
    if not matches_ports(ports, u16_be(buf, udp_at), u16_be(buf, udp_at + 2)):
        statistics[OTHER_PORTS] += 1
        return count
    if len(macs) and not (
        has_valid_checksums(buf, ip_at, udp_at)
        and (link_type != LINK_ETHERNET or _is_for_its_host(buf, at, ip_at, macs))
    ):
        statistics[DAMAGED] += 1
        return count
    after = walk(buf, udp_at + 8, status, rows, count)
    _stamp(rows, count, after, time_ns, statistics[DATAGRAMS], status)
    _address(rows, count, after, buf, ip_at, udp_at)
    statistics[DATAGRAMS] += 1
    return after


@kernel
def read_packets(
    buf: Any,
    big_endian: bool,
    fraction_ns: int,
    link_type: int,
    ports: Any,
    rows: Any,
    statistics: Any,
    macs: Any,
) -> int:
    """Read all packets of a capture file.

    Shapes:  buf uint8[n], the entire file; ports int64[p], empty for all; rows FRAME[m]; macs
             int64[2, 2] to skip damaged packets, int64[0, 2] to read all
    Returns: the number of frames; rows beyond m are counted but not written
    """
    at = PCAP_HEADER_LENGTH
    count = 0
    statistics[:] = 0
    macs[:] = 0
    while at < len(buf):
        if len(buf) - at < PCAP_RECORD_HEADER_LENGTH:
            statistics[TORN] = 1
            break
        seconds = _u32(buf, at, big_endian)
        fraction = _u32(buf, at + 4, big_endian)
        captured = _u32(buf, at + 8, big_endian)
        at += PCAP_RECORD_HEADER_LENGTH
        if captured > PACKET_LENGTH_MAX or captured > len(buf) - at:
            statistics[TORN] = 1
            break
        statistics[PACKETS] += 1
        time_ns = seconds * 1_000_000_000 + fraction * fraction_ns
        end = at + captured
        count = _read_packet(buf, at, end, link_type, time_ns, ports, rows, count, statistics, macs)
        at = end
    return count


@dataclass(frozen=True)
class Capture:
    """All Aeron frames of one capture file."""

    buf: NDArray[np.uint8]
    "The content of the file, into which `frames['at']` are offsets."
    frames: Frames
    packets: int
    datagrams: int
    "Number of UDP datagrams to or from one of the requested ports."
    other_ports: int
    not_udp: int
    ip_fragments: int
    cut: int
    "Number of packets with fewer bytes than their headers specify."
    damaged: int
    "Number of damaged datagrams, which the receiver discards. 0 without `skip_damaged`."
    torn: bool
    "Whether the file ends inside a packet, because the capture program was killed."
    problem: str
    "The error that prevented reading, or an empty string."


def read_capture(
    path: Path, ports: Iterable[int] = (), *, skip_damaged: bool = False
) -> Capture | None:
    """Read the frames of a capture file, plain or compressed with gzip.

    Returns None if the file does not exist.

    Only datagrams to or from one of `ports` are read, or all datagrams if `ports` is empty.
    `skip_damaged` skips datagrams that the receiver discards because of wrong checksums or MAC
    addresses. Raises UnsafeFileError if the path is not a regular file.
    """
    try:
        mapped = map_plain_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except CompressionError as error:
        return _unreadable(np.zeros(0, dtype=np.uint8), str(error))
    return read_capture_bytes(mapped, ports, skip_damaged=skip_damaged)


def read_capture_bytes(
    buf: NDArray[np.uint8], ports: Iterable[int] = (), *, skip_damaged: bool = False
) -> Capture:
    """Read the frames of a capture file whose content is in memory."""
    try:
        found = read_format(bytes(buf[:HEAD_LENGTH]))
    except CaptureFormatError as error:
        return _unreadable(buf, str(error))
    if found.kind != PCAP:
        return _unreadable(buf, "is a pcapng file: expected a pcap file")
    units = found.is_big_endian, found.fraction_ns, found.link_type
    selected = np.array(sorted(ports), dtype=np.int64)
    statistics = np.zeros(_STATISTICS, dtype=np.int64)
    macs = np.zeros((2 if skip_damaged else 0, 2), dtype=np.int64)
    rows = np.zeros(0, dtype=FRAME)
    for _ in ("count", "fill"):
        count = read_packets(buf, *units, selected, rows, statistics, macs)
        if count == len(rows):
            break
        rows = np.zeros(count, dtype=FRAME)
    return _capture(buf, rows, statistics, "")


def address_halves(text: str) -> tuple[int, int]:
    """Return an IP address as the two 64-bit halves that frame rows contain."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv4Address):
        return 0, 0xFFFF << 32 | int(address)
    packed = address.packed
    high, low = (int.from_bytes(packed[at : at + 8], "big", signed=True) for at in (0, 8))
    return high, low


def sent_by(frames: Frames, address: str) -> NDArray[np.bool_]:
    """Return a mask of the frames that were sent from this address."""
    high, low = address_halves(address)
    found: NDArray[np.bool_] = (frames["source_low"] == low) & (frames["source_high"] == high)
    return found


def sent_to(frames: Frames, address: str) -> NDArray[np.bool_]:
    """Return a mask of the frames that were sent to this address."""
    high, low = address_halves(address)
    found: NDArray[np.bool_] = (frames["destination_low"] == low) & (
        frames["destination_high"] == high
    )
    return found


def _unreadable(buf: NDArray[np.uint8], problem: str) -> Capture:
    empty = np.zeros(0, dtype=FRAME)
    return _capture(buf, empty, np.zeros(_STATISTICS, dtype=np.int64), problem)


def _capture(
    buf: NDArray[np.uint8], rows: Frames, statistics: NDArray[np.int64], problem: str
) -> Capture:
    return Capture(
        buf=buf,
        frames=rows,
        packets=int(statistics[PACKETS]),
        datagrams=int(statistics[DATAGRAMS]),
        other_ports=int(statistics[OTHER_PORTS]),
        not_udp=int(statistics[NOT_UDP_COUNT]),
        ip_fragments=int(statistics[FRAGMENTS]),
        cut=int(statistics[CUT_COUNT]),
        damaged=int(statistics[DAMAGED]),
        torn=bool(statistics[TORN]),
        problem=problem,
    )
