"""Writes the blocks of a recording into segment files.

    position -> |........ block ........|
    <id>-<base>.rec   offset = position - base

The first file is created at the start, and the next file as soon as a file is full. Therefore a
recording that stops at the end of a file has an additional empty file. A file to be created must
not exist already. Only an extended recording opens an existing file, and truncates it at the
recording's position. Only the header of a padding frame is written. A block that could not be
written completely is removed, so no torn frame remains after `position`. Source: archive-protocol
4.3, 5.1, 5.2.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage import huge_pages
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.archive.storage.frame_walk import HEADER_LENGTH, put_checksums
from windtunnel.driver.archive.storage.segment_file import base_of, file_name
from windtunnel.driver.archive.storage.sync import SyncLevel, sync_directory, sync_file, write_all
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files.regular_file import open_regular
from windtunnel.driver.wire import frame_type, header

LARGE_BLOCK_LENGTH = 64 << 10
"""Huge pages are for blocks from this length: those of a recorder that cannot keep up."""
LONG_RECORDING_LENGTH = 16 << 20
"""Shorter recordings have no huge pages, of which they would use only a part."""


class Meter(Protocol):
    """The interface for measuring the duration of writes."""

    def begin(self) -> int:
        """Start timing a write. Returns the start time, to be passed to `end`."""

    def end(self, began_ns: int, byte_count: int) -> None:
        """End the measurement of a write of `byte_count` bytes."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options for writing blocks: sync level, checksum, and the meter of write durations."""

    sync_level: SyncLevel = SyncLevel.CACHE
    checksum: Checksum | None = None
    meter: Meter | None = None


class SegmentWriter:
    """Writes one recording into segment files, starting at a position. Only one thread may use
    it.
    """

    def __init__(
        self,
        directory: Path,
        descriptor: RecordingDescriptor,
        position: int,
        options: WriteOptions | None = None,
        *,
        is_new: bool = False,
    ) -> None:
        """Open the segment file that contains `position`. Creates the file if the recording is new
        or if the file does not exist.

        Raises StorageError.
        """
        self.position = position
        """The position up to which everything is written and synced according to the sync level."""
        self._directory, self._recording_id = directory, descriptor.recording_id
        self._segment_length = descriptor.segment_file_length
        self._long_from = descriptor.start_position + LONG_RECORDING_LENGTH
        self._options = options or WriteOptions()
        # Checksums are written into a copy, because the block belongs to the image.
        self._scratch = np.empty(0, dtype=np.uint8)
        self._base = base_of(descriptor, position)
        self._file = -1
        self._open(is_new=is_new)
        try:
            self._truncate()
        except BaseException:
            self.close()
            raise

    def _open(self, *, is_new: bool) -> None:
        self._path = self._directory / file_name(self._recording_id, self._base)
        if is_new or not self._try_open():
            self._create()
        try:
            os.ftruncate(self._file, self._segment_length)
            if self._options.sync_level > SyncLevel.CACHE:
                sync_file(self._file, self._path, self._options.sync_level)
                sync_directory(self._directory)
        except OSError as error:
            self.close()
            raise StorageError(
                f"cannot extend {self._path} to {self._segment_length} bytes: {error.strerror}"
            ) from error

    def _try_open(self) -> bool:
        try:
            self._file = open_regular(self._path, os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageError(f"cannot open {self._path}: {error.strerror}") from error
        return True

    def _create(self) -> None:
        try:
            self._file = open_regular(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except FileExistsError as error:
            raise StorageError(
                f"cannot create {self._path}: {error.strerror}; the file is not part of the "
                "recording: move it away"
            ) from error
        except OSError as error:
            raise StorageError(f"cannot create {self._path}: {error.strerror}") from error

    def write(self, block: memoryview) -> None:
        """Write complete frames of one term, or one padding frame. Raises StorageError if the write
        or the sync fails.
        """
        frames = np.frombuffer(block, dtype=np.uint8)
        is_pad = header.frame_type(frames, 0) == frame_type.PAD
        content = block[:HEADER_LENGTH] if is_pad else self._with_checksums(block, frames)
        offset = self.position - self._base
        assert offset + len(block) <= self._segment_length, "a term does not span two segments"
        meter = self._options.meter
        began_ns = 0 if meter is None else meter.begin()
        if len(content) >= LARGE_BLOCK_LENGTH and self.position >= self._long_from:
            huge_pages.allocate(self._file, offset, offset + len(content), self._segment_length)
        try:
            write_all(self._file, self._path, content, offset)
            sync_file(self._file, self._path, self._options.sync_level)
        except StorageError:
            self._truncate()
            raise
        if meter is not None:
            meter.end(began_ns, len(content))
        self.position += len(block)
        if offset + len(block) == self._segment_length:
            self.close()
            self._base += self._segment_length
            self._open(is_new=True)

    def _with_checksums(self, block: memoryview, frames: np.ndarray) -> memoryview:
        checksum = self._options.checksum
        if checksum is None:
            return block
        if self._scratch.size < frames.size:
            self._scratch = np.empty(frames.size, dtype=np.uint8)
        copy = self._scratch[: frames.size]
        copy[:] = frames
        put_checksums(copy, copy.size, checksum.table)
        return memoryview(copy)

    def _truncate(self) -> None:
        """Fill the segment file with zeros from the current position to the end of the file."""
        try:
            os.ftruncate(self._file, self.position - self._base)
            os.ftruncate(self._file, self._segment_length)
        except OSError as error:
            raise StorageError(f"cannot truncate {self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file. Repeated calls have no effect."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)
