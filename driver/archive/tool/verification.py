"""Does a recording fit together: its catalog entry, its files, its frames.

What belongs to a recording are the files from the one of its start to the one of its stop; others
of its id are orphans, and prove nothing. Aeron looks at the last file that has its id, whatever
its position, takes a recording whose files are gone for an empty one, and moves a stop back to
where data ends without asking; here the one is not valid, and the other is asked about.
Source: archive-protocol 9.
"""

import os
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
from windtunnel.driver.archive.storage.segment_file import SegmentFile, segment_base
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.wire.data import ALIGNMENT

Truncate = Callable[[int, int, str], bool]
"""Asked with (recording id, position, why) whether a recording may be cut off there."""


@dataclass(frozen=True, slots=True)
class How:
    """What to look at."""

    checksum: Checksum | None = None
    all_segments: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a recording came to."""

    recording_id: int
    fault: str = ""
    "Why it is not whole; empty where it is."
    stop_position: int = NULL_VALUE
    "Where its files say that it stops."
    cut_position: int | None = None
    "Where a last frame that may be torn is to be cut off."
    has_files: bool = False


class _NotWhole(Exception):
    """The first thing that does not fit."""


def verify(
    directory: Path,
    entry: CatalogEntry,
    segments: list[SegmentFile],
    how: How,
    may_truncate: Truncate,
) -> Verdict:
    """Look at one recording, and change nothing."""
    try:
        if entry.descriptor is None or entry.fault:
            raise _NotWhole(f"its catalog entry cannot be used: {entry.fault}")
        return _verified(directory, entry, entry.descriptor, segments, how, may_truncate)
    except (_NotWhole, StorageError) as error:
        return Verdict(entry.recording_id, str(error))


def _verified(
    directory: Path,
    entry: CatalogEntry,
    found: RecordingDescriptor,
    segments: list[SegmentFile],
    how: How,
    may_truncate: Truncate,
) -> Verdict:
    _require_positions(found)
    own = _own(found, segments)
    _require_all(found, own)
    stop = recovered_stop(directory, found, how.checksum, own)
    position, cut, why = stop.position, None, ""
    if stop.doubtful_position is not None:
        position = cut = stop.doubtful_position
        why = f"its last frame, at position {cut}, may be torn"
    elif position < found.stop_position:
        cut, why = position, f"its data ends at {position}, before its stop {found.stop_position}"
    if cut is not None and not may_truncate(found.recording_id, cut, why):
        raise _NotWhole(why)
    if how.checksum is not None and not entry.is_checksum_right(how.checksum):
        raise _NotWhole(f"the checksum of its catalog entry is not its {how.checksum.name}")
    for segment in own if how.all_segments else own[-1:]:
        _require_frames(found, segment, how.checksum, position)
    return Verdict(found.recording_id, "", position, cut, bool(own))


def _require_positions(found: RecordingDescriptor) -> None:
    start, stop = found.start_position, found.stop_position
    if start < 0 or start % ALIGNMENT:
        raise _NotWhole(f"its start position {start} is no position of a frame")
    if stop != NULL_VALUE and (stop < start or stop % ALIGNMENT):
        raise _NotWhole(f"its stop position {stop} is no position of a frame behind {start}")


def _base(found: RecordingDescriptor, position: int) -> int:
    return segment_base(
        found.start_position, position, found.term_buffer_length, found.segment_file_length
    )


def _own(found: RecordingDescriptor, segments: list[SegmentFile]) -> list[SegmentFile]:
    """The files that hold positions of the recording."""
    first = _base(found, found.start_position)
    last = segments[-1].base if segments else first
    if found.stop_position != NULL_VALUE:
        last = _base(found, found.stop_position)
    return [segment for segment in segments if first <= segment.base <= last]


def _require_all(found: RecordingDescriptor, own: list[SegmentFile]) -> None:
    """From the start to the stop, or to the last file, none may be missing."""
    base = _base(found, found.start_position)
    end = found.stop_position
    if end == NULL_VALUE:
        end = own[-1].base + 1 if own else found.start_position
    present = {segment.base for segment in own}
    while base < end and found.start_position < end:
        if base not in present:
            raise _NotWhole(f"its segment file {found.recording_id}-{base}.rec is missing")
        base += found.segment_file_length


def _require_frames(
    found: RecordingDescriptor, segment: SegmentFile, checksum: Checksum | None, stop: int
) -> None:
    start = first_offset(found, segment.base)
    expected = min(stop - segment.base, found.segment_file_length)
    with SegmentReader(segment.path, segment.base) as reader:
        end, _ = reader.end_of_data(start, min(reader.length, max(expected, start)))
        fault = reader.fault(found, start, end, checksum)
        if fault is not None:
            raise _NotWhole(f"{segment.path.name}: {fault.text}")
        if end < expected:
            raise _NotWhole(
                f"{segment.path.name}: its data ends at position {segment.base + end}, "
                f"expected {segment.base + expected}"
            )


def mend(catalog: CatalogWriter, entry: CatalogEntry, verdict: Verdict, now_ms: int) -> list[str]:
    """Write down what was found. Returns what was changed. Raises StorageError."""
    if entry.descriptor is None:
        return []
    done, recording_id = [], entry.recording_id
    if verdict.fault:
        if entry.state != RecordingState.INVALID:
            catalog.set_state(recording_id, RecordingState.INVALID)
            done.append("marked invalid")
        return done
    if verdict.cut_position is not None:
        _zero_from(catalog.directory, entry.descriptor, verdict.cut_position)
        done.append(f"cut off at {verdict.cut_position}")
    if verdict.stop_position != entry.descriptor.stop_position:
        catalog.stopped(recording_id, verdict.stop_position, now_ms)
        done.append(
            f"stop position {entry.descriptor.stop_position} became {verdict.stop_position}"
        )
    if entry.state == RecordingState.INVALID and verdict.has_files:
        catalog.set_state(recording_id, RecordingState.VALID)
        done.append("marked valid")
    return done


def _zero_from(directory: Path, found: RecordingDescriptor, position: int) -> None:
    """Nothing is left behind a position in its file, which keeps its length."""
    base = _base(found, position)
    path = directory / f"{found.recording_id}-{base}.rec"
    try:
        os.truncate(path, position - base)
        os.truncate(path, found.segment_file_length)
    except OSError as error:
        raise StorageError(f"cannot cut {path}: {error.strerror}") from error
