"""Synthetic captures of any length for benchmarks. They contain one stream, which loses one frame
in 1,024.

    cycle   SETUP | DATA x 1024, one of them missing | NAK | the missing one | SM |  next cycle ...

Positions continue across cycles and terms, so all frames differ. Captures are built from arrays, at
several hundred megabytes per second.
"""

import struct
from pathlib import Path
from typing import Any

import numpy as np

CYCLE = 1_024
LOST_INDEX = 500
TERM_LENGTH = 1 << 24
SPACING_NS = 1_000
START_S = 1_760_000_000
SESSION, STREAM, TERM = 77, 1_001, 5
_ENDS = bytes([10, 0, 0, 1, 10, 0, 0, 2])
_PORTS = struct.pack(">HH", 40_000, 24_325)
_RECORD, _AROUND = 16, 42
_MAGIC_NS, _SNAP, _ETHERNET = 0xA1B23C4D, 1 << 18, 1
_OFFSET_AT, _TERM_AT, _NAK_TERM_AT, _NAK_OFFSET_AT = 8, 20, 16, 20


def write_capture(path: Path, frames: int, frame_length: int) -> int:
    """Write a synthetic capture with about `frames` frames. Returns the exact number of frames.

    `frame_length` includes the header, and is a power of two of at least 64. Raises OSError.
    """
    assert frame_length >= 64
    assert frame_length & (frame_length - 1) == 0
    cycles = max(1, round(frames / (CYCLE + 3)))
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", _MAGIC_NS, 2, 4, 0, 0, _SNAP, _ETHERNET))
        for cycle in range(cycles):
            file.write(_cycle(cycle, frame_length))
    return cycles * (CYCLE + 3)


def _cycle(number: int, frame_length: int) -> bytes:
    first = number * CYCLE * frame_length
    positions = first + np.arange(CYCLE, dtype=np.int64) * frame_length
    sent = np.delete(positions, LOST_INDEX)
    start_ns = number * (CYCLE + 3) * SPACING_NS
    data = _data_packets(
        sent, start_ns + np.arange(1, CYCLE, dtype=np.int64) * SPACING_NS, frame_length
    )
    lost = positions[LOST_INDEX : LOST_INDEX + 1]
    end_ns = start_ns + CYCLE * SPACING_NS
    term, offset = divmod(int(lost[0]), TERM_LENGTH)
    nak = struct.pack("<iBBH5i", 28, 0, 0, 2, SESSION, STREAM, TERM + term, offset, frame_length)
    retransmit = _data_packets(lost, np.array([end_ns + SPACING_NS]), frame_length)
    term, offset = divmod(first + CYCLE * frame_length, TERM_LENGTH)
    status = struct.pack("<iBBH5iq", 36, 0, 0, 3, SESSION, STREAM, TERM + term, offset, 1 << 21, 9)
    fields = (0, SESSION, STREAM, TERM, TERM, TERM_LENGTH, max(1408, frame_length), 0)
    setup = struct.pack("<iBBH8i", 40, 0, 0, 5, *fields)
    return b"".join(
        [
            _packet(start_ns, setup, False),
            data.tobytes(),
            _packet(end_ns, nak, True),
            retransmit.tobytes(),
            _packet(end_ns + 2 * SPACING_NS, status, True),
        ]
    )


def _data_packets(positions: Any, times_ns: Any, frame_length: int) -> Any:
    header = struct.pack("<iBBH4iq", frame_length, 0, 0xC0, 1, 0, SESSION, STREAM, TERM, 0)
    one = np.frombuffer(_packet(0, header + bytes(frame_length - 32), False), dtype=np.uint8)
    packets = np.repeat(one[None, :], len(positions), axis=0)
    at = _RECORD + _AROUND
    fields = (
        (0, START_S + times_ns // 10**9),
        (4, times_ns % 10**9),
        (at + _OFFSET_AT, positions % TERM_LENGTH),
        (at + _TERM_AT, TERM + positions // TERM_LENGTH),
    )
    for offset, values in fields:
        packets[:, offset : offset + 4] = values.astype("<u4").reshape(-1, 1).view(np.uint8)
    return packets


def _packet(time_ns: int, payload: bytes, is_reply: bool) -> bytes:
    ends, ports = _ENDS, _PORTS
    if is_reply:
        ends, ports = ends[4:] + ends[:4], ports[2:] + ports[:2]
    udp = ports + struct.pack(">HH", 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + ends + udp
    packet = bytes(12) + b"\x08\x00" + ip
    seconds, rest = divmod(time_ns, 10**9)
    return struct.pack("<4I", START_S + seconds, rest, len(packet), len(packet)) + packet
