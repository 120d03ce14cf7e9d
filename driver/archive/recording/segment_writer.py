"""Where a recording's bytes go: one block, one write; when a file is full, the next is made.

    position -> |........ block ........|
    <id>-<base>.rec   offset = position - base

The first file is there from the beginning, the next one as soon as one is full: a recording that
stops between two files has an empty one. A file that is created must not exist before. Only a
recording that goes on opens an existing file, and cuts off what lies behind its position there. Of
padding the header is written. A block that could not be written whole is taken back, so that
nothing torn is left behind `position`.
Source: archive-protocol 4.3, 5.1, 5.2.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.archive.storage.frame_walk import HEADER_LENGTH, put_checksums
from windtunnel.driver.archive.storage.segment_file import file_name, segment_base
from windtunnel.driver.archive.storage.sync import SyncLevel, sync_directory, sync_file, write_all
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.wire import frame_type, header


class Meter(Protocol):
    """Is told how long writes take."""

    def begin(self) -> int:
        """A write begins. Returns what `end` wants."""

    def end(self, began_ns: int, byte_count: int) -> None:
        """So much was written."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How blocks are written."""

    sync_level: SyncLevel = SyncLevel.CACHE
    checksum: Checksum | None = None
    meter: Meter | None = None


class SegmentWriter:
    """Writes one recording from a position on; for one thread."""

    def __init__(
        self,
        directory: Path,
        descriptor: RecordingDescriptor,
        position: int,
        options: WriteOptions | None = None,
        *,
        is_new: bool = False,
    ) -> None:
        """Create the file of `position`, or open it where an old recording goes on in it.

        Raises StorageError
        """
        self.position = position
        """Up to where everything is written, and as far down as the sync level says."""
        self._directory, self._recording_id = directory, descriptor.recording_id
        self._segment_length = descriptor.segment_file_length
        self._options = options or WriteOptions()
        # What is changed by a checksum is a copy: the block is the image's.
        self._scratch = np.empty(0, dtype=np.uint8)
        self._base = segment_base(
            descriptor.start_position, position, descriptor.term_buffer_length,
            descriptor.segment_file_length,
        )  # fmt: skip
        self._file = -1
        self._open(is_new=is_new)
        try:
            self._cut_off()
        except BaseException:
            self.close()
            raise

    def _open(self, *, is_new: bool) -> None:
        self._path = self._directory / file_name(self._recording_id, self._base)
        if is_new or not self._has_opened():
            self._create()
        try:
            os.ftruncate(self._file, self._segment_length)
            if self._options.sync_level > SyncLevel.CACHE:
                sync_file(self._file, self._path, self._options.sync_level)
                sync_directory(self._directory)
        except OSError as error:
            self.close()
            raise StorageError(
                f"cannot make {self._path} {self._segment_length} bytes long: {error.strerror}"
            ) from error

    def _has_opened(self) -> bool:
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageError(f"cannot open {self._path}: {error.strerror}") from error
        return True

    def _create(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._file = os.open(self._path, flags, 0o660)
        except FileExistsError as error:
            raise StorageError(
                f"cannot create {self._path}: {error.strerror}; it holds no position of the "
                "recording: move it away"
            ) from error
        except OSError as error:
            raise StorageError(f"cannot create {self._path}: {error.strerror}") from error

    def write(self, block: memoryview) -> None:
        """Write whole frames that lie in one term, or one padding frame. Raises StorageError."""
        frames = np.frombuffer(block, dtype=np.uint8)
        is_pad = header.frame_type(frames, 0) == frame_type.PAD
        content = block[:HEADER_LENGTH] if is_pad else self._with_checksums(block, frames)
        offset = self.position - self._base
        assert offset + len(block) <= self._segment_length, "a term does not span two segments"
        meter = self._options.meter
        began_ns = 0 if meter is None else meter.begin()
        try:
            write_all(self._file, self._path, content, offset)
            sync_file(self._file, self._path, self._options.sync_level)
        except StorageError:
            self._cut_off()
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

    def _cut_off(self) -> None:
        """Leave zeros behind the position in its file."""
        try:
            os.ftruncate(self._file, self.position - self._base)
            os.ftruncate(self._file, self._segment_length)
        except OSError as error:
            raise StorageError(f"cannot cut {self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Let go of the file; may be called again."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)
