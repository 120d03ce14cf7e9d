"""Iterates over the frames of a segment file, and checks them.

    base           at                                      limit
    | frame | frame | frame | PAD (header alone) | 0 0 0 ... |

The compiled kernels process one chunk of the file at a time. The data ends at the first frame whose
length is zero. `walk` trusts every frame. `check` compares the term, offset and stream of each
frame with its position and, if a table is given, verifies its checksum. The checksum covers the
payload up to the next frame and is stored in the session id field. Only the header of a padding
frame is stored, so it has no checksum. Source: archive-protocol 4.3, 4.4, 4.6.
"""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.checksum import NO_TABLE, Checksum, crc
from windtunnel.driver.base.arith import align, bits_to_shift
from windtunnel.driver.base.atomics import put_i32
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files.regular_file import open_regular
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position as positions
from windtunnel.driver.wire import data, frame_type, header

CHUNK_LENGTH = 1 << 20
"""The length of a chunk in bytes. Processing a chunk of this length costs more than reading it."""
PAGE_LENGTH = 4096
HEADER_LENGTH = data.HEADER_LENGTH

MORE = 0
"""The status if the next frame begins or ends after the chunk."""
END = 1
BAD_LENGTH = -1
BAD_TERM_OFFSET = -2
BAD_TERM_ID = -3
BAD_STREAM_ID = -4
BAD_CHECKSUM = -5
BAD_TYPE = -6
FAULTS = {
    BAD_LENGTH: "impossible frame length",
    BAD_TERM_OFFSET: "term offset does not match the position",
    BAD_TERM_ID: "term id does not match the position",
    BAD_STREAM_ID: "stream id is not that of the recording",
    BAD_CHECKSUM: "checksum does not match",
    BAD_TYPE: "frame type is neither DATA nor PAD",
}


class FrameHeader(NamedTuple):
    """The header of one frame in a segment file."""

    position: int
    frame_length: int
    flags: int
    type_code: int
    term_offset: int
    session_id: int
    """The session id, or the checksum if the recording has checksums."""
    stream_id: int
    term_id: int


@kernel
def walk(chunk, length, at):
    """Find the end of the data in a chunk of a segment file, starting at the frame at offset `at`.
    The caller guarantees that the frames are valid.

    Returns: (offset of the next frame, offset of the last frame before it or -1,
             END or MORE)
    """
    last = -1
    while at + HEADER_LENGTH <= length:
        frame_length = header.frame_length(chunk, at)
        if frame_length <= 0:
            return at, last, END
        last = at
        step = align(frame_length, data.ALIGNMENT)
        header.prefetch_later(chunk, at, step)
        at += step
    return at, last, MORE


@kernel
def frame_fault(
    chunk, at, frame_length, type_code, position, bits, initial_term_id, term_length, mtu,
    stream_id,
):  # fmt: skip
    """Check the header at offset `at` of a frame at a stream position. Its length and its type are
    given, because the first eight bytes of a block may be elsewhere.

    Returns: the fault, or 0
    """
    offset = positions.term_offset(position, term_length)
    if type_code != frame_type.DATA and type_code != frame_type.PAD:
        return BAD_TYPE
    if frame_length < HEADER_LENGTH or (frame_length > mtu and type_code == frame_type.DATA):
        return BAD_LENGTH
    if offset + align(frame_length, data.ALIGNMENT) > term_length:
        return BAD_LENGTH
    if data.term_offset(chunk, at) != offset:
        return BAD_TERM_OFFSET
    if data.term_id(chunk, at) != positions.term_id(position, bits, initial_term_id):
        return BAD_TERM_ID
    if data.stream_id(chunk, at) != stream_id:
        return BAD_STREAM_ID
    return 0


@kernel
def is_checksum_right(chunk, at, end, table):
    """Return whether the frame from offset `at` to `end` has the right checksum, or `table` is
    empty.
    """
    if table.size == 0:
        return True
    return data.session_id(chunk, at) == crc(table, chunk, at + HEADER_LENGTH, end)


@kernel
def check(chunk, length, at, position, initial_term_id, term_length, mtu, stream_id, table):
    """Check the frames in a chunk of a segment file, from offset `at` up to the first invalid
    frame. `position` is the stream position at offset `at`.

    Shapes:  table int64[8, 256], or int64[8, 0] to skip checksums
    Returns: (offset where it stopped, END, MORE, or the fault of the frame there)
    """
    bits = bits_to_shift(term_length)
    origin = position - at
    while at + HEADER_LENGTH <= length:
        frame_length = header.frame_length(chunk, at)
        if frame_length <= 0:
            return at, END
        step = align(frame_length, data.ALIGNMENT)
        header.prefetch_later(chunk, at, step)
        end = at + step
        type_code = header.frame_type(chunk, at)
        fault = frame_fault(
            chunk, at, frame_length, type_code, origin + at, bits, initial_term_id, term_length,
            mtu, stream_id,
        )  # fmt: skip
        if fault != 0:
            return at, fault
        if type_code == frame_type.DATA:
            if end > length:
                return at, MORE
            if not is_checksum_right(chunk, at, end, table):
                return at, BAD_CHECKSUM
        at = end
    return at, MORE


@kernel
def put_checksums(chunk, length, table):
    """Write a checksum into the header of every complete frame in a chunk of a segment file.

    Shapes:  table int64[8, 256]
    Returns: the offset of the first incomplete frame
    """
    at = 0
    while at + HEADER_LENGTH <= length:
        frame_length = header.frame_length(chunk, at)
        if frame_length <= 0:
            break
        end = at + align(frame_length, data.ALIGNMENT)
        if header.frame_type(chunk, at) != frame_type.PAD:
            if end > length:
                break
            put_i32(chunk, at + data.SESSION_ID, crc(table, chunk, at + HEADER_LENGTH, end))
        at = end
    return at


@dataclass(frozen=True, slots=True)
class Fault:
    """The position of a file's first invalid frame, and the kind of its error."""

    position: int
    status: int

    @property
    def text(self) -> str:
        return f"invalid frame at position {self.position}: {FAULTS[self.status]}"


class SegmentReader:
    """A segment file that is open for reading."""

    def __init__(self, path: Path, base: int) -> None:
        self.path, self.base = path, base
        try:
            self._file = open_regular(path)
        except OSError as error:
            raise StorageError(f"cannot open {path}: {error.strerror}") from error
        self.length = os.fstat(self._file).st_size

    def read(self, at: int, length: int) -> np.ndarray:
        """Read up to `length` bytes at a file offset. Raises StorageError if the read fails."""
        chunk = np.empty(max(length, 0), dtype=np.uint8)
        return chunk[: self.read_into(at, chunk)]

    def read_into(self, at: int, *parts: np.ndarray) -> int:
        """Fill consecutive arrays of bytes with the data at a file offset. Returns the number of
        bytes read, which is less at the end of the file. Raises StorageError if the read fails.
        """
        try:
            return os.preadv(self._file, parts, at)
        except OSError as error:
            why = error.strerror
            if error.errno == errno.EFAULT:
                why = "no memory for the data (is the file system of the Aeron directory full?)"
            raise StorageError(f"cannot read {self.path} at offset {at}: {why}") from error

    def end_of_data(self, start: int, limit: int) -> tuple[int, int]:
        """Return (end of the data, start of the last frame or -1), searching from offset `start`.

        All values are file offsets. The end is greater than `limit` if the last frame extends past
        it.
        """
        at, last, status = start, -1, MORE
        while status == MORE and at + HEADER_LENGTH <= limit:
            chunk = self.read(at, min(CHUNK_LENGTH, limit - at))
            if chunk.size < HEADER_LENGTH:
                break
            passed, found, status = walk(chunk, chunk.size, 0)
            last = at + int(found) if found >= 0 else last
            at += int(passed)
        return at, last

    def fault(
        self,
        descriptor: RecordingDescriptor,
        start: int,
        end: int,
        checksum: Checksum | None,
    ) -> Fault | None:
        """Return the first invalid frame between two file offsets, or None if all frames are
        valid.
        """
        table = NO_TABLE if checksum is None else checksum.table
        at = start
        while at < end:
            chunk = self.read(at, min(CHUNK_LENGTH, end - at))
            passed, status = check(
                chunk, chunk.size, 0, self.base + at, descriptor.initial_term_id,
                descriptor.term_buffer_length, descriptor.mtu_length, descriptor.stream_id, table,
            )  # fmt: skip
            at += int(passed)
            if status == MORE and passed > 0:
                continue
            if at < end:
                return Fault(self.base + at, int(status) if status < 0 else BAD_LENGTH)
        return None

    def frames(self, start: int, end: int) -> Iterator[FrameHeader]:
        """Yield the headers of all frames between two file offsets, up to the end of the data."""
        at = start
        while at + HEADER_LENGTH <= end:
            raw = self.read(at, HEADER_LENGTH)
            if raw.size < HEADER_LENGTH or header.frame_length(raw, 0) <= 0:
                return
            length = int(header.frame_length(raw, 0))
            yield FrameHeader(
                self.base + at, length, int(header.flags(raw, 0)), int(header.frame_type(raw, 0)),
                int(data.term_offset(raw, 0)), int(data.session_id(raw, 0)),
                int(data.stream_id(raw, 0)), int(data.term_id(raw, 0)),
            )  # fmt: skip
            at += int(align(length, data.ALIGNMENT))

    def close(self) -> None:
        """Close the file. Repeated calls have no effect."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)

    def __enter__(self) -> "SegmentReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
