"""Segment files: their names, and which position of a recording lies in which.

    start                                                         stop
      v                                                             v
    |.....................|.....................|...................    |
    ^ term base of start  ^ + segment length    ^ + 2 * segment length
      <id>-<base>.rec

A file is a byte image of the stream from its base on. Bases are anchored at the beginning of the
term in which the recording starts, so they need not be multiples of the segment length. Knows
nothing of what is in the files, see `frame_walk`.
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
"""Older archives gave a file this name before they deleted it."""
SEGMENT_LENGTH_MIN = 64 * 1024
SEGMENT_LENGTH_MAX = 1 << 30
SEGMENT_LENGTH = 128 * 1024 * 1024
_NAME = re.compile(r"(0|[1-9]\d{0,18})-(-?(?:0|[1-9]\d{0,18}))\.rec(\.del)?")


@dataclass(frozen=True, slots=True, order=True)
class SegmentFile:
    """A file whose name is that of a segment."""

    recording_id: int
    base: int
    path: Path
    is_deleted: bool


def term_base(start_position: int, term_length: int) -> int:
    """Where the term begins in which a recording starts; the base of its first file."""
    return start_position - start_position % term_length


def segment_base(start_position: int, position: int, term_length: int, segment_length: int) -> int:
    """The base of the file in which a position lies."""
    first = term_base(start_position, term_length)
    return first + (position - first) // segment_length * segment_length


def file_name(recording_id: int, base: int) -> str:
    """The name of a segment file."""
    return f"{recording_id}-{base}{SUFFIX}"


def parsed(path: Path) -> SegmentFile | None:
    """What a file's name says, or None where it is not that of a segment."""
    found = _NAME.fullmatch(path.name)
    if found is None:
        return None
    return SegmentFile(int(found[1]), int(found[2]), path, found[3] is not None)


def names(directory: Path) -> list[str]:
    """The names in a directory. Raises StorageError."""
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise StorageError(f"cannot list {directory}: {error.strerror}") from error


def _segments(directory: Path) -> Iterator[SegmentFile]:
    found = (parsed(directory / name) for name in names(directory))
    return (segment for segment in found if segment is not None)


def segments_by_recording(directory: Path) -> dict[int, list[SegmentFile]]:
    """All segment files that are in use, by recording, each list by base. Raises StorageError."""
    found: dict[int, list[SegmentFile]] = {}
    for segment in _segments(directory):
        if not segment.is_deleted:
            found.setdefault(segment.recording_id, []).append(segment)
    return {recording_id: sorted(files) for recording_id, files in found.items()}


def segments_of(directory: Path, recording_id: int) -> list[SegmentFile]:
    """The segment files of one recording, by base. Raises StorageError."""
    return segments_by_recording(directory).get(recording_id, [])


def files_of(directory: Path, recording_id: int) -> list[SegmentFile]:
    """All files of a recording, by base, those too that an older archive renamed to delete them.

    Raises StorageError.
    """
    return sorted(each for each in _segments(directory) if each.recording_id == recording_id)


def lengthen(path: Path, length: int) -> None:
    """Give a file that is too short its length; what comes to it are zeros. Raises StorageError."""
    try:
        if path.stat().st_size < length:
            os.truncate(path, length)
    except OSError as error:
        raise StorageError(f"cannot make {path} {length} bytes long: {error.strerror}") from error
