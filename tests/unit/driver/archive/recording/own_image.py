"""A stream published by the test and recorded into a folder."""

import numpy as np

from tests.unit.driver.archive.storage import own_recording as own
from tests.unit.driver.client.own_stream import INITIAL_TERM_ID, MTU, SESSION_ID, STREAM_ID
from tests.unit.driver.client.own_stream import TERM_LENGTH as TERM
from windtunnel.driver.archive.recording.recording_session import (
    FILE_IO_MAX_LENGTH,
    RecordingSession,
)
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter, WriteOptions
from windtunnel.driver.archive.storage.frame_walk import SegmentReader
from windtunnel.driver.archive.storage.segment_file import segments_of

SEGMENT = 2 * TERM


class Counted:
    """A counter that keeps all values that were set."""

    def __init__(self):
        self.values = []

    def set(self, value):
        self.values.append(value)


def described(start=0, stop=-1, **changed):
    """Return the descriptor of the stream's recording."""
    return own.descriptor(
        start=start, stop=stop, initial_term_id=INITIAL_TERM_ID, session_id=SESSION_ID,
        stream_id=STREAM_ID, segment_file_length=SEGMENT, mtu_length=MTU, **changed,
    )  # fmt: skip


def session(stream, folder, options=None, io_max_length=FILE_IO_MAX_LENGTH, **changed):
    """Return a session over a new image of the stream, from its current position."""
    image = stream.new_image()
    position = image.position
    descriptor = described(**({"start": position} | changed))
    writer = SegmentWriter(folder, descriptor, position, options or WriteOptions())
    return RecordingSession(image, writer, Counted(), io_max_length)


def record(recording):
    """Record everything that was published. Returns the number of blocks."""
    blocks = 0
    while recording.do_work():
        blocks += 1
    return blocks


def recorded_bytes(folder, until, recording_id=0):
    """Return the concatenated files of a recording."""
    content = b"".join(each.path.read_bytes() for each in segments_of(folder, recording_id))
    assert not any(content[until:])
    return content[:until]


def published_bytes(stream, until):
    """Return the bytes of the stream's log, which must be within its first three terms."""
    assert until <= 3 * TERM
    return stream.mapped.log[:until].tobytes()


def faults(folder, descriptor, end, checksum=None):
    """Return the faults in the files of a recording."""
    found = []
    for segment in segments_of(folder, descriptor.recording_id):
        with SegmentReader(segment.path, segment.base) as reader:
            data_end, _ = reader.end_of_data(0, min(reader.length, end - segment.base))
            found.append(reader.fault(descriptor, 0, data_end, checksum))
    return [fault for fault in found if fault is not None]


def messages(count, length_max=5_000, seed=1):
    """Return messages of many lengths."""
    chance = np.random.default_rng(seed)
    return [chance.bytes(int(length)) for length in chance.integers(0, length_max, count)]
