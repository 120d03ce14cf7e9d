"""Whether a frame begins where somebody says so.

A position that a client names need not be one at which a frame begins, though a header could be
read there. It is one if the header says the term, the offset in it and the stream that belong to
this place. Source: archive-protocol 3.6, 3.10, 3.12.
"""

import numpy as np

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.frame_walk import HEADER_LENGTH, SegmentReader
from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.wire import data, header


def term_id_at(descriptor: RecordingDescriptor, position: int) -> int:
    """The id of the term in which a position lies."""
    count = position // descriptor.term_buffer_length
    return int(wrap_i32(descriptor.initial_term_id + count))


def is_frame_at(reader: SegmentReader, descriptor: RecordingDescriptor, position: int) -> bool:
    """Whether a frame of the recording begins there. Raises StorageError."""
    raw = reader.read(position - reader.base, HEADER_LENGTH)
    if raw.size < HEADER_LENGTH:
        return False
    return (
        int(data.term_offset(raw, 0)) == position % descriptor.term_buffer_length
        and has_place(raw, descriptor, position)
    )  # fmt: skip


def has_place(raw: np.ndarray, descriptor: RecordingDescriptor, position: int) -> bool:
    """Whether a header is of the stream and of the term in which the position lies."""
    return (
        int(header.frame_length(raw, 0)) > 0
        and int(data.term_id(raw, 0)) == term_id_at(descriptor, position)
        and int(data.stream_id(raw, 0)) == descriptor.stream_id
    )
