"""The catalog: which recordings an archive has had, in the order of their ids.

    0         4         8                     16          20   31    32
    +---------+---------+---------------------+-----------+----+-----+-------+-------+-- - -
    | version | length  | next recording id   | alignment | 0  |  0  | entry | entry | 0 0 0
    +---------+---------+---------------------+-----------+----+-----+-------+-------+-- - -

Entries follow each other up to one without a length. They are never taken out, so that ids, which
ascend, are used once. One whose descriptor makes no sense is passed over; one whose length makes
none hides all that is behind it, which is told in `damage`. Knows nothing of segment files, and
how it is written is in `catalog_writer`. Source: archive-protocol 4.2.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from driver.archive.protocol.codes import NULL_VALUE, major_of, semantic_version, version_text
from driver.archive.protocol.responses import RecordingDescriptor
from driver.archive.storage import catalog_entry as entries
from driver.archive.storage.catalog_entry import CatalogEntry, RecordingState
from driver.base.arith import align, is_power_of_two
from driver.base.errors import StorageError

FILE_NAME = "archive.catalog"
STORAGE_VERSION = semantic_version(3, 1, 0)
HEADER = struct.Struct("<2iqi11xb")
HEADER_LENGTH = 32
assert HEADER.size == HEADER_LENGTH


class CatalogError(StorageError):
    """A catalog that cannot be used as it is."""


class Catalog:
    """The catalog of one directory, for one thread; whoever only reads may do so while it grows."""

    def __init__(self, directory: Path, *, flags: int = os.O_RDONLY) -> None:
        """Open the catalog that is there. Raises StorageError."""
        self.directory, self.path = directory, directory / FILE_NAME
        self._flags = flags
        self._open()

    def _open(self) -> None:
        try:
            self._file = os.open(self.path, self._flags | os.O_CLOEXEC)
        except OSError as error:
            raise StorageError(f"cannot open {self.path}: {error.strerror}") from error
        try:
            self._load()
        except BaseException:
            os.close(self._file)
            raise

    def _load(self) -> None:
        self.capacity = os.fstat(self._file).st_size
        if self.capacity < HEADER_LENGTH:
            raise CatalogError(
                f"{self.path}: expected at least {HEADER_LENGTH} bytes, found {self.capacity}"
            )
        found = HEADER.unpack(self._read(0, HEADER_LENGTH))
        self.version, _, self.next_recording_id, self.alignment, _ = found
        if major_of(self.version) != major_of(STORAGE_VERSION):
            raise CatalogError(
                f"{self.path}: expected storage version 3.x, found {version_text(self.version)}"
            )
        if self.alignment < entries.HEADER_LENGTH or not is_power_of_two(self.alignment):
            raise CatalogError(
                f"{self.path}: expected an alignment of {entries.ALIGNMENT}, found {self.alignment}"
            )
        self.damage = ""
        self._index()
        if self.next_recording_id == 0:
            self.next_recording_id = self.highest_recording_id + 1

    def _index(self) -> None:
        """Note where each recording is, and where the next entry goes."""
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
                    f"but recording {self.highest_recording_id} is before it"
                )
                continue
            self._offset_by_id[entry.recording_id] = entry.offset
            if entry.state == RecordingState.VALID and not entry.fault:
                self._valid[entry.recording_id] = None

    def entries(self) -> Iterator[CatalogEntry]:
        """All entries in any state, up to the first whose length cannot be."""
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
                f"expected one from {entries.LENGTH_MIN} to {room}"
            )
            return None
        content = self._read(offset + entries.HEADER_LENGTH, length)
        return entries.parsed(offset, head, content)

    def _read(self, at: int, length: int) -> bytes:
        try:
            content = os.pread(self._file, length, at)
        except OSError as error:
            raise StorageError(f"cannot read {self.path} at {at}: {error.strerror}") from error
        if len(content) < length:
            raise CatalogError(f"{self.path}: it was cut short at {at + len(content)}")
        return content

    @property
    def highest_recording_id(self) -> int:
        """The id of the last entry; -1 where there is none."""
        return next(reversed(self._offset_by_id), NULL_VALUE)

    @property
    def recording_ids(self) -> tuple[int, ...]:
        """The valid recordings, ascending."""
        return tuple(self._valid)

    def entry(self, recording_id: int) -> CatalogEntry | None:
        """What the file says about a recording, in any state."""
        offset = self._offset_by_id.get(recording_id)
        return None if offset is None else self._entry_at(offset)

    def descriptor(self, recording_id: int) -> RecordingDescriptor | None:
        """What is known of a valid recording."""
        entry = self.entry(recording_id) if recording_id in self._valid else None
        return None if entry is None else entry.descriptor

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> "Catalog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
