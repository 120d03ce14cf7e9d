"""Reference implementation of the figures of an observed stream, from two capture files."""

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

PAD, DATA, NAK, STATUS, SETUP = 0, 1, 2, 3, 5
_NEVER_NS = 1 << 62


@dataclass
class Frame:
    """A frame of the stream in one capture."""

    time_ns: int
    source: str
    kind: int
    length: int
    position: int
    payload: int
    is_heartbeat: bool


def packets(path: Path):
    """Yield (time, source, UDP payload) of each packet of a capture file with nanoseconds."""
    raw = path.read_bytes()
    assert raw[:4] == bytes.fromhex("4d3cb2a1"), "expected a little-endian capture with nanoseconds"
    at = 24
    while at < len(raw):
        seconds, nanoseconds, kept, _ = struct.unpack_from("<IIII", raw, at)
        packet = raw[at + 16 : at + 16 + kept]
        at += 16 + kept
        ip = packet[14:]
        header = 4 * (ip[0] & 15)
        length = struct.unpack_from(">H", ip, header + 4)[0]
        source = ".".join(map(str, ip[12:16]))
        yield seconds * 10**9 + nanoseconds, source, ip[header + 8 : header + length]


def frames(path: Path, stream: int) -> tuple[list[Frame], int]:
    """Return all frames of a stream in a capture file, and the stream's term length."""
    found, initial, term_length = [], None, 0
    everything = list(packets(path))
    for _, _, payload in everything:
        if len(payload) >= 40 and struct.unpack_from("<H", payload, 6)[0] == SETUP:
            values = struct.unpack_from("<iiiiii", payload, 8)
            if values[2] == stream and initial is None:
                initial, term_length = values[3], values[5]
    assert initial is not None
    for time_ns, source, payload in everything:
        at = 0
        while at + 24 <= len(payload):
            length, _, _, kind = struct.unpack_from("<iBBH", payload, at)
            term, offset = _place(payload, at, kind)
            stream_at = 12 if kind in (NAK, STATUS) else 16
            if kind in (PAD, DATA, NAK, STATUS) and (
                struct.unpack_from("<i", payload, at + stream_at)[0] == stream
            ):
                position = (term - initial) * term_length + offset
                heartbeat = kind == DATA and length == 0
                data = length - 32 if kind == DATA and not heartbeat else 0
                found.append(Frame(time_ns, source, kind, length, position, data, heartbeat))
            at += max(32, -(-length // 32) * 32) if kind in (PAD, DATA) else len(payload)
            if kind == PAD:
                break
    return found, term_length


def _place(payload: bytes, at: int, kind: int) -> tuple[int, int]:
    """Return the term id and offset of a frame."""
    if kind in (NAK, STATUS):
        return struct.unpack_from("<ii", payload, at + 16)
    term = struct.unpack_from("<i", payload, at + 20)[0]
    return term, struct.unpack_from("<i", payload, at + 8)[0]


def percentile(values: list[int], percent: int) -> int:
    return sorted(values)[max(1, -(-len(values) * percent // 100)) - 1]


def new_data_ns(first: dict[int, Frame], start: int) -> list[int]:
    """Return the times at which the contiguous data grew, given the first arrivals."""
    found: list[int] = []
    latest_ns = 0
    while start in first:
        latest_ns = max(latest_ns, first[start].time_ns)
        found.append(latest_ns)
        start += max(32, -(-first[start].length // 32) * 32)
    return found


def first_arrivals(far: Path, stream: int, sender: str, receiver: str):
    """Return the start position of the image, and the first arrival of each frame after it."""
    far_all = frames(far, stream)[0]
    start = next(e.position for e in far_all if e.source == receiver and e.kind == STATUS)
    first: dict[int, Frame] = {}
    for each in far_all:
        is_data = each.source == sender and each.kind in (PAD, DATA) and not each.is_heartbeat
        if is_data and each.position >= start:
            first.setdefault(each.position, each)
    return start, first


def figures(near: Path, far: Path, stream: int, sender: str, receiver: str) -> dict:
    """Return the figures of a stream with one session, without duplicates and reordering."""
    sent_all = [each for each in frames(near, stream)[0] if each.source == sender]
    far_all = frames(far, stream)[0]
    statuses = [each for each in far_all if each.source == receiver and each.kind == STATUS]
    start = statuses[0].position
    is_data = [each for each in sent_all if each.kind in (PAD, DATA) and not each.is_heartbeat]
    sent = [each for each in is_data if each.position >= start]
    from_sender = [each for each in far_all if each.source == sender and each.position >= start]
    arrived = [each for each in from_sender if each.kind in (PAD, DATA) and not each.is_heartbeat]
    heartbeats = [each for each in from_sender if each.is_heartbeat]
    first: dict[int, Frame] = {}
    for each in arrived:
        first.setdefault(each.position, each)
    took_ns = max(each.time_ns for each in first.values()) - min(each.time_ns for each in sent)
    lost = resent = 0
    repairs: dict[int, list[int]] = {}
    by_position: dict[int, list[Frame]] = {}
    for each in sent:
        by_position.setdefault(each.position, []).append(each)
    before = None
    group = 0
    for position in sorted(by_position):
        copies = by_position[position]
        lost += len(copies) - sum(each.position == position for each in arrived)
        resent += len(copies) - 1
        revealed_ns = [each.time_ns for each in arrived if each.position > position]
        revealed_ns += [each.time_ns for each in heartbeats if each.position > position]
        detected_ns = min(revealed_ns, default=_NEVER_NS)
        arrived_ns = first[position].time_ns if position in first else _NEVER_NS
        second_ns = copies[1].time_ns if len(copies) > 1 else _NEVER_NS
        is_gap = arrived_ns > detected_ns and (second_ns <= arrived_ns or arrived_ns == _NEVER_NS)
        if is_gap:
            group += before != detected_ns
            repairs.setdefault(group, []).append(arrived_ns - detected_ns)
        before = detected_ns if is_gap else None
    durations = [max(each) for each in repairs.values() if max(each) < _NEVER_NS // 2]
    found = {
        "reached_bytes_per_s": sum(each.payload for each in first.values()) * 10**9 / took_ns,
        "finished_ns": took_ns,
        "lost_frames": lost,
        "resent_frames": resent,
        "gaps": len(repairs),
        "naks": sum(each.kind == NAK and each.source == receiver for each in far_all),
    }
    usable = new_data_ns(first, start)
    if usable:
        begin_ns = min(each.time_ns for each in sent)
        waits = [later - earlier for earlier, later in pairwise([begin_ns, *usable])]
        found["longest_silence_ns"] = max(waits)
    if durations:
        found["repair_p50_ns"] = percentile(durations, 50)
        found["repair_p99_ns"] = percentile(durations, 99)
    return found
