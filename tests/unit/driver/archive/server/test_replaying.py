"""Recordings are replayed. Cases P1 to P24."""

import struct

import pytest

from tests.unit.driver.archive.server.own_archive import SEGMENT, Err, Ok, own_archive
from tests.unit.driver.archive.server.own_stream import (
    FRAME,
    IPC,
    STREAM,
    Reader,
    message,
    replay_values,
)
from windtunnel.driver.archive.protocol.codes import ControlResponseCode
from windtunnel.driver.archive.protocol.requests import (
    BoundedReplayRequest,
    DetachSegmentsRequest,
    PurgeRecordingRequest,
    RecordingPositionRequest,
    ReplayRequest,
    ReplayTokenRequest,
    StopAllReplaysRequest,
    StopReplayRequest,
    TruncateRecordingRequest,
)
from windtunnel.driver.archive.recording.image_recording import ImageRecording
from windtunnel.driver.client.errors import RegistrationError

SECOND = 1_000_000_000
UDP = "aeron:udp?endpoint=10.0.0.1:20500"


def test_a_boolean_parameter_of_a_replay_channel_is_case_insensitive(env, client):
    client.stopped_recording(10)
    reader = Reader(client)
    response = client.request_replay(0, replay_channel=IPC + "|eos=TRUE|sparse=False")
    assert response == Ok(response.relevant_id)
    assert len(reader.until_end()) == 10


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("channel", [IPC, UDP])
def test_a_stopped_recording_is_replayed_to_its_end(env, client, channel):
    end = client.stopped_recording(200).end
    reader = Reader(client, channel)
    response = client.request_replay(0, replay_channel=channel)
    assert response == Ok(response.relevant_id)
    (image,) = env.until(lambda: reader.subscription.images)
    assert image.session_id & 0xFFFFFFFF == response.relevant_id & 0xFFFFFFFF
    assert reader.until_end() == [message(number) for number in range(200)]
    assert reader.positions[-1] == end
    env.until(lambda: not reader.subscription.images, turns=20_000)


def test_a_missing_segment_file_ends_only_its_replay(env, client):
    client.stopped_recording(300)
    (env.directory / f"0-{SEGMENT}.rec").unlink()
    reader = Reader(client)
    response = client.request_replay(0)
    reader.until(lambda: len(client.summaries(response.correlation_id)) == 2)
    failure = client.responses_to(response.correlation_id)[-1]
    assert failure == Err(0)
    assert f"0-{SEGMENT}.rec: No such file" in failure.error_message
    env.until(lambda: not reader.subscription.images)
    assert client.request(StopReplayRequest, replay_session_id=1) == Ok()


def test_a_replay_follows_a_live_recording_until_it_stops(env, client):
    publication = client.live_recording(10).publication
    reader = Reader(client)
    client.request_replay(0)
    reader.until(lambda: len(reader.seen) == 10)
    client.publish(publication, 10, first=10)
    reader.until(lambda: len(reader.seen) == 20)
    (image,) = reader.subscription.images
    assert not image.is_end_of_stream
    publication.close()
    assert len(reader.until_end()) == 20


def test_a_replay_follows_a_recording_that_has_no_counter_yet(env, client, monkeypatch):
    """The recording is in the catalog, but a slow driver has not added its position counter."""
    waiting = []
    complete = ImageRecording.try_complete

    def try_complete(recording, beginning):
        waiting.append(beginning)
        return None

    monkeypatch.setattr(ImageRecording, "try_complete", try_complete)
    client.start(IPC, STREAM)
    publication = client.aeron.add_exclusive_publication(IPC, STREAM)
    env.until(lambda: waiting)
    assert client.request(RecordingPositionRequest, recording_id=0) == Ok(0)
    reader = Reader(client)
    assert client.request_replay(0).error_message == ""
    monkeypatch.setattr(ImageRecording, "try_complete", complete)
    client.publish(publication, 10)
    reader.until(lambda: len(reader.seen) == 10)
    publication.close()
    assert len(reader.until_end()) == 10


def test_a_replay_of_a_recording_that_fails_to_start_ends(env, client, monkeypatch):
    waiting = []

    def try_complete(recording, beginning):
        waiting.append(beginning)
        return None

    def refuse(recording, beginning):
        raise RegistrationError(3, "no counter")

    monkeypatch.setattr(ImageRecording, "try_complete", try_complete)
    client.start(IPC, STREAM)
    client.aeron.add_exclusive_publication(IPC, STREAM)
    env.until(lambda: waiting)
    reader = Reader(client)
    assert client.request_replay(0).error_message == ""
    monkeypatch.setattr(ImageRecording, "try_complete", refuse)
    assert reader.until_end() == []


def test_a_live_recording_is_replayed_up_to_its_current_position(env, client):
    publication = client.live_recording(10).publication
    reader = Reader(client)
    client.request_replay(0, length=-2)
    client.publish(publication, 10, first=10)
    assert len(reader.until_end()) == 10


def test_an_empty_recording_has_nothing_to_replay(env, client):
    client.stopped_recording(0)
    assert client.request_replay(0, length=-2) == Err(15)
    reader = Reader(client)
    assert client.request_replay(0).error_message == ""
    assert reader.until_end() == []


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"position": 33}, 0),
        ({"position": 64}, 16),
        ({"position": -32}, 16),
        ({"position": 10 * FRAME}, 16),
        ({"position": 11 * FRAME}, 16),
        ({"length": -3}, 0),
        ({"file_io_max_length": 1024}, 0),
        ({"replay_channel": IPC + "|linger=5s"}, 0),
        ({"replay_channel": IPC + "|session-id=rubbish"}, 0),
        ({"replay_channel": "aeron:pigeon?carrier=1"}, 0),
        ({"replay_channel": "aeron:udp"}, 0),
        ({"recording_id": 1}, 5),
        ({"recording_id": -1}, 5),
    ],
)
def test_an_invalid_replay_request_is_rejected(env, client, values, code):
    client.stopped_recording(10)
    response = client.request_replay(**({"recording_id": 0} | values))
    assert response == Err(code)
    env.run_for(SECOND)
    assert client.summaries(response.correlation_id) == [("ERROR", code)]


def test_a_replay_of_a_live_recording_may_start_at_its_current_position(env, client):
    live = client.live_recording(10)
    assert client.request_replay(0, position=live.end + 32) == Err(16)
    reader = Reader(client)
    assert client.request_replay(0, position=live.end).error_message == ""
    client.publish(live.publication, 1, first=10)
    reader.until(lambda: reader.seen == [message(10)])


def test_concurrent_replays_are_limited(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, max_concurrent_replays=2) as env:
        client = env.connect_client()
        client.stopped_recording(10)
        first = client.request_replay(0)
        client.request_replay(0)
        assert client.request_replay(0) == Err(7)
        client.request(StopReplayRequest, replay_session_id=first.relevant_id)
        env.run_for(100_000_000)
        assert client.request_replay(0).error_message == ""


def test_a_replay_without_a_subscriber_times_out(env, client):
    client.stopped_recording(10)
    response = client.request_replay(0)
    env.run_for(4_500_000_000)
    assert client.summaries(response.correlation_id) == [("OK", response.relevant_id)]
    env.run_for(SECOND)
    assert client.summaries(response.correlation_id)[1:] == [("ERROR", 0)]


def test_a_malformed_replay_channel_gets_no_response(env, client):
    client.stopped_recording(10)
    correlation_id = client.send(ReplayRequest, **replay_values(0, replay_channel="rubbish"))
    env.run_for(SECOND)
    assert client.summaries(correlation_id) == []
    assert any("rubbish" in each for each in env.errors)


@pytest.mark.parametrize(
    ("length", "count"), [(1, 1), (1000, 1), (FRAME, 1), (FRAME + 1, 2), (0, 0)]
)
def test_a_replay_length_is_rounded_up_to_whole_frames(env, client, length, count):
    client.stopped_recording(10)
    reader = Reader(client)
    client.request_replay(0, length=length)
    assert len(reader.until_end()) == count


def test_replays_are_stopped_singly_or_all_at_once(env, client):
    client.live_recording(10)
    readers = [Reader(client, stream=stream) for stream in (5, 6)]
    first = client.request_replay(0)
    client.request_replay(0, replay_stream_id=6)
    for reader in readers:
        reader.until(lambda reader=reader: len(reader.seen) == 10)
    assert client.request(StopReplayRequest, replay_session_id=first.relevant_id) == Ok(0)
    assert client.request(StopReplayRequest, replay_session_id=99) == Ok(0)
    env.until(lambda: not readers[0].subscription.images)
    assert readers[1].subscription.images
    assert client.request(StopAllReplaysRequest, recording_id=8) == Ok(0)
    env.run_for(SECOND)
    assert readers[1].subscription.images
    assert client.request(StopAllReplaysRequest, recording_id=-1) == Ok(0)
    env.until(lambda: not readers[1].subscription.images)


def test_a_replay_that_has_no_publication_yet_is_not_stopped(env, client):
    """Its client does not know the replay's id yet, and waits for the response to its request."""
    client.stopped_recording(10)
    reader = Reader(client)
    correlation_id = client.send(ReplayRequest, **replay_values(0))
    assert client.request(StopAllReplaysRequest, recording_id=-1) == Ok(0)
    env.until(lambda: client.response_to(correlation_id))
    assert client.response_to(correlation_id).error_message == ""
    assert len(reader.until_end()) == 10


def test_a_truncation_rejects_a_replay_that_has_no_publication_yet(env, client):
    client.stopped_recording(10)
    correlation_id = client.send(ReplayRequest, **replay_values(0))
    assert client.request(TruncateRecordingRequest, recording_id=0, position=0) == Ok(1)
    env.until(lambda: client.response_to(correlation_id))
    assert client.summaries(correlation_id) == [("ERROR", 0)]
    env.until(lambda: ("DELETE", 0, -1) in client.signals())


def test_the_next_request_after_a_stop_finds_no_replay(client):
    client.stopped_recording(10)
    reader = Reader(client)
    first = client.request_replay(0)
    reader.until(lambda: len(reader.seen) == 10)
    assert client.request(StopReplayRequest, replay_session_id=first.relevant_id) == Ok(0)
    assert client.request(PurgeRecordingRequest, recording_id=0) == Ok(1)


def test_a_counter_limits_a_bounded_replay(env, client):
    client.stopped_recording(30)
    counter = client.aeron.add_counter(1_100, b"", "bound")
    counter.set(10 * FRAME)
    reader = Reader(client)
    values = {"kind": BoundedReplayRequest, "limit_counter_id": counter.counter_id}
    assert client.request_replay(0, position=11 * FRAME, **values) == Err(16)
    assert client.request_replay(0, **values).error_message == ""
    reader.until(lambda: len(reader.seen) == 10)
    env.run_for(SECOND)
    reader.poll()
    assert len(reader.seen) == 10
    counter.set(20 * FRAME)
    reader.until(lambda: len(reader.seen) == 20)
    counter.close()
    assert len(reader.until_end()) == 20
    values["limit_counter_id"] = 1 << 20
    assert client.request_replay(0, **values) == Err(0)
    values["limit_counter_id"] = -5
    assert client.request_replay(0, **values) == Err(0)
    assert client.request_replay(7, **values) == Err(0)


def test_a_wrong_replay_token_gets_no_response(env, client):
    client.stopped_recording(10)
    token = client.request(ReplayTokenRequest, recording_id=0).relevant_id
    assert token != -1
    channel = "aeron:udp?control-mode=response|control=10.0.0.1:20600"
    for values in ({"replay_token": token + 1}, {"replay_token": token, "recording_id": 1}):
        given = replay_values(0, replay_channel=channel) | values
        correlation_id = client.send(ReplayRequest, **given)
        env.run_for(100_000_000)
        assert client.summaries(correlation_id) == []


def test_a_damaged_frame_ends_a_replay_before_its_block(tmp_path, monkeypatch):
    checksum = "CRC-32C"
    with own_archive(
        tmp_path, monkeypatch, record_checksum=checksum, replay_checksum=checksum
    ) as env:
        client = env.connect_client()
        client.stopped_recording(10)
        with open(env.directory / "0-0.rec", "r+b") as file:
            file.seek(5 * FRAME + 100)
            file.write(b"\xff")
        reader = Reader(client)
        response = client.request_replay(0)
        reader.until(lambda: len(client.summaries(response.correlation_id)) == 2)
        reader.until(lambda: not reader.subscription.images)
        assert reader.seen == []
        assert client.summaries(response.correlation_id) == [
            ("OK", response.relevant_id),
            ("ERROR", 0),
        ]
        assert "checksum" in client.responses_to(response.correlation_id)[1].error_message
        before = Reader(client, stream=6)
        client.request_replay(0, length=5 * FRAME, replay_stream_id=6)
        assert len(before.until_end()) == 5


def test_a_replay_without_its_first_segment_file_gets_only_an_error(env, client):
    client.stopped_recording(10)
    (env.directory / "0-0.rec").unlink()
    correlation_id = client.send(ReplayRequest, **replay_values(0))
    env.run_for(4 * SECOND)
    assert client.summaries(correlation_id) == []
    env.run_for(2 * SECOND)
    assert client.summaries(correlation_id) == [("ERROR", 0)]


def test_a_request_of_an_older_protocol_version_is_decoded(env, client):
    client.stopped_recording(10)
    channel = IPC.encode()
    body = struct.pack("<5qi", client.session_id, 4242, 0, -1, -1, 5)
    client.post(
        struct.pack("<4H", 44, 6, 101, 6) + body + struct.pack("<I", len(channel)) + channel
    )
    response = env.until(lambda: client.response_to(4242))
    assert response.code == ControlResponseCode.OK


def test_segment_files_in_use_by_a_replay_are_not_detached(env, client):
    client.stopped_recording(300)
    Reader(client)
    client.request_replay(0, length=FRAME * 200)
    env.run_for(100_000_000)
    wanted = {"recording_id": 0, "new_start_position": SEGMENT}
    assert client.request(DetachSegmentsRequest, **wanted) == Err(0)
