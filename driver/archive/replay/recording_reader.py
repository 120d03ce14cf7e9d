"""Whole frames of a recording, block by block, addressed to another session and stream.

    position                                end      limit
    |- block, at most one term -|- PAD -|- block -|....|

A block lies in one term and ends before padding, which comes alone. Frames are given out that begin
before `end` and end at or before `limit`, up to which there is data. Each is compared with where it
lies before it is given out, its checksum too where one is asked for; what does not fit is an error
that names the place. Where a checksum does not match nothing of what was read with it is given out.
Source: archive-protocol 4.4, 5.3.
"""

from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.checksum import NO_TABLE, Checksum
from windtunnel.driver.archive.storage.frame_place import is_frame_at
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
    """What comes next: so many bytes of the stream, and, unless it is padding, the bytes."""

    length: int
    frames: np.ndarray | None


NOTHING = Block(0, None)


class Meter(Protocol):
    """Is told how long reads take."""

    def begin(self) -> int:
        """A read begins. Returns what `end` wants."""

    def end(self, began_ns: int, byte_count: int) -> None:
        """So much was read."""


@kernel
def address(chunk, length, until, session_id, stream_id):
    """Give the DATA frames from the start on another session and stream, up to the first PAD.

    Returns: where the first frame begins that was left as it is: padding, or not before `until`
    """
    at = 0
    while at < length and at < until and header.frame_type(chunk, at) != frame_type.PAD:
        put_i32(chunk, at + data.SESSION_ID, session_id)
        put_i32(chunk, at + data.STREAM_ID, stream_id)
        at += align(header.frame_length(chunk, at), data.ALIGNMENT)
    return at


class RecordingReader:
    """Reads one recording from a position on; for one thread."""

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
        """Open the file of `position`. Raises StorageError where it is not there."""
        assert io_max_length >= descriptor.mtu_length, "one frame must fit"
        self.position = position
        """Where the next block begins."""
        self._directory, self._descriptor = directory, descriptor
        self._table = NO_TABLE if checksum is None else checksum.table
        self._io_max_length, self._meter = io_max_length, meter
        self._reader = self._open()

    def _open(self) -> SegmentReader:
        found = self._descriptor
        base = segment_base(
            found.start_position, self.position, found.term_buffer_length,
            found.segment_file_length,
        )  # fmt: skip
        return SegmentReader(self._directory / file_name(found.recording_id, base), base)

    def block(self, end: int, limit: int, session_id: int, stream_id: int) -> Block:
        """The next block, until `advance`; NOTHING where no whole frame is left.

        Raises StorageError where a frame is not what it must be, or its file is missing
        """
        if self.position >= min(end, limit):
            return NOTHING
        found = self._descriptor
        if self.position - self._reader.base == found.segment_file_length:
            # The next first: where it is missing, the one that is still open is closed later, once.
            following = self._open()
            self._reader.close()
            self._reader = following
        term_left = found.term_buffer_length - self.position % found.term_buffer_length
        wanted = min(limit - self.position, term_left, self._io_max_length)
        chunk = self._read(wanted)
        passed, status = check(
            chunk, chunk.size, 0, self.position, found.initial_term_id, found.term_buffer_length,
            found.mtu_length, found.stream_id, self._table,
        )  # fmt: skip
        fault_at = self.position + int(passed)
        if passed == 0 or (status == BAD_CHECKSUM and fault_at < end):
            return self._nothing(int(status), fault_at, chunk.size, wanted)
        if header.frame_type(chunk, 0) == frame_type.PAD:
            length = int(align(header.frame_length(chunk, 0), data.ALIGNMENT))
            return Block(length, None) if self.position + length <= limit else NOTHING
        length = int(
            address(chunk, min(int(passed), chunk.size), end - self.position, session_id, stream_id)
        )
        return Block(length, chunk[:length])

    def _read(self, wanted: int) -> np.ndarray:
        """So many bytes from the position on."""
        began_ns = 0 if self._meter is None else self._meter.begin()
        chunk = self._reader.read(self.position - self._reader.base, wanted)
        if self._meter is not None:
            self._meter.end(began_ns, chunk.size)
        return chunk

    @property
    def is_at_frame(self) -> bool:
        """Whether a frame of this recording begins at the position."""
        return is_frame_at(self._reader, self._descriptor, self.position)

    def _nothing(self, status: int, fault_at: int, read: int, wanted: int) -> Block:
        """Why no frame can be passed."""
        if status < 0:
            raise StorageError(
                f"{self._reader.path}: the frame at position {fault_at} is not sound: "
                f"{FAULTS[status]}"
            )
        if status == END or read < wanted:
            raise StorageError(
                f"{self._reader.path}: unexpected end of data at position {self.position}"
            )
        return NOTHING

    def advance(self, block: Block) -> None:
        """The block was taken."""
        self.position += block.length

    def close(self) -> None:
        self._reader.close()


def publication_parameters(descriptor: RecordingDescriptor, position: int) -> str:
    """What a channel must say so that a publication stands where a recording is read from."""
    term_id = descriptor.initial_term_id + position // descriptor.term_buffer_length
    wrapped = (term_id + (1 << 31)) % (1 << 32) - (1 << 31)
    offset = position % descriptor.term_buffer_length
    return (
        f"init-term-id={descriptor.initial_term_id}|term-id={wrapped}|term-offset={offset}"
        f"|term-length={descriptor.term_buffer_length}|mtu={descriptor.mtu_length}"
    )
