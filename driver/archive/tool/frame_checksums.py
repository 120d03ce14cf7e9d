"""Writes checksums into the frames of a recording that was made without checksums.

A checksum replaces the frame's session id, which is lost. Padding frames have no checksum.
Source: archive-protocol 4.4, 9.
"""

import os

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage import frame_walk
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.archive.storage.frame_walk import SegmentReader
from windtunnel.driver.archive.storage.recovery import first_offset
from windtunnel.driver.archive.storage.segment_file import SegmentFile
from windtunnel.driver.archive.storage.sync import SyncLevel, sync_file, write_all
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.files.regular_file import open_regular


def write_checksums(
    descriptor: RecordingDescriptor, segment: SegmentFile, checksum: Checksum
) -> None:
    """Write a checksum into each frame of one segment file.

    Raises StorageError. If a frame is invalid, the error is raised before anything is written.
    """
    start = first_offset(descriptor, segment.base)
    with SegmentReader(segment.path, segment.base) as reader:
        end, _ = reader.end_of_data(start, min(reader.length, descriptor.segment_file_length))
        fault = reader.fault(descriptor, start, end, None)
        if fault is not None:
            raise StorageError(f"{segment.path}: {fault.text}")
        file = _open(segment)
        try:
            at = start
            while at < end:
                chunk = reader.read(at, min(frame_walk.CHUNK_LENGTH, end - at))
                passed = int(frame_walk.put_checksums(chunk, chunk.size, checksum.table))
                written = min(passed, chunk.size)
                assert passed > 0, "the frames were checked above"
                write_all(file, segment.path, memoryview(chunk[:written]), at)
                at += passed
            sync_file(file, segment.path, SyncLevel.DATA)
        finally:
            os.close(file)


def _open(segment: SegmentFile) -> int:
    try:
        return open_regular(segment.path, os.O_WRONLY)
    except OSError as error:
        raise StorageError(f"cannot open {segment.path}: {error.strerror}") from error
