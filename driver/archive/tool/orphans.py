"""Finds orphans: segment files that are before the start or after the end of their recording.

Orphans are detached segment files, and files that could not be deleted when a recording was
truncated. Files of recordings that have no catalog entry, or an invalid entry, are not orphans,
because the positions of these recordings are not known. Source: archive-protocol 9.
"""

from pathlib import Path

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry
from windtunnel.driver.archive.storage.segment_file import SUFFIX, base_of, names, parse_name


def orphans(directory: Path, entries: list[CatalogEntry]) -> list[Path]:
    """Return the orphaned segment files of the valid recordings in a list of catalog entries.
    Raises StorageError if the directory cannot be read.
    """
    by_id = {
        entry.recording_id: entry.descriptor
        for entry in entries
        if entry.is_valid and not entry.fault and entry.descriptor is not None
    }
    return [
        directory / name
        for name in names(directory)
        if name.endswith(SUFFIX) and _is_orphan(directory / name, by_id)
    ]


def _is_orphan(path: Path, by_id: dict[int, RecordingDescriptor]) -> bool:
    segment = parse_name(path)
    if segment is None:
        prefix = path.name.partition("-")[0]
        return prefix.isascii() and prefix.isdigit() and int(prefix) in by_id
    descriptor = by_id.get(segment.recording_id)
    if descriptor is None:
        return False
    first = base_of(descriptor, descriptor.start_position)
    if segment.base < first:
        return True
    stop = descriptor.stop_position
    return stop != NULL_VALUE and segment.base > base_of(descriptor, stop)
