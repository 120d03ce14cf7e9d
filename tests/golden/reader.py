"""Reading the golden sets: compressed files, and the datagrams of a capture.

It parses Ethernet, IPv4 and UDP only as far as the payload, and shares no code with the tested
modules.
"""

import functools
import lzma
import re
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

GOLDEN = Path(__file__).parent
PCAP_HEADER_LENGTH = 24
RECORD_HEADER_LENGTH = 16
ETHERNET_LENGTH = 14
IP_LENGTH = 20
UDP_LENGTH = 8


class Datagram(NamedTuple):
    """The payload of a datagram, its ports, and the identification of its packet."""

    payload: bytes
    source_port: int
    destination_port: int
    identification: int


@functools.lru_cache(maxsize=32)
def load(golden_set: str, name: str) -> bytes:
    """Return the content of `<set>/<name>.xz`."""
    return lzma.decompress((GOLDEN / golden_set / f"{name}.xz").read_bytes())


def load_array(golden_set: str, name: str) -> np.ndarray:
    """Return the content of `<set>/<name>.xz` as a writable array."""
    return np.frombuffer(load(golden_set, name), dtype=np.uint8).copy()


def datagrams(golden_set: str, name: str = "capture.pcap") -> list[Datagram]:
    """Return every UDP datagram of a capture, in order."""
    capture = load(golden_set, name)
    found = []
    at = PCAP_HEADER_LENGTH
    while at < len(capture):
        (captured,) = struct.unpack_from("<I", capture, at + 8)
        at += RECORD_HEADER_LENGTH
        udp = at + ETHERNET_LENGTH + IP_LENGTH
        source, destination, length = struct.unpack_from(">HHH", capture, udp)
        (number,) = struct.unpack_from(">H", capture, at + ETHERNET_LENGTH + 4)
        payload = capture[udp + UDP_LENGTH : udp + length]
        assert udp + length <= at + captured
        found.append(Datagram(payload, source, destination, number))
        at += captured
    return found


def seen_by(golden_set: str, name: str) -> dict[str, int]:
    """Return the `key=number` pairs that an application printed."""
    text = (GOLDEN / golden_set / name).read_text()
    return {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)\b", text)}


def message(index: int, length_max: int) -> np.ndarray:
    """Return message `index` of a golden stream; all streams have the same messages."""
    length = 1 + (index * 7919) % length_max
    return ((index + np.arange(length)) & 0xFF).astype(np.uint8)
