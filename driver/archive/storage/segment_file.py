"""Segment files: their names, and which file holds a position of a recording.

    start                                                         stop
      v                                                             v
    |.....................|.....................|...................    |
    ^ term base of start  ^ + segment length    ^ + 2 * segment length
      <id>-<base>.rec

A file is a byte image of the stream from its base on. Bases are counted from the start of the term
in which the recording starts, so they need not be multiples of the segment length. The content of
the files is read by `frame_walk`.
Source: archive-protocol 3, 4.1, 4.3.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from windtunnel.driver.base.errors import StorageError

SUFFIX = ".rec"
DELETED_SUFFIX = ".rec.del"
"""Older archives renamed a file to this suffix before they deleted it."""
SEGMENT_LENGTH_MIN = 64 * 1024
SEGMENT_LENGTH_MAX = 1 << 30
SEGMENT_LENGTH = 128 * 1024 * 1024
_NAME = re.compile(r"(0|[1-9]\d{0,18})-(-?(?:0|[1-9]\d{0,18}))\.rec(\.del)?")


@dataclass(frozen=True, slots=True, order=True)
class SegmentFile:
    """A file whose name is that of a segment file."""

    recording_id: int
    base: int
    path: Path
    is_deleted: bool


def term_base(start_position: int, term_length: int) -> int:
    """Return the start of the term in which a recording starts; the base of its first file."""
    return start_position - start_position % term_length


def segment_base(start_position: int, position: int, term_length: int, segment_length: int) -> int:
    """Return the base of the file that contains a position."""
    first = term_base(start_position, term_length)
    return first + (position - first) // segment_length * segment_length


def file_name(recording_id: int, base: int) -> str:
    """Return the name of a segment file."""
    return f"{recording_id}-{base}{SUFFIX}"


def parse_name(path: Path) -> SegmentFile | None:
    """Parse the name of a file; None if it is not that of a segment file."""
    found = _NAME.fullmatch(path.name)
    if found is None:
        return None
    return SegmentFile(int(found[1]), int(found[2]), path, found[3] is not None)


def names(directory: Path) -> list[str]:
    """Return the names in a directory, sorted. Raises StorageError."""
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise StorageError(f"cannot list {directory}: {error.strerror}") from error


def _segments(directory: Path) -> Iterator[SegmentFile]:
    found = (parse_name(directory / name) for name in names(directory))
    return (segment for segment in found if segment is not None)


def segments_by_recording(directory: Path) -> dict[int, list[SegmentFile]]:
    """Return all segment files in use, by recording, each list by base. Raises StorageError."""
    found: dict[int, list[SegmentFile]] = {}
    for segment in _segments(directory):
        if not segment.is_deleted:
            found.setdefault(segment.recording_id, []).append(segment)
    return {recording_id: sorted(files) for recording_id, files in found.items()}


def segments_of(directory: Path, recording_id: int) -> list[SegmentFile]:
    """Return the segment files of one recording, sorted by base. Raises StorageError."""
    return segments_by_recording(directory).get(recording_id, [])


def files_of(directory: Path, recording_id: int) -> list[SegmentFile]:
    """Return all files of a recording, sorted by base, including those renamed for deletion.

    Raises StorageError.
    """
    return sorted(each for each in _segments(directory) if each.recording_id == recording_id)


def extend_file(path: Path, length: int) -> None:
    """Extend a file that is too short with zeros. Raises StorageError."""
    try:
        if path.stat().st_size < length:
            os.truncate(path, length)
    except OSError as error:
        raise StorageError(f"cannot extend {path} to {length} bytes: {error.strerror}") from error
