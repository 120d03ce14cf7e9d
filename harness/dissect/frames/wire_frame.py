"""Strict parsing of datagrams: every byte of a datagram must belong to a valid Aeron frame.

    datagram  | DATA 0..287 | DATA 288..575 | PAD 576.. |     three rows
    datagram  | DATA 0..287 | DATA 288.|                      truncated by the capture: two rows,
                                        ^ captured            the second without payload hash
    datagram  | 28 00 00 00 00 00 02 00 ... | one more |      not Aeron: counted by the caller

`frames.walk` splits datagrams of known Aeron ports. This module detects Aeron on any port, so it
validates all lengths, signs, alignments and consecutive frames. Source: specification section 1.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import (
    DATA,
    ERR,
    HEARTBEAT,
    NAK,
    PAD,
    RES,
    RSP_SETUP,
    RTTM,
    SETUP,
    SM,
)
from windtunnel.harness.dissect.capture.payload_hash import payload_hash
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.dissect.frames.bytes_at import i32_le, i64_le, u16_le
from windtunnel.harness.dissect.frames.crc32 import crc32
from windtunnel.harness.dissect.frames.frames import aligned

WIRE_FRAME = np.dtype(
    [
        ("time_ns", "<i8"),  # time of the packet, epoch nanoseconds
        ("record_at", "<i8"),  # file offset of the record that contains the frame's start
        ("payload_hash", "<i8"),  # XXH64 of a DATA frame's payload
        ("payload_crc32", "<i8"),  # CRC-32 of a DATA frame's payload
        ("reserved_value", "<i8"),  # DATA, PAD, heartbeat
        ("receiver_id", "<i8"),  # SM, RTTM, ERR
        ("group_tag", "<i8"),  # SM and ERR, where has_group_tag
        ("echo_timestamp_ns", "<i8"),  # RTTM
        ("reception_delta_ns", "<i8"),  # RTTM
        ("frame_index", "<i4"),  # index of the frame in its datagram
        ("interface", "<i4"),  # interface of a pcapng section
        ("source", "<i4"),  # slot in the address table
        ("destination", "<i4"),
        ("source_port", "<i4"),
        ("destination_port", "<i4"),
        ("datagram_length", "<i4"),  # length of the UDP payload
        ("ip_identification", "<i4"),  # IPv4 identification, or NO_IDENTIFICATION for IPv6
        ("frame_type", "<i4"),  # a frame_class code
        ("flags", "<i4"),
        ("frame_length", "<i4"),  # from the header; 0 for a heartbeat
        ("session_id", "<i4"),
        ("stream_id", "<i4"),
        ("term_id", "<i4"),
        ("term_offset", "<i4"),
        ("initial_term_id", "<i4"),  # SETUP
        ("term_length", "<i4"),  # SETUP
        ("mtu", "<i4"),  # SETUP
        ("ttl", "<i4"),  # SETUP
        ("window_bytes", "<i4"),  # SM
        ("nak_length", "<i4"),  # NAK
        ("error_code", "<i4"),  # ERR
        ("response_session_id", "<i4"),  # RSP_SETUP
        ("text_at", "<i4"),  # ERR: message; RES: entries; offset in the batch's texts
        ("text_length", "<i4"),
        ("has_hash", "u1"),
        ("has_crc32", "u1"),
        ("has_group_tag", "u1"),
    ]
)
"""A row that describes one frame. Fields that the frame type does not have contain arbitrary
values.
"""

NO_IDENTIFICATION = -1

KEEPS_HASH, KEEPS_CRC32 = 1, 2
"""Flags that select the payload checksums to compute. They can be combined."""

NOT_AERON = 0
HEADER_CUT = -1
"""Status: too few bytes were captured to decide whether the datagram contains Aeron frames."""

TERM_LENGTH_MIN, TERM_LENGTH_MAX = 1 << 16, 1 << 30
MTU_MIN, MTU_MAX = 32, 65_504
ERROR_TEXT_MAX = 1_023
DATA_LENGTH = layout.DATA.length
SM_LENGTH = layout.SM.length
SM_TAGGED_LENGTH = layout.SM_GROUP_TAG.end
RES_ENTRY_MIN = 14
_LENGTHS = np.array(
    [32, 32, layout.NAK.length, 36, 40, layout.SETUP.length, layout.RTTM.length, 8, 0, 0, 0, 20],
    dtype=np.int64,
)
"""Fixed length of each frame type by type code, or 0 if open-source drivers do not use the code."""


@kernel
def count_frames(buf: Any, at: int, length: int, have: int) -> int:
    """Return the number of frames in a datagram, NOT_AERON if the datagram is invalid, or
    HEADER_CUT if the capture contains too little of it.

    Shapes:  buf uint8[n], at + have <= n; have <= length, the bytes captured
    """
    if length < layout.HEADER_LENGTH:
        return NOT_AERON
    if have < layout.HEADER_LENGTH:
        return HEADER_CUT
    kind = u16_le(buf, at + 6)
    if int(buf[at + 4]) != 0 or kind >= len(_LENGTHS):
        return NOT_AERON
    shortest = _LENGTHS[kind]
    if shortest == 0 or length < shortest:
        return NOT_AERON
    if have < shortest:
        return HEADER_CUT
    if kind in (DATA, PAD):
        return _recognise_data(buf, at, length, have)
    if i32_le(buf, at) != length:
        return NOT_AERON
    if kind == RES:
        return _recognise_resolution(buf, at, length, have)
    return 1 if _is_control(buf, at, kind, length) else NOT_AERON


@kernel
def _recognise_data(buf: Any, start: int, length: int, have: int) -> int:
    if length & (layout.FRAME_ALIGNMENT - 1):
        return NOT_AERON
    offset = i32_le(buf, start + 8)
    if offset < 0 or offset & (layout.FRAME_ALIGNMENT - 1):
        return NOT_AERON
    if i32_le(buf, start) == 0 and u16_le(buf, start + 6) == DATA:
        is_known = length == DATA_LENGTH and int(buf[start + 5]) & 0x0F == 0
        return 1 if is_known else NOT_AERON
    at = start
    count = 0
    while at - start < length:
        left = length - (at - start)
        if at - start + DATA_LENGTH > have:
            return count
        frame_length = i32_le(buf, at)
        kind = u16_le(buf, at + 6)
        if frame_length < DATA_LENGTH or int(buf[at + 4]) != 0 or int(buf[at + 5]) & 0x0F:
            return NOT_AERON
        if i32_le(buf, at + 8) != offset or offset + frame_length > TERM_LENGTH_MAX:
            return NOT_AERON
        for field in (12, 16, 20):
            if i32_le(buf, at + field) != i32_le(buf, start + field):
                return NOT_AERON
        count += 1
        if kind == PAD:
            return count if left == DATA_LENGTH else NOT_AERON
        if kind != DATA or aligned(frame_length) > left:
            return NOT_AERON
        at += aligned(frame_length)
        offset += aligned(frame_length)
    return count


@kernel
def _is_control(buf: Any, at: int, kind: int, length: int) -> bool:
    """Return whether a control frame's fields and length are valid. `length` is that of the
    datagram, which must contain no other frame.
    """
    if kind == SETUP:
        term_length = i32_le(buf, at + 28)
        offset, mtu = i32_le(buf, at + 8), i32_le(buf, at + 32)
        if term_length < TERM_LENGTH_MIN or term_length > TERM_LENGTH_MAX:
            return False
        is_power = term_length & (term_length - 1) == 0
        is_inside = offset >= 0 and offset < term_length and offset & 31 == 0
        is_mtu = mtu >= MTU_MIN and mtu <= MTU_MAX and mtu & 31 == 0
        return length == 40 and is_power and is_inside and is_mtu
    if kind in (NAK, SM):
        offset, extent = i32_le(buf, at + 20), i32_le(buf, at + 24)
        is_inside = offset >= 0 and offset < TERM_LENGTH_MAX and offset & 31 == 0
        if extent < 0 or not is_inside or offset + extent > 2 * TERM_LENGTH_MAX:
            return False
        return length == 28 if kind == NAK else length in (SM_LENGTH, SM_TAGGED_LENGTH)
    if kind == ERR:
        text_length = i32_le(buf, at + 36)
        return text_length >= 0 and text_length <= ERROR_TEXT_MAX and length == 40 + text_length
    return bool(length == _LENGTHS[kind])


@kernel
def _recognise_resolution(buf: Any, start: int, length: int, have: int) -> int:
    at = 8
    while at < length:
        if at + RES_ENTRY_MIN > length:
            return NOT_AERON
        if at + RES_ENTRY_MIN > have:
            return 1
        kind = int(buf[start + at])
        name_at = at + (12 if kind == 1 else 24)
        if kind not in (1, 2) or name_at + 2 > length:
            return NOT_AERON
        if name_at + 2 > have:
            return 1
        name_length = u16_le(buf, start + name_at)
        if name_length == 0 or name_length > length:
            return NOT_AERON
        at = (name_at + 2 + name_length + 7) & ~7
    return 1 if at == length else NOT_AERON


@kernel
def read_data(row: Any, buf: Any, at: int, have: int, keeps: int) -> int:
    """Decode a DATA, PAD or heartbeat frame into a record. Returns the number of bytes that the
    frame occupies on the wire.

    `have` is the number of captured bytes of the frame. The header must be complete.
    """
    frame_length = i32_le(buf, at)
    kind = u16_le(buf, at + 6)
    row["frame_type"] = HEARTBEAT if frame_length == 0 else kind
    row["flags"] = int(buf[at + 5])
    row["frame_length"] = frame_length
    row["term_offset"] = i32_le(buf, at + 8)
    row["session_id"] = i32_le(buf, at + 12)
    row["stream_id"] = i32_le(buf, at + 16)
    row["term_id"] = i32_le(buf, at + 20)
    row["reserved_value"] = i64_le(buf, at + 24)
    row["has_hash"], row["has_crc32"] = 0, 0
    if frame_length == 0 or kind == PAD:
        return DATA_LENGTH
    if keeps & KEEPS_CRC32 and frame_length <= have:
        row["has_crc32"] = 1
        row["payload_crc32"] = crc32(buf, at + DATA_LENGTH, frame_length - DATA_LENGTH)
    if keeps & KEEPS_HASH and frame_length <= have:
        row["has_hash"] = 1
        row["payload_hash"] = payload_hash(buf, at + DATA_LENGTH, frame_length - DATA_LENGTH)
    return aligned(frame_length)


@kernel
def read_control(row: Any, buf: Any, at: int) -> None:
    """Decode a control frame into a record, except for error messages and resolution entries."""
    kind = u16_le(buf, at + 6)
    row["frame_type"] = kind
    row["flags"] = int(buf[at + 5])
    row["frame_length"] = i32_le(buf, at)
    if kind == RES:
        return
    if kind == SETUP:
        row["term_offset"] = i32_le(buf, at + 8)
        row["session_id"] = i32_le(buf, at + 12)
        row["stream_id"] = i32_le(buf, at + 16)
        row["initial_term_id"] = i32_le(buf, at + 20)
        row["term_id"] = i32_le(buf, at + 24)
        row["term_length"] = i32_le(buf, at + 28)
        row["mtu"] = i32_le(buf, at + 32)
        row["ttl"] = i32_le(buf, at + 36)
        return
    row["session_id"] = i32_le(buf, at + 8)
    row["stream_id"] = i32_le(buf, at + 12)
    if kind in (NAK, SM):
        row["term_id"] = i32_le(buf, at + 16)
        row["term_offset"] = i32_le(buf, at + 20)
    if kind == NAK:
        row["nak_length"] = i32_le(buf, at + 24)
    elif kind == SM:
        row["window_bytes"] = i32_le(buf, at + 24)
        row["receiver_id"] = i64_le(buf, at + 28)
        row["has_group_tag"] = i32_le(buf, at) == SM_TAGGED_LENGTH
        if i32_le(buf, at) == SM_TAGGED_LENGTH:
            row["group_tag"] = i64_le(buf, at + 36)
    elif kind == RTTM:
        row["echo_timestamp_ns"] = i64_le(buf, at + 16)
        row["reception_delta_ns"] = i64_le(buf, at + 24)
        row["receiver_id"] = i64_le(buf, at + 32)
    elif kind == ERR:
        row["receiver_id"] = i64_le(buf, at + 16)
        row["has_group_tag"] = int(buf[at + 5]) & layout.ERR_FLAG_HAS_GROUP_TAG != 0
        row["group_tag"] = i64_le(buf, at + 24)
        row["error_code"] = i32_le(buf, at + 32)
    elif kind == RSP_SETUP:
        row["response_session_id"] = i32_le(buf, at + 16)
