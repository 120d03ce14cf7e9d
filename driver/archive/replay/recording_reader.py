"""Reads the frames of a recording block by block, and sets their session and stream id.

    position                                end      limit
    |- block, at most one term -|- PAD -|- block -|....|

A block is within one term and ends before padding, which is a separate block. Blocks contain
complete frames that begin before `end` and end at or before `limit`, the end of the available data.
Each frame header is compared with the frame's position, and the checksum is verified if one is
configured. For an invalid frame, an error with its position is raised. If a checksum does not
match, no frame from that read is returned. Source: archive-protocol 4.4, 5.3.
"""

from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.checksum import NO_TABLE, Checksum
from windtunnel.driver.archive.storage.frame_position import is_frame_at
from windtunnel.driver.archive.storage.frame_walk import (
    BAD_CHECKSUM,
    END,
    FAULTS,
    SegmentReader,
    check,
)
from windtunnel.driver.archive.storage.segment_file import file_name, segment_base
from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import put_i32
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import data, frame_type, header

IO_MAX_LENGTH = 1 << 20


class Block(NamedTuple):
    """A block of a recording: its length and its frames. The frames are None if the block is
    padding.
    """

    length: int
    frames: np.ndarray | None


EMPTY = Block(0, None)


class Meter(Protocol):
    """The interface for measuring the duration of reads."""

    def begin(self) -> int:
        """Start timing a read. Returns the start time, to be passed to `end`."""

    def end(self, began_ns: int, byte_count: int) -> None:
        """End the measurement of a read of `byte_count` bytes."""


@kernel
def rewrite_ids(chunk, length, until, session_id, stream_id):
    """Set the session and stream id of all DATA frames before the first PAD frame.

    Returns: the offset of the first unchanged frame, which is padding or does not begin before
    `until`
    """
    at = 0
    while at < length and at < until and header.frame_type(chunk, at) != frame_type.PAD:
        put_i32(chunk, at + data.SESSION_ID, session_id)
        put_i32(chunk, at + data.STREAM_ID, stream_id)
        at += align(header.frame_length(chunk, at), data.ALIGNMENT)
    return at


class RecordingReader:
    """Reads one recording, starting at a position. Only one thread may use it."""

    def __init__(
        self,
        directory: Path,
        descriptor: RecordingDescriptor,
        position: int,
        *,
        checksum: Checksum | None = None,
        io_max_length: int = IO_MAX_LENGTH,
        meter: Meter | None = None,
    ) -> None:
        """Open the segment file that contains `position`. Raises StorageError if the file does not
        exist.
        """
        assert io_max_length >= descriptor.mtu_length, "a frame must fit"
        self.position = position
        """The position of the next block."""
        self._directory, self._descriptor = directory, descriptor
        self._table = NO_TABLE if checksum is None else checksum.table
        self._io_max_length, self._meter = io_max_length, meter
        self._reader = self._open()

    def _open(self) -> SegmentReader:
        descriptor = self._descriptor
        base = segment_base(
            descriptor.start_position, self.position, descriptor.term_buffer_length,
            descriptor.segment_file_length,
        )  # fmt: skip
        return SegmentReader(self._directory / file_name(descriptor.recording_id, base), base)

    def block(self, end: int, limit: int, session_id: int, stream_id: int) -> Block:
        """Return the next block, or EMPTY if no complete frame is left.

        Repeated calls return the same block until `advance` is called. Raises StorageError if a
        frame is invalid or its file is missing.
        """
        if self.position >= min(end, limit):
            return EMPTY
        descriptor = self._descriptor
        if self.position - self._reader.base == descriptor.segment_file_length:
            # Open the next file first. If it is missing, the current file stays open until `close`.
            following = self._open()
            self._reader.close()
            self._reader = following
        term_length = descriptor.term_buffer_length
        term_left = term_length - self.position % term_length
        read_length = min(limit - self.position, term_left, self._io_max_length)
        chunk = self._read(read_length)
        passed, status = check(
            chunk, chunk.size, 0, self.position, descriptor.initial_term_id, term_length,
            descriptor.mtu_length, descriptor.stream_id, self._table,
        )  # fmt: skip
        fault_at = self.position + int(passed)
        if passed == 0 or (status == BAD_CHECKSUM and fault_at < end):
            return self._no_frame(int(status), fault_at, chunk.size, read_length)
        if header.frame_type(chunk, 0) == frame_type.PAD:
            length = int(align(header.frame_length(chunk, 0), data.ALIGNMENT))
            return Block(length, None) if self.position + length <= limit else EMPTY
        length = int(
            rewrite_ids(
                chunk, min(int(passed), chunk.size), end - self.position, session_id, stream_id
            )
        )
        return Block(length, chunk[:length])

    def _read(self, length: int) -> np.ndarray:
        """Read up to `length` bytes at the current position."""
        began_ns = 0 if self._meter is None else self._meter.begin()
        chunk = self._reader.read(self.position - self._reader.base, length)
        if self._meter is not None:
            self._meter.end(began_ns, chunk.size)
        return chunk

    @property
    def is_at_frame(self) -> bool:
        """Return whether a frame of this recording begins at the current position."""
        return is_frame_at(self._reader, self._descriptor, self.position)

    def _no_frame(self, status: int, fault_at: int, read: int, expected: int) -> Block:
        """Return EMPTY if the archive may not have written the next frame yet. Otherwise raise
        StorageError.
        """
        if status < 0:
            raise StorageError(
                f"{self._reader.path}: invalid frame at position {fault_at}: {FAULTS[status]}"
            )
        if status == END or read < expected:
            raise StorageError(
                f"{self._reader.path}: unexpected end of data at position {self.position}"
            )
        return EMPTY

    def advance(self, block: Block) -> None:
        """Advance the position after a block was sent."""
        self.position += block.length

    def close(self) -> None:
        self._reader.close()


def publication_parameters(descriptor: RecordingDescriptor, position: int) -> str:
    """Return channel parameters for a publication that starts at a position of a recording."""
    term_id = descriptor.initial_term_id + position // descriptor.term_buffer_length
    wrapped = (term_id + (1 << 31)) % (1 << 32) - (1 << 31)
    offset = position % descriptor.term_buffer_length
    return (
        f"init-term-id={descriptor.initial_term_id}|term-id={wrapped}|term-offset={offset}"
        f"|term-length={descriptor.term_buffer_length}|mtu={descriptor.mtu_length}"
    )
