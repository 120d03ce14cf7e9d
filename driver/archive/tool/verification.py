"""Verifies one recording: its catalog entry, its segment files and its frames.

A recording consists of the files from its start position to its stop position. Other files with the
same recording id are orphans and are ignored. Aeron uses the last file with the id, even if it is
outside the recording, treats a recording without files as empty, and moves the stop position back
to the end of the data without asking. Here a recording without files is invalid, and a stop
position is only moved back with the user's consent. Aeron marks a recording invalid if one of its
files cannot be read, and `compact` would then delete it; here its state remains.
Source: archive-protocol 9.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry, RecordingState
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.archive.storage.frame_walk import SegmentReader
from windtunnel.driver.archive.storage.recovery import first_offset, recovered_stop
from windtunnel.driver.archive.storage.segment_file import SegmentFile, base_of
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files.regular_file import truncate_regular
from windtunnel.driver.wire.data import ALIGNMENT

Truncate = Callable[[int, int, str], bool]
"""Function that is called with (recording id, position, reason) and returns whether the recording
may be truncated at the position.
"""


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Options for the verification of recordings."""

    checksum: Checksum | None = None
    all_segments: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying one recording."""

    recording_id: int
    fault: str = ""
    """The reason why the recording is not valid, or an empty string."""
    stop_position: int = NULL_VALUE
    """The stop position according to the segment files."""
    cut_position: int | None = None
    """The position at which to truncate a recording whose last frame may be torn, or None."""
    has_files: bool = False
    read_error: str = ""
    """The error that prevented the verification, or an empty string."""


class _InvalidRecording(Exception):
    """The first fault that was found in a recording."""


def verify(
    directory: Path,
    entry: CatalogEntry,
    segments: list[SegmentFile],
    options: VerifyOptions,
    may_truncate: Truncate,
) -> Verdict:
    """Verify one recording without changing anything."""
    try:
        if entry.descriptor is None or entry.fault:
            raise _InvalidRecording(f"invalid catalog entry: {entry.fault}")
        return _verify(directory, entry, entry.descriptor, segments, options, may_truncate)
    except _InvalidRecording as error:
        return Verdict(entry.recording_id, str(error))
    except StorageError as error:
        if _is_read_error(error):
            return Verdict(entry.recording_id, read_error=str(error))
        return Verdict(entry.recording_id, str(error))


def _is_read_error(error: StorageError) -> bool:
    """Return whether an error may pass, such as EIO or EACCES, and shows nothing about a file."""
    # EINVAL means something else in place of a regular file.
    return isinstance(error.__cause__, OSError) and error.__cause__.errno != errno.EINVAL


def _verify(
    directory: Path,
    entry: CatalogEntry,
    descriptor: RecordingDescriptor,
    segments: list[SegmentFile],
    options: VerifyOptions,
    may_truncate: Truncate,
) -> Verdict:
    _require_positions(descriptor)
    own = _own_segments(descriptor, segments)
    _require_all(descriptor, own)
    stop = recovered_stop(directory, descriptor, options.checksum, own)
    position, cut, reason = stop.position, None, ""
    if stop.doubtful_position is not None:
        position = cut = stop.doubtful_position
        reason = f"the last frame, at position {cut}, may be torn"
    elif position < descriptor.stop_position:
        cut = position
        reason = f"the data ends at {position}, before the stop position {descriptor.stop_position}"
    if cut is not None and not may_truncate(descriptor.recording_id, cut, reason):
        raise _InvalidRecording(reason)
    if options.checksum is not None and not entry.is_checksum_right(options.checksum):
        raise _InvalidRecording(
            f"the {options.checksum.name} checksum of the catalog entry does not match"
        )
    for segment in own if options.all_segments else own[-1:]:
        _require_frames(descriptor, segment, options.checksum, position)
    return Verdict(descriptor.recording_id, "", position, cut, bool(own))


def _require_positions(descriptor: RecordingDescriptor) -> None:
    start, stop = descriptor.start_position, descriptor.stop_position
    if start < 0 or start % ALIGNMENT:
        raise _InvalidRecording(
            f"invalid start position {start}: expected a multiple of {ALIGNMENT}, at least 0"
        )
    if stop != NULL_VALUE and (stop < start or stop % ALIGNMENT):
        raise _InvalidRecording(
            f"invalid stop position {stop}: expected a multiple of {ALIGNMENT}, "
            f"at least the start position {start}"
        )


def _own_segments(
    descriptor: RecordingDescriptor, segments: list[SegmentFile]
) -> list[SegmentFile]:
    """Return the segment files between a recording's start position and its stop position."""
    first = base_of(descriptor, descriptor.start_position)
    last = segments[-1].base if segments else first
    if descriptor.stop_position != NULL_VALUE:
        last = base_of(descriptor, descriptor.stop_position)
    return [segment for segment in segments if first <= segment.base <= last]


def _require_all(descriptor: RecordingDescriptor, own: list[SegmentFile]) -> None:
    """Raise _InvalidRecording if a file between the start and the stop position is missing."""
    base = base_of(descriptor, descriptor.start_position)
    end = descriptor.stop_position
    if end == NULL_VALUE:
        end = own[-1].base + 1 if own else descriptor.start_position
    present = {segment.base for segment in own}
    while base < end and descriptor.start_position < end:
        if base not in present:
            raise _InvalidRecording(f"missing segment file {descriptor.recording_id}-{base}.rec")
        base += descriptor.segment_file_length


def _require_frames(
    descriptor: RecordingDescriptor, segment: SegmentFile, checksum: Checksum | None, stop: int
) -> None:
    start = first_offset(descriptor, segment.base)
    expected = min(stop - segment.base, descriptor.segment_file_length)
    with SegmentReader(segment.path, segment.base) as reader:
        end, _ = reader.end_of_data(start, min(reader.length, max(expected, start)))
        fault = reader.fault(descriptor, start, end, checksum)
        if fault is not None:
            raise _InvalidRecording(f"{segment.path.name}: {fault.text}")
        if end < expected:
            raise _InvalidRecording(
                f"{segment.path.name}: the data ends at position {segment.base + end}, "
                f"expected {segment.base + expected}"
            )


def repair(catalog: CatalogWriter, entry: CatalogEntry, verdict: Verdict, now_ms: int) -> list[str]:
    """Repair a recording according to its verification result. Returns the changes. Raises
    StorageError if a file cannot be written.
    """
    if entry.descriptor is None or verdict.read_error:
        return []
    changes, recording_id = [], entry.recording_id
    if verdict.fault:
        if entry.state != RecordingState.INVALID:
            catalog.set_state(recording_id, RecordingState.INVALID)
            changes.append("marked invalid")
        return changes
    if verdict.cut_position is not None:
        _zero_from(catalog.directory, entry.descriptor, verdict.cut_position)
        changes.append(f"truncated at {verdict.cut_position}")
    if verdict.stop_position != entry.descriptor.stop_position:
        catalog.record_stop(recording_id, verdict.stop_position, now_ms)
        changes.append(
            f"stop position {entry.descriptor.stop_position} changed to {verdict.stop_position}"
        )
    if entry.state == RecordingState.INVALID and verdict.has_files:
        catalog.set_state(recording_id, RecordingState.VALID)
        changes.append("marked valid")
    return changes


def _zero_from(directory: Path, descriptor: RecordingDescriptor, position: int) -> None:
    """Fill a segment file with zeros from a position to its end."""
    base = base_of(descriptor, position)
    path = directory / f"{descriptor.recording_id}-{base}.rec"
    try:
        truncate_regular(path, position - base, descriptor.segment_file_length)
    except OSError as error:
        raise StorageError(f"cannot truncate {path}: {error.strerror}") from error
