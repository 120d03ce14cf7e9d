"""Rows of Aeron frames, and a compiled kernel that splits datagrams into frames.

    datagram  | DATA 0..287 | DATA 288..575 | PAD 576..607 |     three rows, one datagram index

The rules and codes are those in the table of `artifact.middlebox.frame_class`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import (
    DATA,
    HEARTBEAT,
    MALFORMED,
    NAK,
    OTHER,
    PAD,
    SETUP,
    SM,
)
from windtunnel.harness.dissect.frames.bytes_at import i32_le, i64_le, u16_le

FRAME = np.dtype(
    [
        ("time_ns", "<i8"),  # time of the packet, epoch nanoseconds
        ("at", "<i8"),  # file offset of the frame's first byte
        ("source_high", "<i8"),  # IPv6 address, or IPv4 address as ::ffff:a.b.c.d
        ("source_low", "<i8"),
        ("destination_high", "<i8"),
        ("destination_low", "<i8"),
        ("source_port", "<u2"),
        ("destination_port", "<u2"),
        ("datagram", "<i4"),  # index of the datagram in the capture
        ("datagram_length", "<i4"),  # length of the UDP payload
        ("frame_type", "<u2"),  # a frame_class code
        ("flags", "u1"),
        ("version", "u1"),
        ("frame_length", "<i4"),  # from the header; 0 for a heartbeat
        ("session_id", "<i4"),
        ("stream_id", "<i4"),
        ("term_id", "<i4"),  # SETUP: active term id; SM: consumption term id
        ("term_offset", "<i4"),  # SM: consumption term offset
        ("initial_term_id", "<i4"),  # SETUP only
        ("term_length", "<i4"),  # SETUP only
        ("mtu", "<i4"),  # SETUP only
        ("ttl", "<i4"),  # SETUP only
        ("window_bytes", "<i4"),  # SM only
        ("nak_length", "<i4"),  # NAK only
        ("receiver_id", "<i8"),  # SM only
    ]
)
Frames = NDArray[Any]

FRAME_ALIGNMENT = 32
HEADER_LENGTH = 8
DATA_HEADER_LENGTH = 32
SM_LENGTH = 36
_SHORTEST = np.array([32, 32, 28, 36, 40, 40, 40, 8, 0, 0, 0, 20], dtype=np.int64)
"""Fixed length of each frame type by type code, or 0 if open-source drivers do not use the code."""


@kernel
def class_of_first(buf: Any, at: int, length: int) -> int:
    """Return the class of a datagram's first frame. For DATA and PAD, `walk` performs further
    checks.
    """
    if length < HEADER_LENGTH:
        return MALFORMED
    frame_length = i32_le(buf, at)
    type_code = u16_le(buf, at + 6)
    if frame_length < 0 or int(buf[at + 4]) != 0:
        return MALFORMED
    if type_code >= len(_SHORTEST) or _SHORTEST[type_code] == 0:
        return OTHER
    if length < _SHORTEST[type_code]:
        return MALFORMED
    if type_code == DATA and frame_length == 0:
        return HEARTBEAT if length == DATA_HEADER_LENGTH else MALFORMED
    return type_code


@kernel
def class_of_next(buf: Any, at: int, left: int) -> int:
    """Return DATA or PAD if a complete frame of that type is at offset `at`, else MALFORMED."""
    if left < DATA_HEADER_LENGTH:
        return MALFORMED
    frame_length = i32_le(buf, at)
    type_code = u16_le(buf, at + 6)
    if frame_length < DATA_HEADER_LENGTH or int(buf[at + 4]) != 0:
        return MALFORMED
    if type_code == PAD:
        return PAD if left == DATA_HEADER_LENGTH else MALFORMED
    if type_code != DATA or aligned(frame_length) > left:
        return MALFORMED
    return DATA


@kernel
def aligned(frame_length: int) -> int:
    """Return the number of bytes that a frame occupies in its term."""
    return (frame_length + FRAME_ALIGNMENT - 1) & ~(FRAME_ALIGNMENT - 1)


@kernel
def fill(row: Any, buf: Any, at: int, length: int, frame_class: int) -> None:
    """Copy the fields of the frame at offset `at` to a row. Only the first `length` bytes of the
    frame are available.
    """
    row["at"] = at
    row["frame_type"] = frame_class
    if length < HEADER_LENGTH:
        return
    row["frame_length"] = i32_le(buf, at)
    row["version"] = buf[at + 4]
    row["flags"] = buf[at + 5]
    if frame_class in (MALFORMED, OTHER) or length < 16:
        return
    if frame_class in (DATA, PAD, HEARTBEAT, SETUP):
        row["term_offset"] = i32_le(buf, at + 8)
        row["session_id"] = i32_le(buf, at + 12)
        row["stream_id"] = i32_le(buf, at + 16)
        row["term_id"] = i32_le(buf, at + (24 if frame_class == SETUP else 20))
    else:
        row["session_id"] = i32_le(buf, at + 8)
        row["stream_id"] = i32_le(buf, at + 12)
    if frame_class == SETUP:
        row["initial_term_id"] = i32_le(buf, at + 20)
        row["term_length"] = i32_le(buf, at + 28)
        row["mtu"] = i32_le(buf, at + 32)
        row["ttl"] = i32_le(buf, at + 36)
    elif frame_class in (NAK, SM):
        row["term_id"] = i32_le(buf, at + 16)
        row["term_offset"] = i32_le(buf, at + 20)
        if frame_class == NAK:
            row["nak_length"] = i32_le(buf, at + 24)
        else:
            row["window_bytes"] = i32_le(buf, at + 24)
            row["receiver_id"] = i64_le(buf, at + 28)


@kernel
def walk(buf: Any, at: int, length: int, rows: Any, count: int) -> int:
    """Split a datagram into frames, and write a row for each of them.

    Shapes:  buf uint8[n], at + length <= n; rows FRAME[m]
    Returns: `count` plus the frames found; rows beyond m are counted but not written
    """
    frame_class = class_of_first(buf, at, length)
    if frame_class not in (DATA, PAD):
        if count < len(rows):
            fill(rows[count], buf, at, length, frame_class)
        return count + 1
    end = at + length
    while at < end:
        frame_class = class_of_next(buf, at, end - at)
        if count < len(rows):
            fill(rows[count], buf, at, end - at, frame_class)
        count += 1
        if frame_class != DATA:
            break
        at += aligned(i32_le(buf, at))
    return count
