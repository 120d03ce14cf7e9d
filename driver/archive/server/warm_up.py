"""Compiles all archive kernels into the cache, so no recording has to wait for the compiler.

    publication --> image --> RecordingSession --> files --> ReplaySession --> publication

The module records a short stream with checksums and replays it with verification, in one thread and
with any driver. It also recovers and checks the files, as an archive does after a restart.
"""

from collections.abc import Callable
from pathlib import Path

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter, WriteOptions
from windtunnel.driver.archive.replay.recording_reader import (
    RecordingReader,
    publication_parameters,
)
from windtunnel.driver.archive.replay.replay_session import ReplaySession
from windtunnel.driver.archive.storage.checksum import CRC_32
from windtunnel.driver.archive.storage.frame_walk import SegmentReader
from windtunnel.driver.archive.storage.recovery import recovered_stop
from windtunnel.driver.archive.storage.segment_file import segments_of
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.image import Image

STREAM_ID, REPLAY_STREAM_ID = 1_001, 1_002
CHANNEL = "aeron:ipc?term-length=64k"
SEGMENT_LENGTH = 131_072
MESSAGE = bytes(1_000)
COUNT = 70
"""The number of messages. They do not fit in one term, so the recording contains padding."""
Until = Callable[[str, Callable[[], object]], None]
"""A function that waits for a condition, or raises an error with the name of the step."""


class _Position:
    """A position counter that discards its value."""

    def set(self, value: int) -> None:
        """Discard the value."""


def warm_up(aeron: Aeron, folder: Path, until: Until) -> None:
    """Record and replay a stream in an empty folder, which compiles the kernels. Raises
    StorageError or ClientError if this fails.
    """
    subscription = aeron.add_subscription(CHANNEL, STREAM_ID)
    publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID)
    until("an image to record", lambda: subscription.images)
    image = subscription.images[0]
    recording = _make_descriptor(image)
    writer = SegmentWriter(folder, recording, 0, WriteOptions(checksum=CRC_32))
    session = RecordingSession(image, writer, _Position())
    for _ in range(COUNT):
        until("a message to record", lambda: publication.offer(MESSAGE) > 0 or session.do_work())
    end = publication.position
    until("the recording", lambda: session.do_work() == 0 and session.position >= end)
    session.stop()
    _check_files(folder, recording, end)
    _replay(aeron, folder, recording, end, until)


def _make_descriptor(image: Image) -> RecordingDescriptor:
    return RecordingDescriptor(
        control_session_id=0, correlation_id=0, recording_id=0, start_timestamp=0,
        stop_timestamp=-1, start_position=0, stop_position=-1,
        initial_term_id=image.initial_term_id, segment_file_length=SEGMENT_LENGTH,
        term_buffer_length=image.term_length, mtu_length=image.mtu_length,
        session_id=image.session_id, stream_id=STREAM_ID, stripped_channel=CHANNEL,
        original_channel=CHANNEL, source_identity=image.source_identity,
    )  # fmt: skip


def _check_files(folder: Path, recording: RecordingDescriptor, end: int) -> None:
    """Recover the stop position and check the frames, as a restarted archive and its tools
    would.
    """
    found = recovered_stop(folder, recording, CRC_32)
    if found.position != end:
        raise StorageError(f"{folder}: the data ends at position {found.position}, expected {end}")
    for segment in segments_of(folder, 0):
        with SegmentReader(segment.path, segment.base) as reader:
            data_end, _ = reader.end_of_data(0, reader.length)
            if reader.fault(recording, 0, data_end, CRC_32) is not None:
                raise StorageError(
                    f"{segment.path}: the frames read back differ from the frames that were written"
                )


def _replay(
    aeron: Aeron, folder: Path, recording: RecordingDescriptor, end: int, until: Until
) -> None:
    reader = RecordingReader(folder, recording, 0, checksum=CRC_32)
    if not reader.is_at_frame:
        raise StorageError(f"{folder}: no frame at the start position")
    subscription = aeron.add_subscription(CHANNEL, REPLAY_STREAM_ID)
    channel = f"aeron:ipc?{publication_parameters(recording, 0)}"
    publication = aeron.add_exclusive_publication(channel, REPLAY_STREAM_ID)
    until("a subscriber of the replay", lambda: publication.is_connected and subscription.images)
    session = ReplaySession(reader, publication, end, lambda: end)

    def is_replayed() -> bool:
        session.do_work()
        subscription.poll(lambda payload, header: None)
        return session.is_done

    until("the replay", is_replayed)
    if session.failure:
        raise StorageError(session.failure)
