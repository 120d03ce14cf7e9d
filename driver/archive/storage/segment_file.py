"""Segment files: their names, and the positions of a recording that they contain.

    start                                                         stop
      v                                                             v
    |.....................|.....................|...................    |
    ^ term base of start  ^ + segment length    ^ + 2 * segment length
      <id>-<base>.rec

A file contains the bytes of the stream, starting at its base position. Base positions are counted
from the start of the term in which the recording starts, so they are not always multiples of the
segment length. The module `frame_walk` reads the content of the files. Source: archive-protocol 3,
4.1, 4.3.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files.regular_file import truncate_regular

SUFFIX = ".rec"
DELETED_SUFFIX = ".rec.del"
"""The suffix of files that older archives renamed before they deleted them."""
SEGMENT_LENGTH_MIN = 64 * 1024
SEGMENT_LENGTH_MAX = 1 << 30
SEGMENT_LENGTH = 128 * 1024 * 1024
_NAME = re.compile(r"(0|[1-9]\d{0,18})-(-?(?:0|[1-9]\d{0,18}))\.rec(\.del)?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class SegmentFile:
    """A file whose name has the format of a segment file name."""

    recording_id: int
    base: int
    path: Path
    is_deleted: bool


def term_base(start_position: int, term_length: int) -> int:
    """Return the base position of a recording's first file: the start of the term that contains
    the start position.
    """
    return start_position - start_position % term_length


def base_of(recording: RecordingDescriptor, position: int) -> int:
    """Return the base position of the segment file that contains a position."""
    first = term_base(recording.start_position, recording.term_buffer_length)
    length = recording.segment_file_length
    return first + (position - first) // length * length


def file_name(recording_id: int, base: int) -> str:
    """Return the name of a segment file."""
    return f"{recording_id}-{base}{SUFFIX}"


def parse_name(path: Path) -> SegmentFile | None:
    """Parse a segment file name, or return None if it has a different format."""
    found = _NAME.fullmatch(path.name)
    if found is None:
        return None
    return SegmentFile(int(found[1]), int(found[2]), path, found[3] is not None)


def names(directory: Path) -> list[str]:
    """Return the sorted names of the files in a directory. Raises StorageError if the directory
    cannot be read.
    """
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise StorageError(f"cannot list {directory}: {error.strerror}") from error


def _segments(directory: Path) -> Iterator[SegmentFile]:
    found = (parse_name(directory / name) for name in names(directory))
    return (segment for segment in found if segment is not None)


def segments_by_recording(directory: Path) -> dict[int, list[SegmentFile]]:
    """Return all segment files by recording id, in order of their base positions. Raises
    StorageError if the directory cannot be read.
    """
    found: dict[int, list[SegmentFile]] = {}
    for segment in _segments(directory):
        if not segment.is_deleted:
            found.setdefault(segment.recording_id, []).append(segment)
    return {recording_id: sorted(files) for recording_id, files in found.items()}


def segments_of(directory: Path, recording_id: int) -> list[SegmentFile]:
    """Return the segment files of one recording, in order of their base positions. Raises
    StorageError if the directory cannot be read.
    """
    return segments_by_recording(directory).get(recording_id, [])


def files_of(directory: Path, recording_id: int) -> list[SegmentFile]:
    """Return the segment files of a recording, including files renamed for deletion.

    Raises StorageError.
    """
    return sorted(each for each in _segments(directory) if each.recording_id == recording_id)


def files_between(directory: Path, recording_id: int, bases: range) -> list[Path]:
    """Return the paths of a recording's existing segment files with these base positions, including
    files renamed for deletion. The positions may be far more than the files: they come from the
    catalog, or from a file name.

    Raises StorageError.
    """
    return [each.path for each in files_of(directory, recording_id) if each.base in bases]


def extend_file(path: Path, length: int) -> None:
    """Extend a file with zeros to at least `length` bytes. Raises StorageError if this fails."""
    try:
        if path.stat().st_size < length:
            truncate_regular(path, length)
    except OSError as error:
        raise StorageError(f"cannot extend {path} to {length} bytes: {error.strerror}") from error
