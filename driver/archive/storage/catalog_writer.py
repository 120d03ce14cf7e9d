"""Changes a catalog in steps that leave it readable even if the archive is killed.

A new entry is written from back to front: its content, its header, and then the next recording id.
If the archive is killed in between, either the entry does not exist, or the next recording id is
still the id of that entry. Opening the catalog corrects the next id, and erases content without a
header, which could otherwise remain after a shorter entry. The fields of an entry are changed
together with its checksum in one system call. A new file, or a replacement for an entry that must
become longer, is renamed to the catalog's name only when it is completely on disk.

Aeron does not update the checksum when it recovers a stop position, and after a shorter channel was
written the checksum covers only part of the entry. Here the checksum always covers the whole
content.
Source: archive-protocol 4.2, 5.2.
"""

import errno
import os
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from windtunnel.driver.archive.protocol.codec import encode_body
from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage import catalog_entry as entries
from windtunnel.driver.archive.storage.catalog import (
    FILE_NAME,
    HEADER,
    HEADER_LENGTH,
    STORAGE_VERSION,
    Catalog,
    CatalogError,
)
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry, RecordingState
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.archive.storage.sync import SyncLevel, sync_directory, sync_file, write_all
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files.regular_file import open_regular

REPLACEMENT_NAME = "archive.catalog.updated"
CAPACITY = 1 << 20
CAPACITY_MAX = (1 << 31) - 1
NEXT_RECORDING_ID = 8


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """Options for writing a catalog: capacity, checksum and sync level."""

    capacity: int = CAPACITY
    checksum: Checksum | None = None
    sync_level: SyncLevel = SyncLevel.CACHE


class CatalogWriter(Catalog):
    """The catalog of one directory, opened for writing. Only one process may write to it."""

    def __init__(self, directory: Path, options: CatalogOptions | None = None) -> None:
        """Open an existing catalog. Raises StorageError, for example if the catalog is damaged."""
        self._options = options or CatalogOptions()
        super().__init__(directory, flags=os.O_RDWR)

    @classmethod
    def create(cls, directory: Path, options: CatalogOptions | None = None) -> "CatalogWriter":
        """Create and open an empty catalog. Raises StorageError if the catalog exists or cannot be
        written.
        """
        options = options or CatalogOptions()
        path = directory / FILE_NAME
        if path.exists():
            raise StorageError(f"cannot create {path}: {os.strerror(errno.EEXIST)}")
        header = HEADER.pack(STORAGE_VERSION, HEADER_LENGTH, 0, entries.ALIGNMENT, 0)
        put_in_place(directory, header, len(header))
        catalog = cls(directory, options)
        catalog._sync(names=True)
        return catalog

    def _load(self) -> None:
        super()._load()
        if self.damage:
            raise CatalogError(self.damage)
        if self._unfinished:
            self._write(self._unfinished.start, bytes(len(self._unfinished)))
        self.reserve(self._options.capacity)

    def add(self, descriptor: RecordingDescriptor) -> int:
        """Add a recording. Returns the id that the catalog assigns to it. Raises StorageError if
        the catalog cannot be extended or written.
        """
        recording_id: int = self.next_recording_id
        content = entries.padded_content(
            replace(descriptor, recording_id=recording_id), self.alignment
        )
        offset = self._end
        end = offset + entries.HEADER_LENGTH + len(content)
        if end > self.capacity:
            self._grow_to(self._capacity_for(end))
        self._write(offset + entries.HEADER_LENGTH, content)
        self._write(offset, entries.header(content, RecordingState.VALID, self._options.checksum))
        self._write(NEXT_RECORDING_ID, struct.pack("<q", recording_id + 1))
        self._sync()
        self._offset_by_id[recording_id] = offset
        self._valid[recording_id] = None
        self._end, self.next_recording_id = end, recording_id + 1
        return recording_id

    def record_stop(self, recording_id: int, position: int, timestamp_ms: int) -> None:
        """Write a recording's stop position after the recording has stopped or has been
        recovered.
        """
        self._change(recording_id, stop_position=position, stop_timestamp=timestamp_ms)

    def record_extension(
        self, recording_id: int, *, control_session_id: int, correlation_id: int, session_id: int
    ) -> None:
        """Mark a stopped recording as active again."""
        self._change(
            recording_id, control_session_id=control_session_id, correlation_id=correlation_id,
            session_id=session_id, stop_timestamp=NULL_VALUE, stop_position=NULL_VALUE,
        )  # fmt: skip

    def set_start_position(self, recording_id: int, position: int) -> None:
        self._change(recording_id, start_position=position)

    def set_stop_position(self, recording_id: int, position: int) -> None:
        self._change(recording_id, stop_position=position)

    def set_state(self, recording_id: int, state: RecordingState) -> None:
        """Change the state of a recording."""
        self._change(recording_id, state)
        if state == RecordingState.VALID:
            # Valid recordings are kept in the order of their ids.
            self._index()
        else:
            self._valid.pop(recording_id, None)

    def reserve(self, capacity: int) -> None:
        """Grow the catalog to at least this capacity in bytes. Raises StorageError if the capacity
        is too large or the file cannot be extended.
        """
        if capacity > CAPACITY_MAX:
            raise CatalogError(
                f"{self.path}: expected a capacity of at most {CAPACITY_MAX} bytes, found "
                f"{capacity}"
            )
        if capacity > self.capacity:
            self._grow_to(capacity)

    def refresh_checksum(self, recording_id: int) -> None:
        """Compute and write the checksum of an entry."""
        entry = self._required(recording_id)
        self._write(
            entry.offset, entries.header(entry.content, entry.state, self._options.checksum)
        )
        self._sync()

    def replace(self, descriptor: RecordingDescriptor) -> None:
        """Replace the descriptor of an entry, including its strings, by writing a new
        catalog file.
        """
        self._required(descriptor.recording_id)
        contents = [(entry, self._new_content(entry, descriptor)) for entry in self.entries()]
        parts = [self._read(0, HEADER_LENGTH)]
        for entry, content in contents:
            head = self._header(entry, content, entry.state)
            parts.append(head.ljust(entries.HEADER_LENGTH, b"\0") + content)
        whole = b"".join(parts)
        capacity = self.capacity if len(whole) <= self.capacity else self._capacity_for(len(whole))
        put_in_place(self.directory, whole, capacity)
        os.close(self._file)
        self._open()
        self._sync(names=True)

    def _new_content(self, entry: CatalogEntry, descriptor: RecordingDescriptor) -> bytes:
        if entry.recording_id != descriptor.recording_id:
            return entry.content
        content = entries.padded_content(descriptor, self.alignment)
        return content.ljust(entry.length, b"\0")

    def _change(
        self, recording_id: int, state: RecordingState | None = None, **values: Any
    ) -> None:
        entry = self._required(recording_id)
        assert entry.descriptor is not None
        block = encode_body(replace(entry.descriptor, **values))[: entries.BLOCK_LENGTH]
        content = block + entry.content[entries.BLOCK_LENGTH :]
        head = self._header(entry, content, entry.state if state is None else state)
        self._write(entry.offset, head.ljust(entries.HEADER_LENGTH, b"\0") + block)
        self._sync()

    def _header(self, entry: CatalogEntry, content: bytes, state: int) -> bytes:
        """Return the header of an entry. If no checksum is configured, an entry whose content does
        not change keeps its existing checksum.
        """
        if self._options.checksum is None and content == entry.content:
            return entries.HEADER.pack(entry.length, state, entry.checksum)
        return entries.header(content, state, self._options.checksum)

    def _required(self, recording_id: int) -> CatalogEntry:
        entry = self.entry(recording_id)
        if entry is None:
            raise CatalogError(f"{self.path}: no recording {recording_id}")
        return entry

    def _capacity_for(self, length: int) -> int:
        """Return a catalog capacity of at least `length` bytes. The current capacity is grown in
        steps of 50 %.
        """
        capacity = self.capacity
        while capacity < length:
            if capacity == CAPACITY_MAX:
                raise CatalogError(
                    f"{self.path}: expected a catalog of at most {CAPACITY_MAX} bytes, found "
                    f"{length}"
                )
            capacity = min(capacity + max(capacity // 2, entries.ALIGNMENT), CAPACITY_MAX)
        return capacity

    def _grow_to(self, capacity: int) -> None:
        try:
            os.ftruncate(self._file, capacity)
        except OSError as error:
            raise StorageError(
                f"cannot grow {self.path} to {capacity} bytes: {error.strerror}"
            ) from error
        self.capacity = capacity

    def _write(self, at: int, content: bytes) -> None:
        write_all(self._file, self.path, content, at)

    def _sync(self, *, names: bool = False) -> None:
        level = self._options.sync_level
        sync_file(self._file, self.path, level)
        if names and level > SyncLevel.CACHE:
            sync_directory(self.directory)

    def close(self) -> None:
        """Sync the catalog regardless of the sync level, and close it."""
        sync_file(self._file, self.path, SyncLevel.DATA_AND_METADATA)
        super().close()

    def __enter__(self) -> "CatalogWriter":
        return self


def put_in_place(directory: Path, content: bytes, capacity: int) -> None:
    """Write a catalog file with the given capacity, and rename it to the catalog's name.

    Raises StorageError.
    """
    path = directory / REPLACEMENT_NAME
    try:
        # An unfinished replacement may exist, or a link of that name: the file must be a new one.
        path.unlink(missing_ok=True)
        file = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            write_all(file, path, content, 0)
            os.ftruncate(file, capacity)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(path, directory / FILE_NAME)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
