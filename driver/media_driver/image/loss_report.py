"""The file loss-report.dat, which lists each image's losses. Tools can read it at any time.

    0          8           16          24         32       36       40            align 4, next 64
    +----------+-----------+-----------+----------+--------+--------+-------------+--------------+
    | observed | bytes     | first ms  | last ms  | session| stream | channel len | source len   |
    | count    | lost      |           |          |        |        | + text      | + text       |
    +----------+-----------+-----------+----------+--------+--------+-------------+--------------+

The observation count of a new entry is written last, with release. A reader stops at the first
observation count that is not positive. Source: spec 10.6, Aeron 1.53.
"""

from pathlib import Path

import numpy as np

from windtunnel.driver.base import mapping
from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import add_i64, copy, put_i32, put_i64, put_i64_release
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
        self._next_at = 0

    def create_entry(
        self,
        lost_bytes: int,
        now_ms: int,
        session_id: int,
        stream_id: int,
        channel: str,
        source: str,
    ) -> int:
        """Create an entry with its first observation. Returns the entry's offset, or FULL if the
        file has no space.
        """
        channel_bytes, source_bytes = channel.encode("ascii", "replace"), source.encode()
        at = self._next_at
        source_at = at + align(CHANNEL + 4 + len(channel_bytes), 4)
        end = source_at + 4 + len(source_bytes)
        if end > self.length:
            return FULL
        put_i64(self.report, at + TOTAL_BYTES_LOST, lost_bytes)
        put_i64(self.report, at + FIRST_OBSERVATION_MS, now_ms)
        put_i64(self.report, at + LAST_OBSERVATION_MS, now_ms)
        put_i32(self.report, at + SESSION_ID, session_id)
        put_i32(self.report, at + STREAM_ID, stream_id)
        self._put_text(at + CHANNEL, channel_bytes)
        self._put_text(source_at, source_bytes)
        put_i64_release(self.report, at + OBSERVATION_COUNT, 1)
        self._next_at = int(align(end, ENTRY_ALIGNMENT))
        return at

    def _put_text(self, at: int, text: bytes) -> None:
        put_i32(self.report, at, len(text))
        if text:
            copy(self.report, at + 4, np.frombuffer(text, np.uint8).copy(), 0, len(text))

    def close(self) -> None:
        """Unmap the loss report file."""
        self.report = np.empty(0, np.uint8)
        self._mapping.close()
