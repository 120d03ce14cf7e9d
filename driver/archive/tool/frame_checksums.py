"""Putting checksums into the frames of a recording that was made without.

A checksum takes the place of the session id, so what was there is gone. Padding has none.
Source: archive-protocol 4.4, 9.
"""

import os

from driver.archive.protocol.responses import RecordingDescriptor
from driver.archive.storage import frame_walk
from driver.archive.storage.checksum import Checksum, crc
from driver.archive.storage.frame_walk import HEADER_LENGTH, SegmentReader
from driver.archive.storage.recovery import first_offset
from driver.archive.storage.segment_file import SegmentFile
from driver.archive.storage.sync import SyncLevel, sync_file, write_all
from driver.base.arith import align
from driver.base.atomics import put_i32
from driver.base.errors import StorageError
from driver.base.jit import kernel
from driver.wire import data, frame_type, header


@kernel
def put(chunk, length, table):
    """Write the checksum of every frame that lies whole in the chunk.

    Shapes:  table int64[8, 256]
    Returns: where the first frame begins that does not
    """
    at = 0
    while at + HEADER_LENGTH <= length:
        frame_length = header.frame_length(chunk, at)
        if frame_length <= 0:
            break
        end = at + align(frame_length, data.ALIGNMENT)
        if header.frame_type(chunk, at) != frame_type.PAD:
            if end > length:
                break
            put_i32(chunk, at + data.SESSION_ID, crc(table, chunk, at + HEADER_LENGTH, end))
        at = end
    return at


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
                passed = int(put(chunk, chunk.size, checksum.table))
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
