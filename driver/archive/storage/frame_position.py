"""Checks whether a frame of a recording begins at a position.

A position from a client might not be the start of a frame, even if the bytes there look like a
header. A frame begins there if the header contains the term id, term offset and stream id that
belong to this position. Source: archive-protocol 3.6, 3.10, 3.12.
"""

import numpy as np

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.frame_walk import HEADER_LENGTH, SegmentReader
from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.wire import data, header


def term_id_at(descriptor: RecordingDescriptor, position: int) -> int:
    """Return the id of the term that contains a position."""
    count = position // descriptor.term_buffer_length
    return int(wrap_i32(descriptor.initial_term_id + count))


def is_frame_at(reader: SegmentReader, descriptor: RecordingDescriptor, position: int) -> bool:
    """Return whether a frame of the recording begins at a position. Raises StorageError if the file
    cannot be read.
    """
    raw = reader.read(position - reader.base, HEADER_LENGTH)
    if raw.size < HEADER_LENGTH:
        return False
    return (
        int(data.term_offset(raw, 0)) == position % descriptor.term_buffer_length
        and matches_position(raw, descriptor, position)
    )  # fmt: skip


def matches_position(raw: np.ndarray, descriptor: RecordingDescriptor, position: int) -> bool:
    """Return whether a frame header has the stream id of a recording and the term id of a position
    in that recording.
    """
    return (
        int(header.frame_length(raw, 0)) > 0
        and int(data.term_id(raw, 0)) == term_id_at(descriptor, position)
        and int(data.stream_id(raw, 0)) == descriptor.stream_id
    )
