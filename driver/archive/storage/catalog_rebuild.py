"""Rebuilding a catalog from the segment files and from what is left of the old one.

    old catalog  --salvage-->  entries that can be read  ---.
    segment files --survey-->  entries for the others    ---+-->  new catalog

An entry that can be read stays as it is. A recording with files and without an entry gets one from
its frames; where these do not do, it is INVALID, so that its id is not used again and its files are
kept. The old catalog gets another name, and no segment file is changed.
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
from windtunnel.driver.archive.storage.catalog_salvage import Salvage, salvaged
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
"""What Aeron's `compact` leaves in place of the catalog when it is killed."""


@dataclass(frozen=True, slots=True)
class RebuiltEntry:
    """One recording of the new catalog."""

    recording_id: int
    state: int
    content: bytes
    checksum: int = 0
    descriptor: RecordingDescriptor | None = None
    "None where the entry is kept as it was."
    guesses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rebuild:
    """A catalog that is to replace a damaged one."""

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
    """What is wrong with the catalog of a directory, or nothing. Raises StorageError."""
    if not os.path.lexists(directory / FILE_NAME):
        return catalog_account.missing(directory, segments)
    try:
        with Catalog(directory) as catalog:
            return catalog.damage or catalog_account.unaccounted(catalog, segments)
    except CatalogVersionError:
        raise
    except CatalogError as error:
        return str(error)


def rebuilt(directory: Path, segments: Segments) -> Rebuild | None:
    """The catalog that the files of a directory tell; None where it has a sound one.

    Raises StorageError
    """
    damage = damage_of(directory, segments)
    if not damage:
        return None
    source = _source(directory)
    old = Salvage() if source is None else salvaged(source)
    recordings = []
    for recording_id in sorted({*old.entries, *segments}):
        entry = old.entries.get(recording_id)
        files = segments.get(recording_id, [])
        is_whole = entry is not None and not entry.fault and recording_id not in old.headless
        if files and not is_whole:
            recordings.append(_surveyed(entry, files, old))
        elif entry is not None and recording_id not in old.headless:
            recordings.append(_kept(entry))
    highest = recordings[-1].recording_id if recordings else NULL_VALUE
    capacity = max(CAPACITY, old.length)
    return Rebuild(
        damage, recordings, max(highest + 1, old.next_recording_id), old.alignment, capacity
    )


def _source(directory: Path) -> Path | None:
    """Where entries may be read from: the catalog, or what a tool was about to replace it by."""
    names = (FILE_NAME, COMPACTED_NAME, REPLACEMENT_NAME)
    return next((directory / name for name in names if (directory / name).is_file()), None)


def _kept(entry: CatalogEntry) -> RebuiltEntry:
    return RebuiltEntry(entry.recording_id, entry.state, entry.content, entry.checksum)


def _surveyed(entry: CatalogEntry | None, files: list[SegmentFile], old: Salvage) -> RebuiltEntry:
    """An entry from segment files, and from an old one that cannot be used as it is."""
    recording_id = files[0].recording_id
    if entry is not None and entry.descriptor is not None and not entry.fault:
        # All that it lost is its header: it was valid, or it would have no files.
        return RebuiltEntry(
            recording_id, RecordingState.VALID, entry.content, descriptor=entry.descriptor,
            guesses=["state VALID"],
        )  # fmt: skip
    found = segment_survey.evidence(files)
    descriptor = found.descriptor
    guesses = [*found.guesses, "start and stop time"]
    if entry is not None and entry.descriptor is not None:
        was = entry.descriptor
        descriptor = replace(
            descriptor, start_timestamp=was.start_timestamp, stop_timestamp=was.stop_timestamp,
            stripped_channel=was.stripped_channel, original_channel=was.original_channel,
            source_identity=was.source_identity,
        )  # fmt: skip
        guesses = found.guesses
    state = RecordingState.VALID if found.is_usable else RecordingState.INVALID
    content = entries.padded_content(descriptor, old.alignment)
    return RebuiltEntry(
        recording_id, state, content, descriptor=descriptor, guesses=guesses, notes=found.notes
    )


def write(directory: Path, rebuild: Rebuild, now_ms: int) -> Path | None:
    """Put the new catalog in place. Returns the new name of the old one. Raises StorageError."""
    path, kept = directory / FILE_NAME, None
    if os.path.lexists(path):
        kept = path.with_name(f"{FILE_NAME}.damaged-{now_ms}")
        try:
            # A second name first: the directory is at no time without a catalog.
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
    """Give a file another name where the file system knows one name a file."""
    try:
        os.rename(path, kept)
    except OSError as error:
        raise StorageError(f"cannot rename {path} to {kept}: {error.strerror}") from error
