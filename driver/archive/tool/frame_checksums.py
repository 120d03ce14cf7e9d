"""Putting checksums into the frames of a recording that was made without.

A checksum takes the place of the session id, so what was there is gone. Padding has none.
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


def put_into(found: RecordingDescriptor, segment: SegmentFile, checksum: Checksum) -> None:
    """Write the checksums of a segment file. Raises StorageError, before it writes if it can."""
    start = first_offset(found, segment.base)
    with SegmentReader(segment.path, segment.base) as reader:
        end, _ = reader.end_of_data(start, min(reader.length, found.segment_file_length))
        fault = reader.fault(found, start, end, None)
        if fault is not None:
            raise StorageError(f"{segment.path}: {fault.text}")
        file = _opened(segment)
        try:
            at = start
            while at < end:
                chunk = reader.read(at, min(frame_walk.CHUNK_LENGTH, end - at))
                passed = int(frame_walk.put_checksums(chunk, chunk.size, checksum.table))
                written = min(passed, chunk.size)
                assert passed > 0, "the frames were checked"
                write_all(file, segment.path, memoryview(chunk[:written]), at)
                at += passed
            sync_file(file, segment.path, SyncLevel.DATA)
        finally:
            os.close(file)


def _opened(segment: SegmentFile) -> int:
    try:
        return os.open(segment.path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StorageError(f"cannot open {segment.path}: {error.strerror}") from error
