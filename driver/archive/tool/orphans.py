"""Segment files that no position of their recording lies in.

They come from segments that were detached, and from files that could not be deleted when a
recording was truncated. Files of recordings that the catalog does not know, or knows as not valid,
are not touched: their positions cannot be trusted. Source: archive-protocol 9.
"""

from pathlib import Path

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry
from windtunnel.driver.archive.storage.segment_file import SUFFIX, names, parsed, segment_base


def orphans(directory: Path, entries: list[CatalogEntry]) -> list[Path]:
    """The orphans of all valid recordings among these. Raises StorageError."""
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
    segment = parsed(path)
    if segment is None:
        prefix = path.name.partition("-")[0]
        return prefix.isascii() and prefix.isdigit() and int(prefix) in by_id
    found = by_id.get(segment.recording_id)
    if found is None:
        return False
    first = _base(found, found.start_position)
    if segment.base < first:
        return True
    return found.stop_position != NULL_VALUE and segment.base > _base(found, found.stop_position)


def _base(found: RecordingDescriptor, position: int) -> int:
    return segment_base(
        found.start_position, position, found.term_buffer_length, found.segment_file_length
    )
