"""Rebuilds a damaged catalog from the segment files and the readable part of the old catalog.

    old catalog  --salvage-->  entries that can be read  ---.
    segment files --survey-->  entries for the others    ---+-->  new catalog

An entry that can be read is kept unchanged. A recording with files but without an entry gets an
entry that is derived from its frames. If the frames are not sufficient, the entry is INVALID. Then
the id is not used again, and the files are kept. The old catalog is renamed, and no segment file is
changed.
Source: archive-protocol 4.2, 4.3.
"""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage import catalog_account, segment_survey
from windtunnel.driver.archive.storage import catalog_entry as entries
from windtunnel.driver.archive.storage.catalog import (
    FILE_NAME,
    HEADER,
    HEADER_LENGTH,
    STORAGE_VERSION,
    Catalog,
    CatalogError,
    CatalogVersionError,
)
from windtunnel.driver.archive.storage.catalog_account import Segments
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry, RecordingState
from windtunnel.driver.archive.storage.catalog_salvage import Salvage, salvage
from windtunnel.driver.archive.storage.catalog_writer import (
    CAPACITY,
    REPLACEMENT_NAME,
    put_in_place,
)
from windtunnel.driver.archive.storage.segment_file import SegmentFile
from windtunnel.driver.archive.storage.sync import sync_directory
from windtunnel.driver.base.arith import align
from windtunnel.driver.base.errors import StorageError

COMPACTED_NAME = "archive.catalog.compact"
"""The file that remains instead of the catalog if Aeron's `compact` is killed."""


@dataclass(frozen=True, slots=True)
class RebuiltEntry:
    """An entry of a rebuilt catalog."""

    recording_id: int
    state: int
    content: bytes
    checksum: int = 0
    descriptor: RecordingDescriptor | None = None
    """The new descriptor, or None if the entry is kept unchanged."""
    guesses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rebuild:
    """A catalog that will replace a damaged catalog."""

    damage: str
    recordings: list[RebuiltEntry]
    next_recording_id: int
    alignment: int
    capacity: int

    @property
    def content(self) -> bytes:
        head = HEADER.pack(
            STORAGE_VERSION, HEADER_LENGTH, self.next_recording_id, self.alignment, 0
        )
        return head + b"".join(self._entry(each) for each in self.recordings)

    def _entry(self, entry: RebuiltEntry) -> bytes:
        head = entries.HEADER.pack(len(entry.content), entry.state, entry.checksum)
        whole = head.ljust(entries.HEADER_LENGTH, b"\0") + entry.content
        return whole.ljust(int(align(len(whole), self.alignment)), b"\0")


def damage_of(directory: Path, segments: Segments) -> str:
    """Return a description of the catalog's damage, or an empty string if it is undamaged. Raises
    StorageError if the catalog cannot be read.
    """
    if not os.path.lexists(directory / FILE_NAME):
        return catalog_account.missing(directory, segments)
    try:
        with Catalog(directory) as catalog:
            return catalog.damage or catalog_account.unaccounted(catalog, segments)
    except CatalogVersionError:
        raise
    except CatalogError as error:
        return str(error)


def rebuild(directory: Path, segments: Segments) -> Rebuild | None:
    """Build a new catalog for a directory, or return None if its catalog is undamaged.

    Raises StorageError.
    """
    damage = damage_of(directory, segments)
    if not damage:
        return None
    source = _source(directory)
    old = Salvage() if source is None else salvage(source)
    recordings = []
    for recording_id in sorted({*old.entries, *segments}):
        entry = old.entries.get(recording_id)
        files = segments.get(recording_id, [])
        is_whole = entry is not None and not entry.fault and recording_id not in old.zero_header_ids
        if files and not is_whole:
            recordings.append(_survey_entry(entry, files, old))
        elif entry is not None and recording_id not in old.zero_header_ids:
            recordings.append(_keep_entry(entry))
    highest = recordings[-1].recording_id if recordings else NULL_VALUE
    capacity = max(CAPACITY, old.length)
    return Rebuild(
        damage, recordings, max(highest + 1, old.next_recording_id), old.alignment, capacity
    )


def _source(directory: Path) -> Path | None:
    """Return the file from which entries are read: the catalog, or an unfinished replacement."""
    names = (FILE_NAME, COMPACTED_NAME, REPLACEMENT_NAME)
    return next((directory / name for name in names if (directory / name).is_file()), None)


def _keep_entry(entry: CatalogEntry) -> RebuiltEntry:
    return RebuiltEntry(entry.recording_id, entry.state, entry.content, entry.checksum)


def _survey_entry(
    entry: CatalogEntry | None, files: list[SegmentFile], old: Salvage
) -> RebuiltEntry:
    """Build an entry from segment files and, if it exists, from a faulty old entry."""
    recording_id = files[0].recording_id
    if entry is not None and entry.descriptor is not None and not entry.fault:
        # Only the header is lost. The entry was valid, because a deleted recording has no files.
        return RebuiltEntry(
            recording_id, RecordingState.VALID, entry.content, descriptor=entry.descriptor,
            guesses=["state VALID"],
        )  # fmt: skip
    survey = segment_survey.survey_files(files)
    descriptor = survey.descriptor
    guesses = [*survey.guesses, "start and stop time"]
    if entry is not None and entry.descriptor is not None:
        old_descriptor = entry.descriptor
        descriptor = replace(
            descriptor, start_timestamp=old_descriptor.start_timestamp,
            stop_timestamp=old_descriptor.stop_timestamp,
            stripped_channel=old_descriptor.stripped_channel,
            original_channel=old_descriptor.original_channel,
            source_identity=old_descriptor.source_identity,
        )  # fmt: skip
        guesses = survey.guesses
    state = RecordingState.VALID if survey.is_usable else RecordingState.INVALID
    content = entries.padded_content(descriptor, old.alignment)
    return RebuiltEntry(
        recording_id, state, content, descriptor=descriptor, guesses=guesses, notes=survey.notes
    )


def write(directory: Path, rebuild: Rebuild, now_ms: int) -> Path | None:
    """Replace the catalog. Returns the new path of the old catalog. Raises StorageError if a file
    cannot be renamed or written.
    """
    path, kept = directory / FILE_NAME, None
    if os.path.lexists(path):
        kept = path.with_name(f"{FILE_NAME}.damaged-{now_ms}")
        try:
            # First create a second link, so the directory is never without a catalog.
            os.link(path, kept, follow_symlinks=False)
        except FileExistsError as error:
            raise StorageError(f"cannot create {kept}: {error.strerror}") from error
        except OSError:
            _rename(path, kept)
    content = rebuild.content
    put_in_place(directory, content, max(len(content), rebuild.capacity))
    sync_directory(directory)
    return kept


def _rename(path: Path, kept: Path) -> None:
    """Rename the catalog. This is used if the file system does not support hard links."""
    try:
        os.rename(path, kept)
    except OSError as error:
        raise StorageError(f"cannot rename {path} to {kept}: {error.strerror}") from error
