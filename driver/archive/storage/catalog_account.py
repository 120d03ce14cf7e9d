"""Whether a catalog accounts for the segment files beside it.

An entry is added before the first segment file of its recording is created, and is never removed
while a file is left. A file whose recording has no entry is therefore a sign that the catalog was
lost or damaged; an archive that went on would give the id to another recording and write into that
file. Entries of any state count, and so do entries that are not served because they are faulty.
Source: archive-protocol 4.2, 4.6.
"""

from collections.abc import Mapping
from pathlib import Path

from windtunnel.driver.archive.storage.catalog import FILE_NAME, Catalog
from windtunnel.driver.archive.storage.segment_file import SegmentFile

Segments = Mapping[int, list[SegmentFile]]
"""The segment files of a directory, by recording."""
NAMED_MAX = 3
"""How many files an error names."""


def advice(directory: Path) -> str:
    """Which command rebuilds the catalog of a directory."""
    return (
        f"`windtunnel archive recover --dir {directory}` rebuilds the catalog and changes "
        "no segment file"
    )


def count_text(segments: Segments) -> str:
    """How many segment files there are, of how many recordings."""
    files = sum(map(len, segments.values()))
    return f"{files} segment files of {len(segments)} recordings"


def missing(directory: Path, segments: Segments) -> str:
    """Why the lack of a catalog is damage; empty where it is not."""
    if not segments:
        return ""
    return f"{directory}: expected {FILE_NAME} beside {count_text(segments)}, found none"


def unaccounted(catalog: Catalog, segments: Segments) -> str:
    """Which segment files have no entry for their recording; empty where all have one.

    The files must have been listed before the catalog was opened: its archive may be running.
    """
    lost = {each: files for each, files in segments.items() if not catalog.has_entry(each)}
    if not lost:
        return ""
    names = sorted(segment.path.name for files in lost.values() for segment in files)
    shown = ", ".join(names[:NAMED_MAX]) + (", ..." if len(names) > NAMED_MAX else "")
    return (
        f"{catalog.path}: expected an entry for every recording that has segment files, found "
        f"none for {count_text(lost)}: {shown}"
    )
