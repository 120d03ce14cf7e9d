"""The frames in an image's log as the subscriber read them, including padding frames."""

from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.records import Records, read_records

HEADER_LENGTH = 32

FRAME_SEEN = np.dtype(
    [
        ("position", "<i8"),  # of the frame's first byte
        ("header", "u1", (HEADER_LENGTH,)),  # bytes in the log
        ("payload_crc32", "<u4"),  # zlib's crc32 of the payload; 0 for a PAD
        ("time_ns", "<i8"),
    ]
)

HEADER = np.dtype(
    [
        ("frame_length", "<i4"),
        ("version", "u1"),
        ("flags", "u1"),
        ("type", "<u2"),
        ("term_offset", "<i4"),
        ("session_id", "<i4"),
        ("stream_id", "<i4"),
        ("term_id", "<i4"),
        ("reserved_value", "<i8"),
    ]
)


def read_frames_seen(path: Path) -> Records | None:
    """Read all frames of the image. Returns None if the file is missing."""
    return read_records(path, FRAME_SEEN)


def headers(frames: Records) -> Records:
    """Decode the frames' headers into structured fields."""
    plain = np.ascontiguousarray(frames["header"])
    return plain.view(HEADER).reshape(len(frames))
