"""Changing a catalog, so that an archive that is killed at any moment leaves one that opens.

A new entry is written from the back: its content, its header, and then the next id. Killed between
two of these, it is not there, or its id is still the next one, which opening sets right. Content
without a header is erased then, so that it does not lie behind a shorter entry later. The numbers
of an entry change with its checksum in one system call. The first file, and a new one for
an entry that must become longer, gets the catalog's name when all of it is on the disk.

Aeron leaves the checksum stale where a stop position is recovered, and lets it cover less than the
entry after a shorter channel was written; ours is always that of the whole content.
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

REPLACEMENT_NAME = "archive.catalog.updated"
CAPACITY = 1 << 20
CAPACITY_MAX = (1 << 31) - 1
NEXT_RECORDING_ID = 8


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """How a catalog is kept."""

    capacity: int = CAPACITY
    checksum: Checksum | None = None
    sync_level: SyncLevel = SyncLevel.CACHE


class CatalogWriter(Catalog):
    """The catalog of one directory, for its only writer."""

    def __init__(self, directory: Path, options: CatalogOptions | None = None) -> None:
        """Open the catalog that is there. Raises StorageError, where it is damaged too."""
        self._options = options or CatalogOptions()
        super().__init__(directory, flags=os.O_RDWR)

    @classmethod
    def create(cls, directory: Path, options: CatalogOptions | None = None) -> "CatalogWriter":
        """Make an empty catalog and open it. Raises StorageError."""
        options = options or CatalogOptions()
        path = directory / FILE_NAME
        if path.exists():
            raise StorageError(f"cannot create {path}: {os.strerror(errno.EEXIST)}")
        header = HEADER.pack(STORAGE_VERSION, HEADER_LENGTH, 0, entries.ALIGNMENT, 0)
        put_in_place(directory, header, len(header))
        made = cls(directory, options)
        made._sync(names=True)
        return made

    def _load(self) -> None:
        super()._load()
        if self.damage:
            raise CatalogError(self.damage)
        if self._unfinished:
            self._write(self._unfinished.start, bytes(len(self._unfinished)))
        self.reserve(self._options.capacity)

    def add(self, descriptor: RecordingDescriptor) -> int:
        """Enter a new recording; its id is the catalog's to choose. Raises StorageError."""
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

    def stopped(self, recording_id: int, position: int, timestamp_ms: int) -> None:
        """A recording has come to its end, now or, as its files tell, before the archive died."""
        self._change(recording_id, stop_position=position, stop_timestamp=timestamp_ms)

    def extended(
        self, recording_id: int, *, control_session_id: int, correlation_id: int, session_id: int
    ) -> None:
        """A stopped recording goes on."""
        self._change(
            recording_id, control_session_id=control_session_id, correlation_id=correlation_id,
            session_id=session_id, stop_timestamp=NULL_VALUE, stop_position=NULL_VALUE,
        )  # fmt: skip

    def set_start_position(self, recording_id: int, position: int) -> None:
        self._change(recording_id, start_position=position)

    def set_stop_position(self, recording_id: int, position: int) -> None:
        self._change(recording_id, stop_position=position)

    def set_state(self, recording_id: int, state: RecordingState) -> None:
        """Let a recording count, or not."""
        self._change(recording_id, state)
        if state == RecordingState.VALID:
            # Its place among the valid ones is where its id is, not behind them.
            self._index()
        else:
            self._valid.pop(recording_id, None)

    def reserve(self, capacity: int) -> None:
        """Have room for so many bytes, or more. Raises StorageError."""
        if capacity > CAPACITY_MAX:
            raise CatalogError(
                f"{self.path}: a capacity of {capacity} bytes; at most {CAPACITY_MAX} can be"
            )
        if capacity > self.capacity:
            self._grow_to(capacity)

    def refresh_checksum(self, recording_id: int) -> None:
        """Compute the checksum of an entry anew."""
        entry = self._required(recording_id)
        self._write(
            entry.offset, entries.header(entry.content, entry.state, self._options.checksum)
        )
        self._sync()

    def replace(self, descriptor: RecordingDescriptor) -> None:
        """Let an entry say something else throughout, its texts too; a new file has it."""
        self._required(descriptor.recording_id)
        kept = [(entry, self._replaced(entry, descriptor)) for entry in self.entries()]
        parts = [self._read(0, HEADER_LENGTH)]
        for entry, content in kept:
            head = self._header(entry, content, entry.state)
            parts.append(head.ljust(entries.HEADER_LENGTH, b"\0") + content)
        whole = b"".join(parts)
        capacity = self.capacity if len(whole) <= self.capacity else self._capacity_for(len(whole))
        put_in_place(self.directory, whole, capacity)
        os.close(self._file)
        self._open()
        self._sync(names=True)

    def _replaced(self, entry: CatalogEntry, descriptor: RecordingDescriptor) -> bytes:
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
        """The header over a content; without a checksum of ours the old one stays while it can."""
        if self._options.checksum is None and content == entry.content:
            return entries.HEADER.pack(entry.length, state, entry.checksum)
        return entries.header(content, state, self._options.checksum)

    def _required(self, recording_id: int) -> CatalogEntry:
        entry = self.entry(recording_id)
        if entry is None:
            raise CatalogError(f"{self.path}: there is no recording {recording_id}")
        return entry

    def _capacity_for(self, length: int) -> int:
        """The capacity, grown by half until so much fits."""
        capacity = self.capacity
        while capacity < length:
            if capacity == CAPACITY_MAX:
                raise CatalogError(
                    f"{self.path}: {length} bytes do not fit; it may have {CAPACITY_MAX}"
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
        """Let go of the file; whatever the level, all of it is on the disk before."""
        sync_file(self._file, self.path, SyncLevel.DATA_AND_METADATA)
        super().close()

    def __enter__(self) -> "CatalogWriter":
        return self


def put_in_place(directory: Path, content: bytes, capacity: int) -> None:
    """Make a file of so many bytes the catalog of a directory. Raises StorageError."""
    path = directory / REPLACEMENT_NAME
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o660)
        try:
            write_all(file, path, content, 0)
            os.ftruncate(file, capacity)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(path, directory / FILE_NAME)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
