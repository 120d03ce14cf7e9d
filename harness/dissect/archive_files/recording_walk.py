"""Parser for an archive's segment files. It reads window by window, and writes one row per frame.

    file      | 0 0 0 | DATA | DATA | PAD (header) 0 0 0 0 | DATA | 0 0 0 0 0
    position          ^ start                                     ^ end: length 0, or stop position
    window              [ - - - - - - - - ] [ - - - - - - - - ]

The term id and offset in each header must match the frame's position. An archive with checksums
stores them in the session id field. If the field matches a checksum of the frame's bytes, it is
interpreted as a checksum. Only the header of a PAD is recorded. Source: archive specification, 4.3
and 4.4.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import DATA, PAD
from windtunnel.harness.dissect.frames.bytes_at import i32_le, i64_le, u16_le
from windtunnel.harness.dissect.frames.crc32 import crc32

RECORDED = np.dtype(
    [
        ("position", "<i8"),
        ("reserved_value", "<i8"),
        ("payload_crc32", "<i8"),  # length of a DATA frame's payload
        ("frame_type", "<i4"),
        ("flags", "<i4"),
        ("frame_length", "<i4"),
        ("session_id", "<i4"),  # session id, or the checksum
        ("stream_id", "<i4"),
        ("term_id", "<i4"),
        ("term_offset", "<i4"),
        ("checksum", "<i4"),  # NO_CHECKSUM, CRC32, CRC32C
    ]
)
SEGMENT = np.dtype(
    [
        ("position", "<i8"),  # position of the window's first byte, then of the next frame to read
        ("end", "<i8"),  # position at which the recording ends
        ("initial_term_id", "<i8"),
        ("term_length", "<i8"),
        ("mtu", "<i8"),
        ("stream_id", "<i8"),
        ("session_id", "<i8"),  # the last kind of checksum that was found
        ("count", "<i8"),  # number of rows written
    ]
)
NO_CHECKSUM, CRC32, CRC32C = range(3)
CHECKSUM_NAMES = (None, "CRC-32", "CRC-32C")

MORE, ENDED, IMPOSSIBLE_LENGTH, NO_FRAME_TYPE, WRONG_PLACE, OTHER_STREAM = range(6)
PROBLEMS = {
    IMPOSSIBLE_LENGTH: "a frame has an invalid length",
    NO_FRAME_TYPE: "a frame is neither DATA nor PAD",
    WRONG_PLACE: "a frame has the term id and offset of another position",
    OTHER_STREAM: "a frame has another stream id",
}
_HEADER = 32
_FIELD = 0xFFFFFFFF


def _castagnoli() -> Any:
    table = np.zeros(256, dtype=np.int64)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table[byte] = value
    return table


_CASTAGNOLI = _castagnoli()


@kernel
def _crc32c(buf: Any, at: int, end: int) -> int:
    crc = np.int64(_FIELD)
    for index in range(at, end):
        crc = crc >> 8 ^ _CASTAGNOLI[(crc ^ np.int64(buf[index])) & 0xFF]
    return int(crc ^ _FIELD)


@kernel
def _checksum_of(buf: Any, at: int, end: int, field: int) -> int:
    """Return the kind of checksum that a frame's session id field contains, or NO_CHECKSUM."""
    if crc32(buf, at + _HEADER, end - at - _HEADER) == field:
        return CRC32
    return CRC32C if _crc32c(buf, at + _HEADER, end) == field else NO_CHECKSUM


@kernel
def _fault(buf: Any, at: int, segment: Any) -> int:
    """Return the error code for an invalid frame header, or MORE if the header is valid."""
    length, position = i32_le(buf, at), segment["position"]
    is_data = u16_le(buf, at + 6) == DATA
    if not is_data and u16_le(buf, at + 6) != PAD:
        return NO_FRAME_TYPE
    offset = position & (segment["term_length"] - 1)
    if length < _HEADER or offset + ((length + 31) & ~31) > segment["term_length"]:
        return IMPOSSIBLE_LENGTH
    if is_data and length > segment["mtu"]:
        return IMPOSSIBLE_LENGTH
    term = (segment["initial_term_id"] + position // segment["term_length"]) & _FIELD
    if i32_le(buf, at + 8) != offset or i32_le(buf, at + 20) & _FIELD != term:
        return WRONG_PLACE
    return MORE if i32_le(buf, at + 16) == segment["stream_id"] else OTHER_STREAM


@kernel
def walk_segment(buf: Any, segment: Any, rows: Any) -> int:
    """Read the complete frames in a window of a segment file, until the rows are full or the
    recording ends.

    Shapes:  buf uint8[n], from `segment["position"]` on; segment a SEGMENT record, which is
             updated; rows RECORDED[m]
    Returns: MORE if the next window starts at the new position, ENDED, or the error there
    """
    start = segment["position"]
    segment["count"] = 0
    while segment["count"] < len(rows):
        at = segment["position"] - start
        if segment["position"] >= segment["end"]:
            return ENDED
        if at + _HEADER > len(buf):
            return MORE
        length = i32_le(buf, at)
        if length <= 0:
            return ENDED
        fault = _fault(buf, at, segment)
        if fault != MORE:
            return fault
        is_data = u16_le(buf, at + 6) == DATA
        end = at + ((length + 31) & ~31)
        if is_data and end > len(buf):
            return MORE
        row = rows[segment["count"]]
        row["position"] = segment["position"]
        row["frame_type"] = DATA if is_data else PAD
        row["flags"] = buf[at + 5]
        row["frame_length"] = length
        row["term_offset"] = i32_le(buf, at + 8)
        row["session_id"] = i32_le(buf, at + 12)
        row["stream_id"] = i32_le(buf, at + 16)
        row["term_id"] = i32_le(buf, at + 20)
        row["reserved_value"] = i64_le(buf, at + 24)
        row["checksum"] = NO_CHECKSUM
        row["payload_crc32"] = crc32(buf, at + _HEADER, length - _HEADER) if is_data else 0
        if is_data and row["session_id"] != segment["session_id"]:
            row["checksum"] = _checksum_of(buf, at, end, i32_le(buf, at + 12) & _FIELD)
            if row["checksum"] == NO_CHECKSUM:
                segment["session_id"] = row["session_id"]
        segment["count"] += 1
        segment["position"] += end - at
    return MORE
