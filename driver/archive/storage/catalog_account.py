"""Checks that the catalog has an entry for every segment file beside it.

An entry is added before the first segment file of its recording is created, and is never removed
while a file is left. A file whose recording has no entry therefore shows that the catalog was lost
or damaged; an archive that continued would give the id to another recording and write into that
file. Entries of any state count, including faulty entries that are not served.
Source: archive-protocol 4.2, 4.6.
"""

from collections.abc import Mapping
from pathlib import Path

from windtunnel.driver.archive.storage.catalog import FILE_NAME, Catalog
from windtunnel.driver.archive.storage.segment_file import SegmentFile

Segments = Mapping[int, list[SegmentFile]]
"""The segment files of a directory, by recording id."""
FILES_SHOWN_MAX = 3
"""How many files an error message names."""


def advice(directory: Path) -> str:
    """Name the command that rebuilds the catalog of a directory."""
    return (
        f"`windtunnel archive recover --dir {directory}` rebuilds the catalog without changing "
        "segment files"
    )


def count_text(segments: Segments) -> str:
    """Return the number of segment files and of recordings as text."""
    files = sum(map(len, segments.values()))
    return f"{files} segment files of {len(segments)} recordings"


def missing(directory: Path, segments: Segments) -> str:
    """Return why the missing catalog is damage; empty if there are no segment files."""
    if not segments:
        return ""
    return f"{directory}: expected {FILE_NAME} beside {count_text(segments)}, found none"


def unaccounted(catalog: Catalog, segments: Segments) -> str:
    """Return which segment files have no entry for their recording; empty if all have one.

    The files must be listed before the catalog is opened, because its archive may be running.
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
