"""Recordings through a driver and client, over IPC and of a UDP receiver's image."""

import pytest

from tests.unit.driver.archive.recording.own_image import messages
from tests.unit.driver.archive.storage import own_recording as own
from tests.unit.driver.client.invoked_client import world
from tests.unit.driver.media_driver.invoked_driver import CHANNEL
from windtunnel.driver.archive.recording import recording_position
from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.driver.archive.storage.segment_file import segments_of
from windtunnel.driver.archive.tool import frame_dump
from windtunnel.driver.archive.tool.program import main

STREAM_ID = 1001
SEGMENT = 131_072
COUNT = 300


def _described(image, subscription):
    return own.descriptor(
        start=image.join_position, initial_term_id=image.initial_term_id,
        segment_file_length=SEGMENT, term_buffer_length=image.term_length,
        mtu_length=image.mtu_length, session_id=image.session_id, stream_id=STREAM_ID,
        stripped_channel=subscription.channel, original_channel=subscription.channel,
        source_identity=image.source_identity,
    )  # fmt: skip


def _offered(session, publication, content):
    """Offer a message and record. Returns whether the message was accepted."""
    is_taken = publication.offer(content) > 0
    session.do_work()
    return is_taken


@pytest.mark.parametrize("channel", ["aeron:ipc?term-length=64k", CHANNEL])
def test_a_recording_equals_what_was_published(tmp_path, monkeypatch, capsys, channel):
    folder = tmp_path / "archive"
    folder.mkdir()
    sent = messages(COUNT)
    with world(tmp_path, monkeypatch) as made, CatalogWriter.create(folder) as catalog:
        archive, publisher = made.connect(), made.connect()
        subscription = archive.add_subscription(channel, STREAM_ID)
        publication = publisher.add_exclusive_publication(channel, STREAM_ID)
        (image,) = made.until(lambda: subscription.images)
        recording = _described(image, subscription)
        recording_id = catalog.add(recording)
        counter = archive.add_counter(
            recording_position.TYPE_ID,
            recording_position.key(recording, 7),
            recording_position.label(recording, 7),
        )
        session = RecordingSession(
            image, SegmentWriter(folder, recording, image.join_position), counter
        )
        for each in sent:
            made.until(lambda each=each: _offered(session, publication, each))
        end = publication.position
        made.until(lambda: not session.do_work() and session.position == end)
        assert counter.get() == end
        assert counter.label.startswith(f"rec-pos: {recording_id} {image.session_id} {STREAM_ID} ")
        publication.close()
        made.until(lambda: session.do_work() == 0 and session.is_done)
        catalog.record_stop(recording_id, session.position, 5)
        stopped = catalog.descriptor(recording_id)
    assert stopped.stop_position == end > 4 * SEGMENT
    found = frame_dump.frames(stopped, segments_of(folder, recording_id))
    assert b"".join(payload for _, payload in found) == b"".join(sent)
    assert main(["verify", "-a", "--dir", str(folder)]) == 0
    assert capsys.readouterr().out == "recording 0: OK\n"
