"""Reference implementation of all term operations; a term is a bytearray."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

PAD, DATA = 0, 1


class Frame(NamedTuple):
    """A committed frame: offset, length field, type, offset of the next frame."""

    offset: int
    length: int
    kind: int
    end: int


def aligned(length: int) -> int:
    """Return the next multiple of 32."""
    return -(-length // 32) * 32


def slot(term: bytes | bytearray, offset: int) -> int:
    """Return the length field of a slot."""
    return struct.unpack_from("<i", term, offset)[0]


def committed(term: bytes | bytearray, offset: int) -> Iterator[Frame]:
    """Yield the frames from `offset` up to the first slot without a committed frame."""
    while offset < len(term):
        length = slot(term, offset)
        end = offset + aligned(length)
        if length <= 0 or end > len(term):
            return
        yield Frame(offset, length, struct.unpack_from("<H", term, offset + 6)[0], end)
        offset = end


def scan(term: bytearray, offset: int, max_length: int) -> tuple[int, int]:
    """Return the data that fits a datagram: (bytes on the wire, padding beyond them)."""
    limit = min(max_length, len(term) - offset)
    sizes: list[int] = []
    for frame in committed(term, offset):
        if sum(sizes) >= limit:
            break
        size = 32 if frame.kind == PAD else aligned(frame.length)
        if sum(sizes) + size > limit:
            return (sum(sizes), 0) if sizes else (-size, 0)
        sizes.append(size)
        if frame.kind == PAD and aligned(frame.length) > 32:
            return sum(sizes), aligned(frame.length) - 32
    return sum(sizes), 0


def gap(term: bytearray, offset: int, limit: int) -> tuple[int, int]:
    """Return (offset of the first gap, its length up to `limit`)."""
    while offset < limit and slot(term, offset) > 0:
        offset += aligned(slot(term, offset))
    empty = 0
    while offset + empty < limit and slot(term, offset + empty) == 0:
        empty += 32
    return offset, empty


def poll(
    term: bytearray, offset: int, limit: int, most: int, *, with_padding: bool
) -> tuple[list[Frame], int]:
    """Return (the frames delivered to a subscriber, its offset afterwards)."""
    found: list[Frame] = []
    for frame in committed(term, offset):
        if len(found) == most or frame.offset >= limit:
            break
        if with_padding or frame.kind != PAD:
            found.append(frame)
        offset = frame.end
    return found, offset


def block(term: bytearray, offset: int, limit: int) -> int:
    """Return the end of the complete frames up to `limit`; padding is a block of its own."""
    frames = [frame for frame in committed(term, offset) if frame.offset < limit]
    if frames and frames[0].kind == PAD:
        return frames[0].end
    end = offset
    for frame in frames:
        if frame.kind == PAD or frame.end > limit:
            break
        end = frame.end
    return end


def insert(term: bytearray, offset: int, packet: bytes) -> bool:
    """Insert a datagram at its offset if no frame begins there yet."""
    if slot(term, offset) != 0:
        return False
    term[offset : offset + len(packet)] = packet
    return True


def fill(
    term: bytearray, session: int, stream: int, term_id: int, offset: int, length: int
) -> bool:
    """Fill a gap with padding if all of its slots are empty."""
    if any(slot(term, at) != 0 for at in range(offset, offset + length, 32)):
        return False
    term[offset : offset + 32] = struct.pack(
        "<iBBHiiiiq", length, 0, 0xC0, PAD, offset, session, stream, term_id, 0
    )
    return True


def unblock(
    term: bytearray, session: int, stream: int, term_id: int, offset: int, tail: int
) -> str:
    """Pad a dead publisher's claim at `offset`; return "", "unblocked" or "unblocked to end"."""
    if offset >= tail or slot(term, offset) > 0:
        return ""
    claimed = -slot(term, offset)
    if claimed > 0:
        length = claimed if offset + aligned(claimed) <= len(term) else 0
    else:
        others = [at for at in range(offset + 32, tail, 32) if slot(term, at) != 0]
        last = offset + 32 >= tail or not others
        end = max(tail, offset + 32) if last else others[0]
        length = end - offset if not last or end == len(term) else 0
    if length == 0:
        return ""
    term[offset : offset + 32] = struct.pack(
        "<iBBHiiiiq", length, 0, 0xC0, PAD, offset, session, stream, term_id, 0
    )
    return "unblocked to end" if claimed == 0 and last else "unblocked"
