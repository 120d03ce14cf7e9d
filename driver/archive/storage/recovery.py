"""Finds the stop position of a recording whose archive was killed.

    page              page              page
    |   frame | frame | ... last frame ...      0 0 0
                                ^ was all of it written?

Only the last file matters. The data ends at the first frame whose length is zero. The pages of a
block may be written in any order, so the last frame may be torn. A frame that extends past the end
of its file is torn. A frame that crosses a page boundary is proven complete by its checksum, if
frames have checksums, or by a nonzero byte in each of its later pages. A padding frame is always
complete, because only its header is written. Aeron ignores the frame type, so it does not start
after a padding frame that crosses a page boundary. It also counts pages from the offset where it
started to read, instead of from the start of the file. Source: archive-protocol 4.6.
"""

from dataclasses import dataclass
from pathlib import Path

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.checksum import Checksum, crc
from windtunnel.driver.archive.storage.frame_walk import HEADER_LENGTH, PAGE_LENGTH, SegmentReader
from windtunnel.driver.archive.storage.segment_file import SegmentFile, segments_of, term_base
from windtunnel.driver.base.arith import align
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.wire import data, frame_type, header


@dataclass(frozen=True, slots=True)
class RecoveredStop:
    """The end of a recording according to its segment files."""

    position: int
    """The end of the data, including a frame that may be torn."""
    doubtful_position: int | None = None
    """The position of the last frame if it may be torn, or None."""


def recovered_stop(
    directory: Path,
    descriptor: RecordingDescriptor,
    checksum: Checksum | None = None,
    segments: list[SegmentFile] | None = None,
) -> RecoveredStop:
    """Find the stop position of a recording in its segment files. Raises StorageError if a file
    cannot be read or has an invalid name.
    """
    if segments is None:
        segments = segments_of(directory, descriptor.recording_id)
    if not segments:
        return RecoveredStop(descriptor.start_position)
    last_file = segments[-1]
    end_max = descriptor.term_buffer_length << 31
    if not 0 <= last_file.base < end_max:
        raise StorageError(
            f"{last_file.path}: expected a base position of at least 0 in the file name, and below "
            f"{end_max}, where a stream with terms of this length ends"
        )
    start = first_offset(descriptor, last_file.base)
    with SegmentReader(last_file.path, last_file.base) as reader:
        limit = min(reader.length, descriptor.segment_file_length)
        end, last = reader.end_of_data(start, limit)
        if end > limit:
            # The last frame extends past the end of the file, so it is torn.
            return _stop(descriptor, reader.base + last)
        if last >= 0 and not _is_complete(reader, last, end, checksum):
            return RecoveredStop(reader.base + end, reader.base + last)
        return _stop(descriptor, reader.base + end)


def first_offset(descriptor: RecordingDescriptor, base: int) -> int:
    """Return the file offset where the data of a segment file begins."""
    first = term_base(descriptor.start_position, descriptor.term_buffer_length)
    return descriptor.start_position - first if base == first else 0


def _stop(descriptor: RecordingDescriptor, position: int) -> RecoveredStop:
    return RecoveredStop(max(position, descriptor.start_position))


def _is_complete(reader: SegmentReader, start: int, end: int, checksum: Checksum | None) -> bool:
    """Return True if the frame between two file offsets is known to be complete, or False if it may
    be torn, that is, only partially written.
    """
    if start // PAGE_LENGTH == (end - 1) // PAGE_LENGTH:
        return True
    head = reader.read(start, HEADER_LENGTH)
    if header.frame_type(head, 0) == frame_type.PAD:
        return True
    if checksum is not None:
        frame = reader.read(start, end - start)
        expected = crc(checksum.table, frame, HEADER_LENGTH, frame.size)
        if frame.size == end - start and data.session_id(head, 0) == expected:
            return True
    first_later_page = int(align(start + 1, PAGE_LENGTH))
    return all(
        reader.read(page, min(PAGE_LENGTH, end - page)).any()
        for page in range(first_later_page, end, PAGE_LENGTH)
    )
