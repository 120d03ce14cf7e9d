"""Replays. Cases P1 to P24."""

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


def test_a_boolean_of_the_channel_may_be_written_in_any_case(own, talker):
    talker.stopped_recording(10)
    reader = Reader(talker)
    answer = talker.ask_replay(0, replay_channel=IPC + "|eos=TRUE|sparse=False")
    assert answer == Ok(answer.relevant_id)
    assert len(reader.until_end()) == 10


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("channel", [IPC, UDP])
def test_a_stopped_recording_is_replayed_to_its_end(own, talker, channel):
    end = talker.stopped_recording(200).end
    reader = Reader(talker, channel)
    answer = talker.ask_replay(0, replay_channel=channel)
    assert answer == Ok(answer.relevant_id)
    (image,) = own.until(lambda: reader.subscription.images)
    assert image.session_id & 0xFFFFFFFF == answer.relevant_id & 0xFFFFFFFF
    assert reader.until_end() == [message(number) for number in range(200)]
    assert reader.positions[-1] == end
    own.until(lambda: not reader.subscription.images, turns=20_000)


def test_a_replay_whose_next_file_is_missing_ends_alone(own, talker):
    talker.stopped_recording(300)
    (own.directory / f"0-{SEGMENT}.rec").unlink()
    reader = Reader(talker)
    answer = talker.ask_replay(0)
    reader.until(lambda: len(talker.about(answer.correlation_id)) == 2)
    told = talker.answers(answer.correlation_id)[-1]
    assert told == Err(0)
    assert f"0-{SEGMENT}.rec: No such file" in told.error_message
    own.until(lambda: not reader.subscription.images)
    assert talker.ask(StopReplayRequest, replay_session_id=1) == Ok()


def test_a_live_recording_is_followed_until_it_stops(own, talker):
    publication = talker.live_recording(10).publication
    reader = Reader(talker)
    talker.ask_replay(0)
    reader.until(lambda: len(reader.seen) == 10)
    talker.publish(publication, 10, first=10)
    reader.until(lambda: len(reader.seen) == 20)
    (image,) = reader.subscription.images
    assert not image.is_end_of_stream
    publication.close()
    assert len(reader.until_end()) == 20


def test_a_recording_whose_counter_is_awaited_is_followed(own, talker, monkeypatch):
    """It is in the catalog already, but a slow driver has not added its position counter."""
    waiting = []
    complete = ImageRecording.try_complete

    def try_complete(recording, beginning):
        waiting.append(beginning)
        return None

    monkeypatch.setattr(ImageRecording, "try_complete", try_complete)
    talker.start(IPC, STREAM)
    publication = talker.client.add_exclusive_publication(IPC, STREAM)
    own.until(lambda: waiting)
    assert talker.ask(RecordingPositionRequest, recording_id=0) == Ok(0)
    reader = Reader(talker)
    assert talker.ask_replay(0).error_message == ""
    monkeypatch.setattr(ImageRecording, "try_complete", complete)
    talker.publish(publication, 10)
    reader.until(lambda: len(reader.seen) == 10)
    publication.close()
    assert len(reader.until_end()) == 10


def test_a_replay_of_a_recording_that_does_not_begin_ends(own, talker, monkeypatch):
    waiting = []

    def try_complete(recording, beginning):
        waiting.append(beginning)
        return None

    def refuse(recording, beginning):
        raise RegistrationError(3, "no counter")

    monkeypatch.setattr(ImageRecording, "try_complete", try_complete)
    talker.start(IPC, STREAM)
    talker.client.add_exclusive_publication(IPC, STREAM)
    own.until(lambda: waiting)
    reader = Reader(talker)
    assert talker.ask_replay(0).error_message == ""
    monkeypatch.setattr(ImageRecording, "try_complete", refuse)
    assert reader.until_end() == []


def test_a_live_recording_is_replayed_up_to_now(own, talker):
    publication = talker.live_recording(10).publication
    reader = Reader(talker)
    talker.ask_replay(0, length=-2)
    talker.publish(publication, 10, first=10)
    assert len(reader.until_end()) == 10


def test_an_empty_recording_has_nothing_to_replay(own, talker):
    talker.stopped_recording(0)
    assert talker.ask_replay(0, length=-2) == Err(15)
    reader = Reader(talker)
    assert talker.ask_replay(0).error_message == ""
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
def test_what_cannot_be_replayed_is_refused(own, talker, values, code):
    talker.stopped_recording(10)
    answer = talker.ask_replay(**({"recording_id": 0} | values))
    assert answer == Err(code)
    own.run_for(SECOND)
    assert talker.about(answer.correlation_id) == [("ERROR", code)]


def test_positions_of_a_live_recording(own, talker):
    live = talker.live_recording(10)
    assert talker.ask_replay(0, position=live.end + 32) == Err(16)
    reader = Reader(talker)
    assert talker.ask_replay(0, position=live.end).error_message == ""
    talker.publish(live.publication, 1, first=10)
    reader.until(lambda: reader.seen == [message(10)])


def test_replays_are_limited(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, max_concurrent_replays=2) as own:
        talker = own.talk()
        talker.stopped_recording(10)
        first = talker.ask_replay(0)
        talker.ask_replay(0)
        assert talker.ask_replay(0) == Err(7)
        talker.ask(StopReplayRequest, replay_session_id=first.relevant_id)
        own.run_for(100_000_000)
        assert talker.ask_replay(0).error_message == ""


def test_a_replay_that_nobody_reads_fails_after_a_while(own, talker):
    talker.stopped_recording(10)
    answer = talker.ask_replay(0)
    own.run_for(4_500_000_000)
    assert talker.about(answer.correlation_id) == [("OK", answer.relevant_id)]
    own.run_for(SECOND)
    assert talker.about(answer.correlation_id)[1:] == [("ERROR", 0)]


def test_a_malformed_channel_is_not_answered(own, talker):
    talker.stopped_recording(10)
    asked = talker.send(ReplayRequest, **replay_values(0, replay_channel="rubbish"))
    own.run_for(SECOND)
    assert talker.about(asked) == []
    assert any("rubbish" in each for each in own.errors)


@pytest.mark.parametrize(
    ("length", "count"), [(1, 1), (1000, 1), (FRAME, 1), (FRAME + 1, 2), (0, 0)]
)
def test_whole_frames_are_replayed_up_to_a_length(own, talker, length, count):
    talker.stopped_recording(10)
    reader = Reader(talker)
    talker.ask_replay(0, length=length)
    assert len(reader.until_end()) == count


def test_replays_are_stopped(own, talker):
    talker.live_recording(10)
    readers = [Reader(talker, stream=stream) for stream in (5, 6)]
    first = talker.ask_replay(0)
    talker.ask_replay(0, replay_stream_id=6)
    for reader in readers:
        reader.until(lambda reader=reader: len(reader.seen) == 10)
    assert talker.ask(StopReplayRequest, replay_session_id=first.relevant_id) == Ok(0)
    assert talker.ask(StopReplayRequest, replay_session_id=99) == Ok(0)
    own.until(lambda: not readers[0].subscription.images)
    assert readers[1].subscription.images
    assert talker.ask(StopAllReplaysRequest, recording_id=8) == Ok(0)
    own.run_for(SECOND)
    assert readers[1].subscription.images
    assert talker.ask(StopAllReplaysRequest, recording_id=-1) == Ok(0)
    own.until(lambda: not readers[1].subscription.images)


def test_a_replay_that_has_no_publication_yet_is_not_stopped(own, talker):
    """Its client does not know its id yet, and waits for the response to its request."""
    talker.stopped_recording(10)
    reader = Reader(talker)
    asked = talker.send(ReplayRequest, **replay_values(0))
    assert talker.ask(StopAllReplaysRequest, recording_id=-1) == Ok(0)
    own.until(lambda: talker.answer(asked))
    assert talker.answer(asked).error_message == ""
    assert len(reader.until_end()) == 10


def test_a_truncation_answers_a_replay_that_has_no_publication_yet(own, talker):
    talker.stopped_recording(10)
    asked = talker.send(ReplayRequest, **replay_values(0))
    assert talker.ask(TruncateRecordingRequest, recording_id=0, position=0) == Ok(1)
    own.until(lambda: talker.answer(asked))
    assert talker.about(asked) == [("ERROR", 0)]
    own.until(lambda: ("DELETE", 0, -1) in talker.signals())


def test_the_next_request_after_a_stop_finds_no_replay(talker):
    talker.stopped_recording(10)
    reader = Reader(talker)
    first = talker.ask_replay(0)
    reader.until(lambda: len(reader.seen) == 10)
    assert talker.ask(StopReplayRequest, replay_session_id=first.relevant_id) == Ok(0)
    assert talker.ask(PurgeRecordingRequest, recording_id=0) == Ok(1)


def test_a_counter_bounds_a_replay(own, talker):
    talker.stopped_recording(30)
    counter = talker.client.add_counter(1_100, b"", "bound")
    counter.set(10 * FRAME)
    reader = Reader(talker)
    values = {"kind": BoundedReplayRequest, "limit_counter_id": counter.counter_id}
    assert talker.ask_replay(0, position=11 * FRAME, **values) == Err(16)
    assert talker.ask_replay(0, **values).error_message == ""
    reader.until(lambda: len(reader.seen) == 10)
    own.run_for(SECOND)
    reader.poll()
    assert len(reader.seen) == 10
    counter.set(20 * FRAME)
    reader.until(lambda: len(reader.seen) == 20)
    counter.close()
    assert len(reader.until_end()) == 20
    values["limit_counter_id"] = 1 << 20
    assert talker.ask_replay(0, **values) == Err(0)
    values["limit_counter_id"] = -5
    assert talker.ask_replay(0, **values) == Err(0)
    assert talker.ask_replay(7, **values) == Err(0)


def test_a_wrong_token_is_not_answered(own, talker):
    talker.stopped_recording(10)
    token = talker.ask(ReplayTokenRequest, recording_id=0).relevant_id
    assert token != -1
    channel = "aeron:udp?control-mode=response|control=10.0.0.1:20600"
    for values in ({"replay_token": token + 1}, {"replay_token": token, "recording_id": 1}):
        given = replay_values(0, replay_channel=channel) | values
        asked = talker.send(ReplayRequest, **given)
        own.run_for(100_000_000)
        assert talker.about(asked) == []


def test_a_damaged_frame_ends_a_replay_before_its_batch(tmp_path, monkeypatch):
    checksum = "CRC-32C"
    with own_archive(
        tmp_path, monkeypatch, record_checksum=checksum, replay_checksum=checksum
    ) as own:
        talker = own.talk()
        talker.stopped_recording(10)
        with open(own.directory / "0-0.rec", "r+b") as file:
            file.seek(5 * FRAME + 100)
            file.write(b"\xff")
        reader = Reader(talker)
        answer = talker.ask_replay(0)
        reader.until(lambda: len(talker.about(answer.correlation_id)) == 2)
        reader.until(lambda: not reader.subscription.images)
        assert reader.seen == []
        assert talker.about(answer.correlation_id) == [("OK", answer.relevant_id), ("ERROR", 0)]
        assert "checksum" in talker.answers(answer.correlation_id)[1].error_message
        before = Reader(talker, stream=6)
        talker.ask_replay(0, length=5 * FRAME, replay_stream_id=6)
        assert len(before.until_end()) == 5


def test_a_missing_file_fails_a_replay_without_an_ok(own, talker):
    talker.stopped_recording(10)
    (own.directory / "0-0.rec").unlink()
    asked = talker.send(ReplayRequest, **replay_values(0))
    own.run_for(4 * SECOND)
    assert talker.about(asked) == []
    own.run_for(2 * SECOND)
    assert talker.about(asked) == [("ERROR", 0)]


def test_an_older_clients_request_is_understood(own, talker):
    talker.stopped_recording(10)
    channel = IPC.encode()
    body = struct.pack("<5qi", talker.session_id, 4242, 0, -1, -1, 5)
    talker.post(
        struct.pack("<4H", 44, 6, 101, 6) + body + struct.pack("<I", len(channel)) + channel
    )
    answer = own.until(lambda: talker.answer(4242))
    assert answer.code == ControlResponseCode.OK


def test_files_that_are_replayed_are_not_detached(own, talker):
    talker.stopped_recording(300)
    Reader(talker)
    talker.ask_replay(0, length=FRAME * 200)
    own.run_for(100_000_000)
    wanted = {"recording_id": 0, "new_start_position": SEGMENT}
    assert talker.ask(DetachSegmentsRequest, **wanted) == Err(0)
