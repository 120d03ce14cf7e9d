"""Reads the packets of two captures, finds the first one that differs, and describes both.

    file header 24 | packet header 16 | Ethernet 14 | IPv4 20 | UDP 8 | frames | ...

The captures are the simulator's: nanoseconds, IPv4, no IP options. A packet differs if its time,
addresses or any of its bytes differ.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from windtunnel.harness.artifact.regular_file import map_bytes
from windtunnel.harness.dissect.capture.capture_format import (
    PCAP_HEADER_LENGTH,
    PCAP_RECORD_HEADER_LENGTH,
)
from windtunnel.harness.dissect.frames import layout

_NS_PER_S = 1_000_000_000
_HEADER = struct.Struct("<IIII")
_IP, _UDP, _PAYLOAD = 14, 34, 42
_UNSAID = ("version", "type")
END = "no packet"


class Packet(NamedTuple):
    """A packet of a capture: where its header begins, its time, and where its bytes begin and end.
    They may end behind the end of the capture.
    """

    at: int
    time_ns: int
    start: int
    end: int


class PacketPair(NamedTuple):
    """The first packet that differs: the time of the earlier one, and what each capture has."""

    time_ns: int
    first: str
    second: str


def first_packet_difference(first: Path, second: Path) -> PacketPair | None:
    """Return the first packet that differs between two captures, or None if they are equal."""
    one, other = (map_bytes(each) for each in (first, second))
    common = min(one.size, other.size)
    unequal = np.flatnonzero(one[:common] != other[:common])
    if not unequal.size and one.size == other.size:
        return None
    at = _start_of_packet(one, int(unequal[0]) if unequal.size else common)
    texts = [_described(each, at) for each in (one, other)]
    time_ns = min((time_ns for time_ns, _ in texts if time_ns), default=0)
    return PacketPair(time_ns, texts[0][1], texts[1][1])


def _start_of_packet(capture: np.ndarray, offset: int) -> int:
    """Return where the packet that contains an offset begins. Packets before it must be whole."""
    at = PCAP_HEADER_LENGTH
    for packet in packets(capture):
        if offset < packet.end:
            return packet.at
        at = packet.end
    return at


def packets(capture: np.ndarray) -> Iterator[Packet]:
    """Yield the packets of a capture, in order. The last one may be cut off."""
    at = PCAP_HEADER_LENGTH
    while at + PCAP_RECORD_HEADER_LENGTH <= capture.size:
        packet = _packet_at(capture, at)
        yield packet
        at = packet.end


def _packet_at(capture: np.ndarray, at: int) -> Packet:
    seconds, fraction, length, _ = _HEADER.unpack_from(capture, at)
    start = at + PCAP_RECORD_HEADER_LENGTH
    return Packet(at, seconds * _NS_PER_S + fraction, start, start + length)


def _described(capture: np.ndarray, at: int) -> tuple[int, str]:
    """Return the time and a description of the packet at an offset. At the end of a capture, or if
    the packet is cut off, the time is 0.
    """
    if at + PCAP_RECORD_HEADER_LENGTH > capture.size:
        return 0, END
    _, time_ns, start, end = _packet_at(capture, at)
    if end - start < _PAYLOAD or end > capture.size:
        return 0, END
    packet = capture[start:end].tobytes()
    source, destination = (str(ipaddress.IPv4Address(packet[i : i + 4])) for i in (26, 30))
    ports = struct.unpack_from(">HH", packet, _UDP)
    text = f"{source}:{ports[0]} to {destination}:{ports[1]}: {frames_text(packet[_PAYLOAD:])}"
    return time_ns, text


def frames_text(datagram: bytes) -> str:
    """Describe a datagram: the type and fields of its first frame, and its length in bytes."""
    total = f"{len(datagram)} bytes"
    if len(datagram) < layout.HEADER_LENGTH:
        return total
    frame = layout.BY_TYPE_CODE.get(_value(datagram, layout.HEADER[-1]))
    if frame is None or len(datagram) < frame.length:
        return f"unknown frame, {total}"
    fields = [
        f"{each.name} {_value(datagram, each)}"
        for each in (*layout.HEADER, *frame.fields)
        if each.name not in _UNSAID
    ]
    return f"{frame.name} {', '.join(fields)} ({total})"


def _value(datagram: bytes, field: layout.Field) -> int:
    return int.from_bytes(datagram[field.offset : field.end], "little", signed=field.signed)
