"""Reads the frames of a recording block by block, and sets their session and stream id.

    position                                end      limit
    |- block, at most one term -|- PAD -|- block -|....|

A block is within one term and ends before padding, which is a separate block. Blocks contain
complete frames that begin before `end` and end at or before `limit`, the end of the available data.
Each frame header is compared with the frame's position, and the checksum is verified if one is
configured. For an invalid frame, an error with its position is raised. If a checksum does not
match, no frame of its block is returned. Source: archive-protocol 4.4, 5.3.
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
    MORE,
    SegmentReader,
    frame_fault,
    is_checksum_right,
)
from windtunnel.driver.archive.storage.segment_file import base_of, file_name
from windtunnel.driver.base.arith import align, bits_to_shift, wrap_i32
from windtunnel.driver.base.atomics import get_i64, put_i32
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer.block import FIRST_WORD_LENGTH
from windtunnel.driver.wire import data, frame_type, header

IO_MAX_LENGTH = 1 << 20
PADDING = 2
"""The status, in addition to those of `frame_walk`, if the next frame is padding."""


class Block(NamedTuple):
    """A block of a recording. Padding has no frames."""

    length: int
    is_padding: bool = False


EMPTY = Block(0)


class Space(Protocol):
    """Where a block is stored: its first eight bytes in `first_word`, all others in `frames`."""

    first_word: np.ndarray
    frames: np.ndarray


class Meter(Protocol):
    """The interface for measuring the duration of reads."""

    def begin(self) -> int:
        """Start timing a read. Returns the start time, to be passed to `end`."""

    def end(self, began_ns: int, byte_count: int) -> None:
        """End the measurement of a read of `byte_count` bytes."""


@kernel
def readdress(
    frames, first_word, length, until, position, initial_term_id, term_length, mtu, stream_id,
    table, new_session_id, new_stream_id,
):  # fmt: skip
    """Check the DATA frames of a block that begin before `until`, and set their session and stream
    id. `position` is the stream position of the block.

    Shapes:  frames uint8[length or more], of which the first eight bytes are in first_word uint8[8]
             instead; table int64[8, 256], or int64[8, 0] to skip checksums
    Returns: (offset where it stopped, PADDING, END, MORE, or the fault of the frame there)
    """
    bits = bits_to_shift(term_length)
    word = get_i64(first_word, 0)
    at = 0
    while True:
        frame_length = wrap_i32(word)
        if frame_length <= 0:
            return at, END
        type_code = (word >> 48) & 0xFFFF
        fault = frame_fault(
            frames, at, frame_length, type_code, position + at, bits, initial_term_id, term_length,
            mtu, stream_id,
        )  # fmt: skip
        if fault != 0:
            return at, fault
        if type_code == frame_type.PAD:
            return at, PADDING
        step = align(frame_length, data.ALIGNMENT)
        header.prefetch_later(frames, at, step)
        end = at + step
        if end > length:
            return at, MORE
        if not is_checksum_right(frames, at, end, table):
            return at, BAD_CHECKSUM
        put_i32(frames, at + data.SESSION_ID, new_session_id)
        put_i32(frames, at + data.STREAM_ID, new_stream_id)
        at = end
        if at >= until or at + data.HEADER_LENGTH > length:
            return at, MORE
        word = get_i64(frames, at)


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
        base = base_of(descriptor, self.position)
        return SegmentReader(self._directory / file_name(descriptor.recording_id, base), base)

    def block(self, space: Space, end: int, limit: int, session_id: int, stream_id: int) -> Block:
        """Read the next block into `space`, or return EMPTY if no complete frame is left.

        What was read beyond the block is zeroed. Repeated calls read the same block until
        `advance` is called. Raises StorageError if a frame is invalid or its file is missing.
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
        expected = min(limit - self.position, term_left, self._io_max_length, space.frames.size)
        read = self._read(space, expected)
        passed, status = 0, MORE
        if read >= data.HEADER_LENGTH:
            passed, status = readdress(
                space.frames, space.first_word, read, end - self.position, self.position,
                descriptor.initial_term_id, term_length, descriptor.mtu_length,
                descriptor.stream_id, self._table, session_id, stream_id,
            )  # fmt: skip
        length = 0 if status == BAD_CHECKSUM else int(passed)
        space.frames[max(length, FIRST_WORD_LENGTH) : read] = 0
        if length > 0:
            return Block(length)
        if status != PADDING:
            return self._no_frame(int(status), self.position + int(passed), read, expected)
        length = int(align(header.frame_length(space.first_word, 0), data.ALIGNMENT))
        return Block(length, is_padding=True) if self.position + length <= limit else EMPTY

    def _read(self, space: Space, length: int) -> int:
        """Read up to `length` bytes at the current position. Returns the number of bytes read."""
        began_ns = 0 if self._meter is None else self._meter.begin()
        rest = space.frames[FIRST_WORD_LENGTH:length]
        read = self._reader.read_into(self.position - self._reader.base, space.first_word, rest)
        if self._meter is not None:
            self._meter.end(began_ns, read)
        return read

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
