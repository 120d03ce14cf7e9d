"""Recording events, counters, the error log, and recordings of the real archive."""

import pytest

from tests.golden import archive_files
from tests.golden.reader import message as golden_message
from tests.unit.driver.archive.server.own_archive import CONTROL_STREAM, LOCAL, Ok, own_archive
from tests.unit.driver.archive.server.own_stream import (
    FRAME,
    IPC,
    STREAM,
    Reader,
    continuing,
    message,
    replay_values,
)
from windtunnel.driver.archive.client import recording_counters
from windtunnel.driver.archive.protocol.codec import decode
from windtunnel.driver.archive.protocol.codes import BooleanType, SourceLocation
from windtunnel.driver.archive.protocol.replication import ReplicateRequest2
from windtunnel.driver.archive.protocol.requests import (
    ExtendRecordingRequest2,
    ListRecordingsRequest,
    ReplayRequest,
    ReplayTokenRequest,
    StopRecordingSubscriptionRequest,
)
from windtunnel.driver.archive.protocol.responses import (
    RecordingDescriptor,
    RecordingProgress,
    RecordingStarted,
    RecordingStopped,
)
from windtunnel.driver.archive.storage.catalog import Catalog

EVENTS_STREAM = 30
UDP = "aeron:udp?endpoint=10.0.0.1:20121"
SECOND = 1_000_000_000


def test_recording_events_are_published(tmp_path, monkeypatch):
    channel = "aeron:ipc?term-length=64k|alias=events"
    with own_archive(
        tmp_path, monkeypatch, recording_events_enabled=True, recording_events_channel=channel
    ) as env:
        client = env.connect_client()
        received = []
        events = client.aeron.add_subscription(channel, EVENTS_STREAM)
        live = client.live_recording()
        ends = []
        for first in (0, 10, 20):
            ends.append(client.publish(live.publication, 10, first))
            client.recorded(0, ends[-1])
            env.run_for(SECOND)
        end = ends[-1]
        client.stop(live, end)
        events.poll(lambda payload, header: received.append(decode(payload)), 1_000)
        assert received[0] == RecordingStarted(
            recording_id=0, start_position=0, session_id=live.publication.session_id,
            stream_id=STREAM, channel=IPC, source_identity="aeron:ipc",
        )  # fmt: skip
        assert received[-1] == RecordingStopped(recording_id=0, start_position=0, stop_position=end)
        progress = received[1:-1]
        assert all(isinstance(each, RecordingProgress) for each in progress)
        assert [each.position for each in progress] == ends


def test_the_started_event_of_an_extended_recording_has_its_new_source(tmp_path, monkeypatch):
    with own_archive(
        tmp_path, monkeypatch, recording_events_enabled=True, recording_events_channel=LOCAL
    ) as env:
        client = env.connect_client()
        events = client.aeron.add_subscription(LOCAL, EVENTS_STREAM)
        first = client.stopped_recording()
        with Catalog(env.directory) as catalog:
            before = catalog.descriptor(0)
        wanted = UDP + "|ssc=true"
        correlation_id = client.request(
            ExtendRecordingRequest2, recording_id=0, stream_id=STREAM, channel=wanted,
            source_location=SourceLocation.REMOTE, auto_stop=BooleanType.FALSE,
        )  # fmt: skip
        place = continuing(first.end, before.initial_term_id).removeprefix("aeron:ipc?")
        publication = client.aeron.add_exclusive_publication(f"{UDP}|{place}", STREAM)
        env.until(
            lambda: ("EXTEND", 0, first.end) in client.summaries(correlation_id.correlation_id)
        )
        (counter,) = [each for each in client.aeron.counters if each.type_id == 100]
        found = recording_counters.read(counter)
        assert found.session_id == publication.session_id
        assert found.source_identity.startswith("10.0.0.1:")
        assert counter.label.endswith(f" {STREAM} {UDP} - archiveId=77")
        received = []
        env.run_for(SECOND)
        events.poll(lambda payload, header: received.append(decode(payload)), 1_000)
        started = [each for each in received if isinstance(each, RecordingStarted)]
        assert started[0].channel == IPC
        assert started[1] == RecordingStarted(
            recording_id=0, start_position=first.end, session_id=publication.session_id,
            stream_id=STREAM, channel=wanted, source_identity=found.source_identity,
        )  # fmt: skip
        with Catalog(env.directory) as catalog:
            after = catalog.descriptor(0)
        for kept in ("stripped_channel", "original_channel", "source_identity"):
            assert getattr(after, kept) == getattr(before, kept)


def test_counters_follow_recordings_and_replays(env, client):

    def value(type_id):
        (found,) = [each for each in client.aeron.counters if each.type_id == type_id]
        assert found.label.endswith(" - archiveId=77")
        assert found.key[:8] == (77).to_bytes(8, "little")
        return found.value

    assert (value(102), value(111), value(112)) == (1, 0, 0)
    response = client.live_recording(70).response
    assert value(111) == 1
    # 62 messages fit into the first term; only the header of the padding after them is written.
    assert value(106) == 70 * FRAME + 32
    reader = Reader(client)
    client.request_replay(0)
    reader.until(lambda: len(reader.seen) == 70)
    assert value(112) == 1
    assert value(109) >= 70 * FRAME
    client.request(StopRecordingSubscriptionRequest, subscription_id=response.relevant_id)
    env.run_for(SECOND)
    assert (value(111), value(112), value(101)) == (0, 0, 0)
    labels = {each.type_id: each.label for each in client.aeron.counters}
    assert labels[104].startswith(
        "archive-conductor work cycle time exceeded count: threshold=100ms INVOKER"
    )


def test_a_replay_with_a_token_uses_a_response_channel(env, client):
    client.stopped_recording(20)
    channel = "aeron:ipc?control-mode=response"
    reader = Reader(client, channel)
    token = client.request(ReplayTokenRequest, recording_id=0).relevant_id
    request = client.aeron.add_exclusive_publication(
        f"{LOCAL}|response-correlation-id={reader.subscription.registration_id}",
        CONTROL_STREAM,
    )
    env.until(lambda: request.is_connected)
    kept, client.requests = client.requests, request
    session, client.session_id = client.session_id, -1
    given = replay_values(0, replay_channel=channel, replay_token=token)
    correlation_id = client.send(ReplayRequest, **given)
    client.requests, client.session_id = kept, session
    response = env.until(lambda: client.response_to(correlation_id))
    assert response == Ok(response.relevant_id)
    assert reader.until_end() == [message(number) for number in range(20)]


@pytest.mark.parametrize(("recording_id", "count", "length_max"), [(0, 250, 2000), (1, 300, 3000)])
def test_recordings_of_the_real_archive_are_listed_and_replayed(
    tmp_path, monkeypatch, recording_id, count, length_max
):
    folder = tmp_path / "archive"
    folder.mkdir()
    archive_files.unpack(folder)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        correlation_id = client.send(ListRecordingsRequest, from_recording_id=0, record_count=3)
        env.until(lambda: len(client.summaries(correlation_id)) == 3)
        found = [each for each in client.received if isinstance(each, RecordingDescriptor)]
        assert [each.recording_id for each in found] == [0, 1, 2]
        reader = Reader(client)
        client.request_replay(recording_id)
        expected = [golden_message(each, length_max).tobytes() for each in range(count)]
        assert reader.until_end() == expected


def test_failed_requests_are_logged(env, client):
    client.request(
        ReplicateRequest2, src_recording_id=0, dst_recording_id=-1, stop_position=-1,
        channel_tag_id=-1, subscription_tag_id=-1, src_control_stream_id=1,
        src_control_channel="rubbish", live_destination="", replication_channel="",
        encoded_credentials=b"", src_response_channel="",
    )  # fmt: skip
    assert env.errors == [
        "(1) WARN - ReplicateRequest2: channel 'rubbish': expected it to start with 'aeron:'"
    ]
    (errors,) = [each for each in client.aeron.counters if each.type_id == 101]
    assert errors.value == 1
