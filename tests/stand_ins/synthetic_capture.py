"""Synthetic captures: frames, packets around them, and files of every format around those.

Written with `struct` from the public formats; shares nothing with the code that reads captures.
"""

import struct
from typing import NamedTuple

import numpy as np

A, B = "10.0.0.1", "10.0.0.2"
START_NS = 1_760_000_000_000_000_000
SNAP_LENGTH = 262_144


def data(offset, payload=b"", *, session=77, stream=1001, term=5, flags=0xC0, reserved=0):
    length = 32 + len(payload)
    header = struct.pack("<iBBHiiiiq", length, 0, flags, 1, offset, session, stream, term, reserved)
    return header + payload + bytes(-length % 32)


def pad(offset, length, *, session=77, stream=1001, term=5):
    return struct.pack("<iBBHiiiiq", length, 0, 0xC0, 0, offset, session, stream, term, 0)


def heartbeat(offset, *, session=77, stream=1001, term=5, flags=0xC0):
    return struct.pack("<iBBHiiiiq", 0, 0, flags, 1, offset, session, stream, term, 0)


def setup(offset=0, *, session=77, stream=1001, initial=5, term=5, term_length=65_536, mtu=1408):
    fields = (offset, session, stream, initial, term, term_length, mtu, 0)
    return struct.pack("<iBBH8i", 40, 0, 0, 5, *fields)


def sm(offset, window, *, session=77, stream=1001, term=5, receiver=9, flags=0, tag=None):
    length = 36 if tag is None else 44
    head = struct.pack(
        "<iBBH5iq", length, 0, flags, 3, session, stream, term, offset, window, receiver
    )
    return head if tag is None else head + struct.pack("<q", tag)


def nak(offset, length, *, session=77, stream=1001, term=5):
    return struct.pack("<iBBH5i", 28, 0, 0, 2, session, stream, term, offset, length)


def rttm(echo, *, session=77, stream=1001, receiver=9, flags=0x80, delta=0):
    return struct.pack("<iBBHiiqqq", 40, 0, flags, 6, session, stream, echo, delta, receiver)


def error(text, *, session=77, stream=1001, receiver=9, code=13):
    raw = text.encode()
    fields = (session, stream, receiver, 0, code, len(raw))
    return struct.pack("<iBBHiiqqii", 40 + len(raw), 0, 0, 4, *fields) + raw


def response_setup(response, *, session=77, stream=1001):
    return struct.pack("<iBBHiii", 20, 0, 0, 11, session, stream, response)


class Packet(NamedTuple):
    """A captured packet."""

    time_ns: int
    captured: bytes
    original_length: int
    interface: int = 0


def packet(time_ns, payload, snap=SNAP_LENGTH, interface=0, **ends):
    """Return an Ethernet packet around a datagram, cut to the snap length."""
    whole = ethernet(ipv4(udp(payload, ends.pop("ports", (40_000, 24_325))), **ends))
    return Packet(time_ns, whole[:snap], len(whole), interface)


def udp(payload, ports=(40_000, 24_325)):
    return struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload


def ipv4(payload, *, source=A, destination=B, identification=0, fragment=0, protocol=17):
    ends = (bytes(int(part) for part in each.split(".")) for each in (source, destination))
    length = 20 + len(payload)
    return (
        struct.pack(">BBHHHBBH", 0x45, 0, length, identification, fragment, 64, protocol, 0)
        + b"".join(ends)
        + payload
    )


def ipv6(payload, protocol=17):
    ends = bytes([0xFD]) + bytes(14) + b"\x01" + bytes([0xFD]) + bytes(14) + b"\x02"
    return struct.pack(">IHBB", 0x60000000, len(payload), protocol, 64) + ends + payload


def ethernet(payload, ethertype=0x0800, tags=b""):
    return bytes(12) + tags + struct.pack(">H", ethertype) + payload


def fragments(payload, size, identification=7):
    """Return the fragments of a datagram, each with `size` bytes of IP payload except the last."""
    whole = udp(payload)
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    last = len(pieces) - 1
    return [
        ethernet(
            ipv4(
                piece,
                identification=identification,
                fragment=index * size // 8 | (0x2000 if index < last else 0),
            )
        )
        for index, piece in enumerate(pieces)
    ]


def pcap(packets, *, big=False, nanos=True, link=1, snap=SNAP_LENGTH):
    order, unit = ">" if big else "<", 1 if nanos else 1000
    made = [
        struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nanos else 0xA1B2C3D4, 2, 4, 0, 0, snap, link)
    ]
    for each in packets:
        seconds, rest = divmod(each.time_ns, 1_000_000_000)
        lengths = (len(each.captured), each.original_length)
        made.append(struct.pack(f"{order}IIII", seconds, rest // unit, *lengths) + each.captured)
    return b"".join(made)


def _block(order, kind, body):
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def pcapng_head(*, big=False, links=(1,), options=b""):
    """Return a section header and an interface block for each link type."""
    order = ">" if big else "<"
    head = _block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    return head + b"".join(
        _block(order, 1, struct.pack(f"{order}HHI", link, 0, SNAP_LENGTH) + options)
        for link in links
    )


def option(code, value, *, big=False):
    return struct.pack(">HH" if big else "<HH", code, len(value)) + value + bytes(-len(value) % 4)


def pcapng_packets(packets, *, big=False, ticks=lambda time_ns: time_ns // 1000):
    order = ">" if big else "<"
    return b"".join(
        _block(
            order,
            6,
            struct.pack(
                f"{order}IIIII",
                each.interface,
                ticks(each.time_ns) >> 32,
                ticks(each.time_ns) & 0xFFFFFFFF,
                len(each.captured),
                each.original_length,
            )
            + each.captured,
        )
        for each in packets
    )


def pcapng(packets, *, big=False, nanos=True, links=(1,)):
    """Return a section whose interfaces count nanoseconds or microseconds, the default unit."""
    options = option(9, b"\x09", big=big) + option(0, b"", big=big) if nanos else b""
    unit = 1 if nanos else 1000
    return pcapng_head(big=big, links=links, options=options) + pcapng_packets(
        packets, big=big, ticks=lambda time_ns: time_ns // unit
    )


def stream_packets(count, payload=bytes(range(200)), **of_stream):
    """Return packets of a stream from its term's start, one frame each, a microsecond apart."""
    step = (32 + len(payload) + 31) & ~31
    return [
        packet(START_NS + index * 1000, data(index * step, payload, **of_stream))
        for index in range(count)
    ]


def write_long_capture(path, size_bytes, payload_length=1344):
    """Write a valid pcap of about this many bytes: one stream of whole frames; returns their
    number."""
    frame = np.frombuffer(data(0, bytes(payload_length)), dtype=np.uint8)
    around = np.frombuffer(ethernet(ipv4(udp(frame.tobytes())))[:42], dtype=np.uint8)
    length = 16 + len(around) + len(frame)
    count = size_bytes // length
    made = np.zeros((count, length), dtype=np.uint8)
    index = np.arange(count, dtype=np.int64)
    times = index * 3_000
    header = np.zeros((count, 4), dtype="<u4")
    header[:, 0] = START_NS // 10**9 + times // 10**9
    header[:, 1] = times % 10**9
    header[:, 2:] = length - 16
    made[:, :16] = header.view(np.uint8)
    made[:, 16 : 16 + len(around)] = around
    at = 16 + len(around)
    made[:, at:] = frame
    a_term = (1 << 24) // len(frame)
    for field, values in ((8, index % a_term * len(frame)), (20, index // a_term)):
        raw = values.astype("<i4").reshape(-1, 1).view(np.uint8)
        made[:, at + field : at + field + 4] = raw
    made[:, at + 32 :] ^= (index[:, None] & 0xFF).astype(np.uint8)
    with path.open("wb") as file:
        file.write(pcap([]))
        made.tofile(file)
    return count
