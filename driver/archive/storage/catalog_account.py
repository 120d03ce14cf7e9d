"""Checks that the catalog has an entry for every segment file in the same directory.

An entry is added before the first segment file of its recording is created, and is never removed
while a file exists. A file whose recording has no entry therefore shows that the catalog was lost
or damaged. If the archive continued, it would give the id to another recording and write into that
file. Entries in any state count, including faulty entries that clients cannot access.
Source: archive-protocol 4.2, 4.6.
"""

from collections.abc import Mapping
from pathlib import Path

from windtunnel.driver.archive.storage.catalog import FILE_NAME, Catalog
from windtunnel.driver.archive.storage.segment_file import SegmentFile

Segments = Mapping[int, list[SegmentFile]]
"""The segment files of a directory, by recording id."""
FILES_SHOWN_MAX = 3
"""The maximum number of file names in an error message."""


def advice(directory: Path) -> str:
    """Return advice that names the command for rebuilding the catalog of a directory."""
    return (
        f"`windtunnel archive recover --dir {directory}` rebuilds the catalog without changing "
        "segment files"
    )


def count_text(segments: Segments) -> str:
    """Return the number of segment files and the number of recordings as text."""
    files = sum(map(len, segments.values()))
    return f"{files} segment files of {len(segments)} recordings"


def missing(directory: Path, segments: Segments) -> str:
    """Return an error message if the catalog is missing but segment files exist, or else an empty
    string.
    """
    if not segments:
        return ""
    return f"{directory}: expected {FILE_NAME} next to {count_text(segments)}, found none"


def unaccounted(catalog: Catalog, segments: Segments) -> str:
    """Return an error message that names the segment files without a catalog entry, or an empty
    string if there are none.

    The files must be listed before the catalog is opened, because the archive may be running.
    """
    lost = {each: files for each, files in segments.items() if not catalog.has_entry(each)}
    if not lost:
        return ""
    names = sorted(segment.path.name for files in lost.values() for segment in files)
    shown = ", ".join(names[:FILES_SHOWN_MAX]) + (", ..." if len(names) > FILES_SHOWN_MAX else "")
    return (
        f"{catalog.path}: expected an entry for every recording with segment files, found none "
        f"for {count_text(lost)}: {shown}"
    )
