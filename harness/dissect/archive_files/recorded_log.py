"""Comparison of an archive's segment file with the expected log, to find the first byte that
differs.

    expected  | DATA | DATA | DATA | PAD - - - - |        all frames, computed from the plan
    file      | DATA | DATA | DATA | PAD 0 0 0 0 | ...    bytes, at position minus base

All header fields and payload bytes are compared. Bytes after the header of a PAD, and those between
a frame's end and the next frame, are undefined and not compared.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.frames.bytes_at import i32_le, i64_le, u16_le
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH

SESSION_ID, STREAM_ID, INITIAL_TERM_ID, TERM_LENGTH = range(4)
"""Indices into the array of header values that all frames of a stream share."""
IDENTITY_LENGTH = 4

_PAD, _HEADER = PAD, DATA_HEADER_LENGTH
_TERM_MASK = 0xFFFFFFFF


@kernel
def _wrong_in_header(buf: Any, at: int, frame: Any, identity: Any) -> int:
    """Return the offset of the first header field that differs from the expected frame, or -1 if
    all are equal.
    """
    position = frame["position"]
    term_id = identity[INITIAL_TERM_ID] + position // identity[TERM_LENGTH]
    if i32_le(buf, at) != frame["frame_length"]:
        return 0
    if buf[at + 4] != 0:
        return 4
    if buf[at + 5] != frame["flags"]:
        return 5
    if u16_le(buf, at + 6) != frame["frame_type"]:
        return 6
    if i32_le(buf, at + 8) != position % identity[TERM_LENGTH]:
        return 8
    if i32_le(buf, at + 12) != identity[SESSION_ID]:
        return 12
    if i32_le(buf, at + 16) != identity[STREAM_ID]:
        return 16
    if i32_le(buf, at + 20) & _TERM_MASK != term_id & _TERM_MASK:
        return 20
    return -1 if i64_le(buf, at + 24) == 0 else 24


@kernel
def first_wrong_frame(
    buf: Any, base: int, frames: Any, payload: Any, identity: Any
) -> tuple[int, int]:
    """Return the first expected frame that differs from a segment file.

    Shapes:  buf uint8[n], from position `base` on; frames EXPECTED_FRAME[m], all of them at or
             after `base`; payload uint8[p], repeated; identity int64[4]
    Returns: (frame, byte in it) or (-1, -1); in a truncated frame, the byte at the end of the file
    """
    period = len(payload)
    for index in range(len(frames)):
        frame = frames[index]
        at = frame["position"] - base
        length = _HEADER if frame["frame_type"] == _PAD else frame["frame_length"]
        if at + length > len(buf):
            return index, max(0, len(buf) - at)
        wrong = _wrong_in_header(buf, at, frame, identity)
        if wrong >= 0:
            return index, wrong
        source = frame["payload_start"] % period
        for byte in range(_HEADER, length):
            if buf[at + byte] != payload[source]:
                return index, byte
            source += 1
            if source == period:
                source = 0
    return -1, -1
