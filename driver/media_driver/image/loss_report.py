"""The file loss-report.dat, which lists each image's losses. Tools can read it at any time.

    0          8           16          24         32       36       40            align 4, next 64
    +----------+-----------+-----------+----------+--------+--------+-------------+--------------+
    | observed | bytes     | first ms  | last ms  | session| stream | channel len | source len   |
    | count    | lost      |           |          |        |        | + text      | + text       |
    +----------+-----------+-----------+----------+--------+--------+-------------+--------------+

The observation count of a new entry is written last, with release. A reader stops at the first
observation count that is not positive. Source: spec 10.6, Aeron 1.53.
"""

import struct
from pathlib import Path

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import add_i64, copy, put_i64, put_i64_release
from windtunnel.driver.files import mapping
from windtunnel.driver.kernels.jit import kernel

FILE_NAME = "loss-report.dat"
ENTRY_ALIGNMENT = 64

OBSERVATION_COUNT = 0
TOTAL_BYTES_LOST = 8
FIRST_OBSERVATION_MS = 16
LAST_OBSERVATION_MS = 24
SESSION_ID = 32
STREAM_ID = 36
CHANNEL = 40

NO_ENTRY = -1
"""Entry offset of an image that has no loss yet."""
FULL = -2
"""Entry offset of an image whose loss cannot be reported because the file is full."""


def make_entry(session_id: int, stream_id: int, channel: str, source: str) -> np.ndarray:
    """Return the bytes of an image's entry, before its first observation."""
    channel_bytes, source_bytes = channel.encode("ascii", "replace"), source.encode()
    source_at = align(CHANNEL + 4 + len(channel_bytes), 4)
    entry = np.zeros(source_at + 4 + len(source_bytes), np.uint8)
    struct.pack_into("<ii", entry, SESSION_ID, session_id, stream_id)
    for at, text in ((CHANNEL, channel_bytes), (source_at, source_bytes)):
        struct.pack_into(f"<i{len(text)}s", entry, at, len(text), text)
    return entry


@kernel
def append(report, end, entry, lost_bytes, now_ms):
    """Append an entry with its first observation at offset `end` of the report.

    Returns: (offset of the entry or FULL, offset of the next one)
    """
    if end + entry.size > report.size:
        return FULL, end
    copy(report, end + TOTAL_BYTES_LOST, entry, TOTAL_BYTES_LOST, entry.size - TOTAL_BYTES_LOST)
    put_i64(report, end + TOTAL_BYTES_LOST, lost_bytes)
    put_i64(report, end + FIRST_OBSERVATION_MS, now_ms)
    put_i64(report, end + LAST_OBSERVATION_MS, now_ms)
    put_i64_release(report, end + OBSERVATION_COUNT, 1)
    return end, end + align(entry.size, ENTRY_ALIGNMENT)


@kernel
def add(report, at, lost_bytes, now_ms):
    """Add an observation to the loss report entry at offset `at`."""
    put_i64(report, at + LAST_OBSERVATION_MS, now_ms)
    add_i64(report, at + TOTAL_BYTES_LOST, lost_bytes)
    add_i64(report, at + OBSERVATION_COUNT, 1)


class LossReport:
    """The mapped loss report file. Only the conductor writes to the file."""

    def __init__(
        self, directory: Path, length: int, page_size: int = 4096, *, sparse: bool = False
    ) -> None:
        self._mapping = mapping.create(
            directory / FILE_NAME, align(length, page_size), sparse=sparse
        )
        self.report = self._mapping.array
        self.length = self._mapping.length

    def close(self) -> None:
        """Unmap the loss report file."""
        self.report = np.empty(0, np.uint8)
        self._mapping.close()
