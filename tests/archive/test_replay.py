"""Replay: data, ends and rejections. Cases P1 to P25."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import Conversation, shape
from tests.archive.streams import (
    FRAME,
    Extended,
    Reader,
    Recorded,
    Replay,
    new_stream_id,
    positioned,
    replayed,
)
from windtunnel.driver.archive.client import session_id_of
from windtunnel.driver.archive.protocol import codec
from windtunnel.driver.archive.protocol.codes import SCHEMA_ID, ControlResponseCode, ErrorCode
from windtunnel.driver.archive.protocol.requests import (
    BoundedReplayRequest,
    ReplayRequest,
    ReplayTokenRequest,
    StartRecordingRequest,
    StopReplayRequest,
)

REPLAY_ALL_AND_STOP = -2
COUNTERS_BEYOND = 5_000
"""The id of a counter that no test allocates."""


@pytest.fixture
def stopped(talk):
    """A recording of 150 messages: two segments and part of a third."""
    recorded = Recorded(talk).send(150)
    recorded.stop()
    return recorded


@pytest.fixture
def live(talk):
    """An active recording of ten messages."""
    recorded = Recorded(talk).send(10)
    yield recorded
    if not recorded.publication.is_closed:
        recorded.stop()


def refused(talk, recording_id, **fields):
    """Return the error code of a rejected replay, and all messages with its correlation id."""
    answer = talk.answer(Replay(talk, recording_id, **fields).request)
    assert answer.code == ControlResponseCode.ERROR, answer
    return answer.relevant_id


def test_p1_everything_that_was_recorded(talk, stopped):
    reader = Replay(talk, stopped.recording_id).read()
    assert reader.until_end() == stopped.sent
    assert reader.image.is_end_of_stream
    assert reader.image.position == stopped.stop_position
    reader.close()


def test_p2_a_live_recording_is_followed_to_its_end(talk, live):
    reader = Replay(talk, live.recording_id).read()
    reader.until_count(10)
    live.send(30)
    reader.until_count(40)
    assert not reader.poll()
    live.stop()
    assert reader.until_end() == live.sent
    assert reader.image.is_end_of_stream
    reader.close()


def test_p3_all_that_there_is_now(talk, live):
    replay = Replay(talk, live.recording_id, length=REPLAY_ALL_AND_STOP)
    reader = replay.read()
    live.send(5)
    assert reader.until_end() == live.sent[:10]
    reader.close()


def test_p4_all_of_nothing(talk):
    recorded = Recorded(talk)
    recorded.stop()
    replay = Replay(talk, recorded.recording_id, length=REPLAY_ALL_AND_STOP)
    answer = talk.answer(replay.request)
    assert (answer.code, answer.relevant_id) == (
        ControlResponseCode.ERROR, ErrorCode.EMPTY_RECORDING,
    )  # fmt: skip


def test_p5_a_position_that_is_not_aligned(talk, stopped):
    assert refused(talk, stopped.recording_id, position=FRAME + 1) == ErrorCode.GENERIC


def test_p6_a_position_within_a_frame(talk, stopped):
    replay = Replay(talk, stopped.recording_id, position=FRAME + 32)
    assert talk.answer(replay.request).relevant_id == ErrorCode.INVALID_POSITION
    assert shape(talk.heard(replay.request)) == ["INVALID_POSITION"]


def test_p7_a_position_outside(talk, stopped, live):
    beyond = refused(talk, stopped.recording_id, position=stopped.stop_position)
    assert beyond == ErrorCode.INVALID_POSITION
    ahead = refused(talk, live.recording_id, position=11 * FRAME)
    assert ahead == ErrorCode.INVALID_POSITION
    late = Recorded(talk, positioned(4_096)).send(1)
    before = refused(talk, late.recording_id, position=4_064)
    assert before == ErrorCode.INVALID_POSITION
    late.stop()


def test_p8_from_where_a_live_recording_is(talk, live):
    reader = Replay(talk, live.recording_id, position=10 * FRAME).read()
    live.send(3)
    assert reader.until_count(3) == live.sent[10:]
    reader.close()


def test_p9_an_unknown_recording(talk):
    assert refused(talk, 1_000_003) == ErrorCode.UNKNOWN_RECORDING


def test_p10_there_is_a_limit_to_replays(own_archive):
    limited = own_archive({"aeron.archive.max.concurrent.replays": 2}).start()
    talk = Conversation(limited)
    recorded = Recorded(talk).send(2)
    readers = [Replay(talk, recorded.recording_id).read() for _ in range(2)]
    for each in readers:
        each.until_count(2)
    assert refused(talk, recorded.recording_id) == ErrorCode.MAX_REPLAYS
    for each in readers:
        each.close()


def test_p11_a_block_shorter_than_a_datagram(talk, stopped):
    assert refused(talk, stopped.recording_id, file_io_max_length=1_024) == ErrorCode.GENERIC


@pytest.mark.full
def test_p12_nobody_listens(impatient):
    talk = Conversation(impatient)
    recorded = Recorded(talk).send(3)
    replay = Replay(talk, recorded.recording_id)
    assert talk.answer(replay.request).code == ControlResponseCode.OK
    assert talk.answer(replay.request, 1).relevant_id == ErrorCode.GENERIC
    assert shape(talk.heard(replay.request)) == ["OK", "GENERIC"]
    talk.close()


def test_p13_a_linger_with_a_unit(talk, stopped):
    channel = {"replay_channel": "aeron:ipc?linger=5s"}
    assert refused(talk, stopped.recording_id, **channel) == ErrorCode.GENERIC
    channel = {"replay_channel": "aeron:ipc?linger=1000000000"}
    assert replayed(talk, stopped.recording_id, **channel) == stopped.sent


@pytest.mark.parametrize("channel", ["ipc", "aeron:ipc?=", "aeron:udp?endpoint|mtu=1408"])
def test_p14_a_channel_that_cannot_be_read(talk, stopped, channel):
    replay = Replay(talk, stopped.recording_id, replay_channel=channel)
    assert talk.nothing_came_of(replay.request)


def test_p14_a_channel_of_an_unknown_medium(talk, stopped):
    """Aeron's grammar accepts any medium; that it is not supported is reported."""
    channel = {"replay_channel": "aeron:pigeon?carrier=1"}
    assert refused(talk, stopped.recording_id, **channel) == ErrorCode.GENERIC


def test_p15_the_frame_that_crosses_the_limit_is_sent(talk, stopped):
    reader = Replay(talk, stopped.recording_id, position=0, length=1_000).read()
    assert reader.until_end() == stopped.sent[:1]
    assert reader.image.position == FRAME
    reader.close()


def test_p16_the_image_has_the_session_of_the_replay(talk, stopped):
    replay = Replay(talk, stopped.recording_id)
    everybody = Reader(talk.aeron, "aeron:ipc", replay.stream_id)
    everybody.until_end()
    replay_session_id = talk.answer(replay.request).relevant_id
    assert everybody.image.session_id == session_id_of(replay_session_id)
    assert replay_session_id >> 32 > 0
    everybody.close()


def test_p17_stopping_a_replay_that_is_there_or_not(talk, live):
    replay = Replay(talk, live.recording_id)
    reader = replay.read()
    reader.until_count(10)
    assert talk.ok(StopReplayRequest, replay_session_id=replay.session_id) == 0
    until(lambda: reader.poll() and reader.image.is_closed, "the end of the replay")
    assert reader.image.is_publication_revoked
    assert talk.ok(StopReplayRequest, replay_session_id=replay.session_id) == 0
    reader.close()


def bounded(talk, recorded, counter_id, **fields):
    """Return a bounded replay and its reader."""
    stream_id = new_stream_id()
    request = talk.send(
        BoundedReplayRequest,
        **{
            "recording_id": recorded.recording_id, "position": 0, "length": 2**63 - 1,
            "limit_counter_id": counter_id, "replay_stream_id": stream_id,
            "replay_channel": "aeron:ipc",
        } | fields,
    )  # fmt: skip
    return request, stream_id


def test_p18_a_counter_bounds_a_replay(talk, stopped):
    with talk.aeron.add_counter(1_101, b"", "bound") as counter:
        counter.set(10 * FRAME)
        request, stream_id = bounded(talk, stopped, counter.counter_id)
        reader = Reader(talk.aeron, "aeron:ipc", stream_id)
        assert talk.answer(request).code == ControlResponseCode.OK
        assert reader.until_count(10) == stopped.sent[:10]
        talk.nothing_came_of()
        assert not reader.poll()
        assert len(reader.messages) == 10
        counter.set(20 * FRAME)
        assert reader.until_count(20) == stopped.sent[:20]
        reader.close()


def test_p19_a_counter_that_is_freed_ends_a_replay(talk, stopped):
    counter = talk.aeron.add_counter(1_101, b"", "bound")
    counter.set(10 * FRAME)
    _, stream_id = bounded(talk, stopped, counter.counter_id)
    reader = Reader(talk.aeron, "aeron:ipc", stream_id)
    reader.until_count(10)
    counter.close()
    assert reader.until_end() == stopped.sent[:10]
    assert reader.image.is_end_of_stream
    reader.close()


def test_p20_a_counter_that_is_not_there(talk, stopped):
    request, _ = bounded(talk, stopped, COUNTERS_BEYOND)
    assert talk.answer(request).relevant_id == ErrorCode.GENERIC


def test_p21_a_counter_below_the_position(talk, stopped):
    with talk.aeron.add_counter(1_101, b"", "bound") as counter:
        counter.set(FRAME)
        request, _ = bounded(talk, stopped, counter.counter_id, position=2 * FRAME)
        assert talk.answer(request).relevant_id == ErrorCode.INVALID_POSITION


def test_p22_a_token_that_was_not_given(talk, stopped):
    token = talk.ok(ReplayTokenRequest, recording_id=stopped.recording_id)
    assert token != -1
    channel = "aeron:udp?control-mode=response|control=127.0.0.1:0"
    replay = Replay(
        talk, stopped.recording_id, replay_channel=channel, replay_token=token ^ 0x5555
    )  # fmt: skip
    assert talk.nothing_came_of(replay.request)


def test_p23_a_damaged_frame_is_not_sent(checked):
    talk = Conversation(checked)
    recorded = Recorded(talk).send(10)
    recorded.stop()
    assert replayed(talk, recorded.recording_id) == recorded.sent
    with (checked.directory / f"{recorded.recording_id}-0.rec").open("r+b") as file:
        file.seek(5 * FRAME + 40)
        byte = file.read(1)[0]
        file.seek(5 * FRAME + 40)
        file.write(bytes([byte ^ 1]))
    replay = Replay(talk, recorded.recording_id)
    reader = replay.read()
    until(lambda: talk.poll() and len(talk.heard(replay.request)) == 2, "the second answer")
    assert shape(talk.heard(replay.request)) == ["OK", "GENERIC"]
    until(lambda: reader.poll() or not reader.subscription.images, "the end of the image")
    assert reader.messages == []
    reader.close()
    talk.close()


def older(message, version, block_length):
    """Encode a message like a sender of an older schema, with a shorter block."""
    content = codec.encode(message)
    full = codec.HEADER.unpack_from(content)[0]
    header = codec.HEADER.pack(block_length, message.TEMPLATE_ID, SCHEMA_ID, version)
    body = content[codec.HEADER.size :]
    return header + body[:block_length] + body[full:]


def test_p24_a_request_of_an_older_schema(talk, stopped):
    request = ReplayRequest(
        control_session_id=talk.control_session_id,
        correlation_id=talk.aeron.next_correlation_id(), recording_id=stopped.recording_id,
        position=-1, length=-1, replay_stream_id=new_stream_id(), replay_channel="aeron:ipc",
    )  # fmt: skip
    reader = Reader(talk.aeron, "aeron:ipc", request.replay_stream_id)
    talk.offer(older(request, version=6, block_length=44))
    assert talk.answer(request.correlation_id).code == ControlResponseCode.OK
    assert reader.until_end() == stopped.sent
    reader.close()


def test_p25_what_is_no_request_is_passed_over(talk):
    fields = {"stream_id": new_stream_id(), "source_location": 0, "channel": "aeron:ipc"}
    passed_over = []

    def damaged(at, value, size):
        """A request to record with some bytes replaced."""
        passed_over.append(talk.aeron.next_correlation_id())
        own = {"control_session_id": talk.control_session_id, "correlation_id": passed_over[-1]}
        content = bytearray(codec.encode(StartRecordingRequest(**own, **fields)))
        content[at : at + size] = value.to_bytes(size, "little")
        return bytes(content)

    talk.offer(damaged(8 + 20, 77, 4))
    talk.offer(damaged(2, 999, 2))
    talk.offer(damaged(4, 102, 2))
    assert talk.nothing_came_of(*passed_over)
    talk.ok(StartRecordingRequest, **fields)


def test_a_replay_of_two_publishers_work_has_one_session(talk):
    """Data recorded from two sessions is replayed with the replay's session id."""
    recorded = Recorded(talk).send(3)
    recorded.stop()
    extended = Extended(recorded).send(3)
    extended.stop()
    reader = Replay(talk, recorded.recording_id).read()
    assert reader.until_end() == extended.sent
    reader.close()
