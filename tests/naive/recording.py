"""Reference implementation of the walk over a recording's segment file, with struct and zlib."""

import struct
import zlib

from tests.naive.crc32c import crc

HEADER = struct.Struct("<iBBHiiiiq")
CASTAGNOLI = 0x82F63B78


def frames(content, base, start, end, geometry):
    """Return (rows, end position, reason for the end).

    `geometry` is (initial term id, term length, mtu, session id, stream id); a row is a dictionary
    by the names of `recording_walk.RECORDED`.
    """
    initial, term_length, mtu, session, stream = geometry
    rows, position = [], start
    while position < end:
        header = content[position - base : position - base + 32]
        if len(header) < 32:
            return rows, position, "cut"
        length, _, flags, kind, offset, field, its_stream, term, reserved = HEADER.unpack(header)
        if length <= 0:
            return rows, position, "end"
        occupied = -(-length // 32) * 32
        if kind not in (0, 1):
            return rows, position, "type"
        room = term_length - position % term_length
        if length < 32 or occupied > room or (kind == 1 and length > mtu):
            return rows, position, "length"
        expected = (initial + position // term_length + (1 << 31)) % (1 << 32) - (1 << 31)
        if (term, offset) != (expected, position % term_length):
            return rows, position, "place"
        if its_stream != stream:
            return rows, position, "stream"
        at = position - base
        covered = content[at + 32 : at + occupied]
        if kind == 1 and at + occupied > len(content):
            return rows, position, "cut"
        checksum = 0
        if kind == 1 and field != session:
            if field == struct.unpack("<i", struct.pack("<I", zlib.crc32(covered)))[0]:
                checksum = 1
            elif field == crc(CASTAGNOLI, covered):
                checksum = 2
            else:
                session = field
        payload = zlib.crc32(content[at + 32 : at + length]) if kind == 1 else 0
        rows.append({
            "position": position, "reserved_value": reserved, "payload_crc32": payload,
            "frame_type": kind, "flags": flags, "frame_length": length, "session_id": field,
            "stream_id": its_stream, "term_id": term, "term_offset": offset, "checksum": checksum,
        })  # fmt: skip
        position += occupied
    return rows, position, "end"
