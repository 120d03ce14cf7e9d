"""The catalog of all recordings that an archive has made, in the order of their ids.

    0         4         8                     16          20   31    32
    +---------+---------+---------------------+-----------+----+-----+-------+-------+-- - -
    | version | length  | next recording id   | alignment | 0  |  0  | entry | entry | 0 0 0
    +---------+---------+---------------------+-----------+----+-----+-------+-------+-- - -

The list of entries ends at the first entry whose length is zero, and all bytes after it are zero.
An archive never removes an entry, so ids ascend and are used once. An entry with an unreadable
descriptor is skipped. `damage` describes a violation of these rules: an impossible length, nonzero
bytes after the last entry, or a next recording id that is already used. Two cases are not damage.
The next id may be more than one past the last entry, because Aeron's `compact` removes entries,
including the last ones, and keeps the next id. An archive that was killed while it added an entry
may leave the content of the next entry without its header. The module `catalog_account` compares
segment files with the catalog, and `catalog_writer` writes it. Source: archive-protocol 4.2.
"""

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    major_of,
    semantic_version,
    version_text,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage import catalog_entry as entries
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry, RecordingState
from windtunnel.driver.base.arith import align, is_power_of_two
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files.regular_file import open_regular

FILE_NAME = "archive.catalog"
STORAGE_VERSION = semantic_version(3, 1, 0)
HEADER = struct.Struct("<2iqi11xb")
HEADER_LENGTH = 32
assert HEADER.size == HEADER_LENGTH


READ_ATTEMPTS = 3
"""The number of attempts to read a catalog before it is reported as damaged. An attempt can fail
while an archive adds an entry.
"""
CHUNK_LENGTH = 1 << 20


class CatalogError(StorageError):
    """The catalog is damaged or cannot be used."""


class CatalogVersionError(CatalogError):
    """The catalog has a different storage version, but may be undamaged."""


class Catalog:
    """Reads the catalog of one directory. Only one thread may use a reader. The archive can add
    entries while the reader is open.
    """

    def __init__(self, directory: Path, *, flags: int = os.O_RDONLY) -> None:
        """Open an existing catalog. Raises StorageError if it cannot be read or is invalid."""
        self.directory, self.path = directory, directory / FILE_NAME
        self._flags = flags
        self._open()

    def _open(self) -> None:
        try:
            self._file = open_regular(self.path, self._flags)
        except OSError as error:
            raise StorageError(f"cannot open {self.path}: {error.strerror}") from error
        try:
            self._load()
        except BaseException:
            os.close(self._file)
            raise

    def _load(self) -> None:
        for _ in range(READ_ATTEMPTS):
            self._load_once()
            if not self.damage:
                break

    def _load_once(self) -> None:
        self.capacity = os.fstat(self._file).st_size
        if self.capacity < HEADER_LENGTH:
            raise CatalogError(
                f"{self.path}: expected at least {HEADER_LENGTH} bytes, found {self.capacity}"
            )
        found = HEADER.unpack(self._read(0, HEADER_LENGTH))
        self.version, _, self.next_recording_id, self.alignment, _ = found
        if major_of(self.version) != major_of(STORAGE_VERSION):
            kind = CatalogVersionError if is_older(self.version) else CatalogError
            raise kind(
                f"{self.path}: expected storage version 3.x, found {version_text(self.version)}"
            )
        if self.alignment < entries.HEADER_LENGTH or not is_power_of_two(self.alignment):
            raise CatalogError(
                f"{self.path}: expected an alignment of {entries.ALIGNMENT}, found {self.alignment}"
            )
        self.damage = ""
        self._index()
        highest = self.highest_recording_id
        if self.next_recording_id in (0, highest):
            # An old archive does not write the next id, or adding an entry was interrupted.
            self.next_recording_id = highest + 1
        if self.next_recording_id <= highest:
            self.damage = self.damage or (
                f"{self.path}: the next recording id is {self.next_recording_id}, "
                f"but recording {highest} exists"
            )
        self._check_behind()

    def _index(self) -> None:
        """Find the offset of each recording's entry, and the end of the last entry."""
        self._offset_by_id: dict[int, int] = {}
        self._valid: dict[int, None] = {}
        self._end = HEADER_LENGTH
        for entry in self.entries():
            self._end = self._behind(entry)
            if entry.descriptor is None:
                continue
            if entry.recording_id <= self.highest_recording_id:
                self.damage = self.damage or (
                    f"{self.path}: the entry at {entry.offset} is recording {entry.recording_id}, "
                    f"but recording {self.highest_recording_id} precedes it"
                )
                continue
            if entries.covers_later_entry(entry, self.alignment):
                self.damage = self.damage or (
                    f"{self.path}: the entry at {entry.offset} has length {entry.length} and "
                    "overlaps another entry"
                )
            self._offset_by_id[entry.recording_id] = entry.offset
            if entry.state == RecordingState.VALID and not entry.fault:
                self._valid[entry.recording_id] = None

    def entries(self) -> Iterator[CatalogEntry]:
        """Yield all entries, regardless of their state, up to the first entry with an impossible
        length.
        """
        offset = HEADER_LENGTH
        while (entry := self._entry_at(offset)) is not None:
            yield entry
            offset = self._behind(entry)

    def _behind(self, entry: CatalogEntry) -> int:
        return entry.offset + int(align(entries.HEADER_LENGTH + entry.length, self.alignment))

    def _entry_at(self, offset: int) -> CatalogEntry | None:
        room = self.capacity - offset - entries.HEADER_LENGTH
        if room <= 0:
            return None
        head = self._read(offset, entries.HEADER_LENGTH)
        length = entries.HEADER.unpack_from(head)[0]
        if length <= 0:
            return None
        if not entries.LENGTH_MIN <= length <= room:
            self.damage = (
                f"{self.path}: the entry at {offset} has length {length}; "
                f"expected a length from {entries.LENGTH_MIN} to {room}"
            )
            return None
        content = self._read(offset + entries.HEADER_LENGTH, length)
        return entries.parse_entry(offset, head, content)

    def _check_behind(self) -> None:
        """Report damage unless the bytes after the last entry are all zero or belong to an
        unfinished entry.
        """
        self._unfinished = range(0)
        first, end = self._nonzero_behind()
        if end <= self._end:
            return
        at = self._end + entries.HEADER_LENGTH
        content = self._read(at, min(end - at, CHUNK_LENGTH)) if at < end else b""
        if first >= at and entries.may_be_partial_write(content, self.next_recording_id):
            self._unfinished = range(at, end)
            return
        self.damage = self.damage or (
            f"{self.path}: expected an entry or zeros at {self._end}, after the last entry, "
            f"found other bytes from {first} to {end}"
        )

    def _nonzero_behind(self) -> tuple[int, int]:
        """Return the file offsets (first, end) of the nonzero bytes after the last entry."""
        first, end, at = self.capacity, self._end, self._end
        while at < self.capacity:
            at = self._data_from(at)
            chunk = self._read(at, min(CHUNK_LENGTH, self.capacity - at))
            if chunk != bytes(len(chunk)):
                content = chunk.rstrip(b"\0")
                first = min(first, at + len(content) - len(content.lstrip(b"\0")))
                end = at + len(content)
            at += len(chunk)
        return first, end

    def _data_from(self, at: int) -> int:
        """Return the first offset at or after a given offset that is not in a hole of the sparse
        file.
        """
        try:
            return os.lseek(self._file, at, os.SEEK_DATA)
        except OSError as error:
            # After any other error: the file system does not support sparse files.
            return self.capacity if error.errno == errno.ENXIO else at

    def _read(self, at: int, length: int) -> bytes:
        try:
            content = os.pread(self._file, length, at)
        except OSError as error:
            raise StorageError(
                f"cannot read {self.path} at offset {at}: {error.strerror}"
            ) from error
        if len(content) < length:
            raise CatalogError(
                f"{self.path}: expected {length} bytes at offset {at}, found {len(content)}"
            )
        return content

    @property
    def highest_recording_id(self) -> int:
        """The recording id of the last entry, or -1 if the catalog is empty."""
        return next(reversed(self._offset_by_id), NULL_VALUE)

    @property
    def recording_ids(self) -> tuple[int, ...]:
        """The ids of all valid recordings, in ascending order."""
        return tuple(self._valid)

    def has_entry(self, recording_id: int) -> bool:
        """Return whether a recording has an entry, in any state."""
        return recording_id in self._offset_by_id

    def entry(self, recording_id: int) -> CatalogEntry | None:
        """Return the entry of a recording, in any state, or None if it has no entry."""
        offset = self._offset_by_id.get(recording_id)
        return None if offset is None else self._entry_at(offset)

    def descriptor(self, recording_id: int) -> RecordingDescriptor | None:
        """Return the descriptor of a valid recording, or None if no valid recording has this id."""
        entry = self.entry(recording_id) if recording_id in self._valid else None
        return None if entry is None else entry.descriptor

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> "Catalog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_older(version: int) -> bool:
    """Return whether Aeron's ArchiveTool can migrate a catalog of this storage version."""
    return 0 < version < semantic_version(major_of(STORAGE_VERSION), 0, 0)
