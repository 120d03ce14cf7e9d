"""Replay: data, ends and rejections. Cases P1 to P25."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import ControlSession, summary
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
def stopped(session):
    """A recording of 150 messages: two segments and part of a third."""
    recorded = Recorded(session).send(150)
    recorded.stop()
    return recorded


@pytest.fixture
def live(session):
    """An active recording of ten messages."""
    recorded = Recorded(session).send(10)
    yield recorded
    if not recorded.publication.is_closed:
        recorded.stop()


def refused(session, recording_id, **fields):
    """Return the error code of a rejected replay."""
    response = session.response(Replay(session, recording_id, **fields).request)
    assert response.code == ControlResponseCode.ERROR, response
    return response.relevant_id


def test_p1_a_stopped_recording(session, stopped):
    reader = Replay(session, stopped.recording_id).read()
    assert reader.until_end() == stopped.sent
    assert reader.image.is_end_of_stream
    assert reader.image.position == stopped.stop_position
    reader.close()


def test_p2_a_live_recording_is_followed_to_its_end(session, live):
    reader = Replay(session, live.recording_id).read()
    reader.until_count(10)
    live.send(30)
    reader.until_count(40)
    assert not reader.poll()
    live.stop()
    assert reader.until_end() == live.sent
    assert reader.image.is_end_of_stream
    reader.close()


def test_p3_up_to_the_current_end(session, live):
    replay = Replay(session, live.recording_id, length=REPLAY_ALL_AND_STOP)
    reader = replay.read()
    live.send(5)
    assert reader.until_end() == live.sent[:10]
    reader.close()


def test_p4_an_empty_recording(session):
    recorded = Recorded(session)
    recorded.stop()
    replay = Replay(session, recorded.recording_id, length=REPLAY_ALL_AND_STOP)
    response = session.response(replay.request)
    assert (response.code, response.relevant_id) == (
        ControlResponseCode.ERROR, ErrorCode.EMPTY_RECORDING,
    )  # fmt: skip


def test_p5_a_position_that_is_not_aligned(session, stopped):
    assert refused(session, stopped.recording_id, position=FRAME + 1) == ErrorCode.GENERIC


def test_p6_a_position_within_a_frame(session, stopped):
    replay = Replay(session, stopped.recording_id, position=FRAME + 32)
    assert session.response(replay.request).relevant_id == ErrorCode.INVALID_POSITION
    assert summary(session.received(replay.request)) == ["INVALID_POSITION"]


def test_p7_a_position_outside_the_recording(session, stopped, live):
    beyond = refused(session, stopped.recording_id, position=stopped.stop_position)
    assert beyond == ErrorCode.INVALID_POSITION
    ahead = refused(session, live.recording_id, position=11 * FRAME)
    assert ahead == ErrorCode.INVALID_POSITION
    late = Recorded(session, positioned(4_096)).send(1)
    before = refused(session, late.recording_id, position=4_064)
    assert before == ErrorCode.INVALID_POSITION
    late.stop()


def test_p8_from_the_end_of_a_live_recording(session, live):
    reader = Replay(session, live.recording_id, position=10 * FRAME).read()
    live.send(3)
    assert reader.until_count(3) == live.sent[10:]
    reader.close()


def test_p9_an_unknown_recording(session):
    assert refused(session, 1_000_003) == ErrorCode.UNKNOWN_RECORDING


def test_p10_the_number_of_replays_is_limited(own_archive):
    limited = own_archive({"aeron.archive.max.concurrent.replays": 2}).start()
    session = ControlSession(limited)
    recorded = Recorded(session).send(2)
    readers = [Replay(session, recorded.recording_id).read() for _ in range(2)]
    for each in readers:
        each.until_count(2)
    assert refused(session, recorded.recording_id) == ErrorCode.MAX_REPLAYS
    for each in readers:
        each.close()


def test_p11_a_block_shorter_than_a_datagram(session, stopped):
    assert refused(session, stopped.recording_id, file_io_max_length=1_024) == ErrorCode.GENERIC


@pytest.mark.full
def test_p12_without_a_subscriber(short_timeout_archive):
    session = ControlSession(short_timeout_archive)
    recorded = Recorded(session).send(3)
    replay = Replay(session, recorded.recording_id)
    assert session.response(replay.request).code == ControlResponseCode.OK
    assert session.response(replay.request, 1).relevant_id == ErrorCode.GENERIC
    assert summary(session.received(replay.request)) == ["OK", "GENERIC"]
    session.close()


def test_p13_a_linger_with_a_unit(session, stopped):
    channel = {"replay_channel": "aeron:ipc?linger=5s"}
    assert refused(session, stopped.recording_id, **channel) == ErrorCode.GENERIC
    channel = {"replay_channel": "aeron:ipc?linger=1000000000"}
    assert replayed(session, stopped.recording_id, **channel) == stopped.sent


@pytest.mark.parametrize("channel", ["ipc", "aeron:ipc?=", "aeron:udp?endpoint|mtu=1408"])
def test_p14_an_invalid_channel(session, stopped, channel):
    replay = Replay(session, stopped.recording_id, replay_channel=channel)
    assert session.were_ignored(replay.request)


def test_p14_a_channel_of_an_unknown_medium(session, stopped):
    """Aeron's grammar accepts any medium; that it is not supported is reported."""
    channel = {"replay_channel": "aeron:pigeon?carrier=1"}
    assert refused(session, stopped.recording_id, **channel) == ErrorCode.GENERIC


def test_p15_the_frame_that_crosses_the_limit_is_sent(session, stopped):
    reader = Replay(session, stopped.recording_id, position=0, length=1_000).read()
    assert reader.until_end() == stopped.sent[:1]
    assert reader.image.position == FRAME
    reader.close()


def test_p16_the_image_has_the_session_of_the_replay(session, stopped):
    replay = Replay(session, stopped.recording_id)
    unfiltered = Reader(session.aeron, "aeron:ipc", replay.stream_id)
    unfiltered.until_end()
    replay_session_id = session.response(replay.request).relevant_id
    assert unfiltered.image.session_id == session_id_of(replay_session_id)
    assert replay_session_id >> 32 > 0
    unfiltered.close()


def test_p17_stopping_an_active_and_an_ended_replay(session, live):
    replay = Replay(session, live.recording_id)
    reader = replay.read()
    reader.until_count(10)
    assert session.ok(StopReplayRequest, replay_session_id=replay.session_id) == 0
    until(lambda: reader.poll() and reader.image.is_closed, "the end of the replay")
    assert reader.image.is_publication_revoked
    assert session.ok(StopReplayRequest, replay_session_id=replay.session_id) == 0
    reader.close()


def bounded(session, recorded, counter_id, **fields):
    """Return a bounded replay and its reader."""
    stream_id = new_stream_id()
    request = session.send(
        BoundedReplayRequest,
        **{
            "recording_id": recorded.recording_id, "position": 0, "length": 2**63 - 1,
            "limit_counter_id": counter_id, "replay_stream_id": stream_id,
            "replay_channel": "aeron:ipc",
        } | fields,
    )  # fmt: skip
    return request, stream_id


def test_p18_a_counter_bounds_a_replay(session, stopped):
    with session.aeron.add_counter(1_101, b"", "bound") as counter:
        counter.set(10 * FRAME)
        request, stream_id = bounded(session, stopped, counter.counter_id)
        reader = Reader(session.aeron, "aeron:ipc", stream_id)
        assert session.response(request).code == ControlResponseCode.OK
        assert reader.until_count(10) == stopped.sent[:10]
        session.were_ignored()
        assert not reader.poll()
        assert len(reader.messages) == 10
        counter.set(20 * FRAME)
        assert reader.until_count(20) == stopped.sent[:20]
        reader.close()


def test_p19_a_counter_that_is_freed_ends_a_replay(session, stopped):
    counter = session.aeron.add_counter(1_101, b"", "bound")
    counter.set(10 * FRAME)
    _, stream_id = bounded(session, stopped, counter.counter_id)
    reader = Reader(session.aeron, "aeron:ipc", stream_id)
    reader.until_count(10)
    counter.close()
    assert reader.until_end() == stopped.sent[:10]
    assert reader.image.is_end_of_stream
    reader.close()


def test_p20_an_unknown_counter(session, stopped):
    request, _ = bounded(session, stopped, COUNTERS_BEYOND)
    assert session.response(request).relevant_id == ErrorCode.GENERIC


def test_p21_a_counter_below_the_position(session, stopped):
    with session.aeron.add_counter(1_101, b"", "bound") as counter:
        counter.set(FRAME)
        request, _ = bounded(session, stopped, counter.counter_id, position=2 * FRAME)
        assert session.response(request).relevant_id == ErrorCode.INVALID_POSITION


def test_p22_an_unknown_token(session, stopped):
    token = session.ok(ReplayTokenRequest, recording_id=stopped.recording_id)
    assert token != -1
    channel = "aeron:udp?control-mode=response|control=127.0.0.1:0"
    replay = Replay(
        session, stopped.recording_id, replay_channel=channel, replay_token=token ^ 0x5555
    )  # fmt: skip
    assert session.were_ignored(replay.request)


def test_p23_a_damaged_frame_is_not_sent(checksum_archive):
    session = ControlSession(checksum_archive)
    recorded = Recorded(session).send(10)
    recorded.stop()
    assert replayed(session, recorded.recording_id) == recorded.sent
    with (checksum_archive.directory / f"{recorded.recording_id}-0.rec").open("r+b") as file:
        file.seek(5 * FRAME + 40)
        byte = file.read(1)[0]
        file.seek(5 * FRAME + 40)
        file.write(bytes([byte ^ 1]))
    replay = Replay(session, recorded.recording_id)
    reader = replay.read()
    until(
        lambda: session.poll() and len(session.received(replay.request)) == 2, "the second response"
    )
    assert summary(session.received(replay.request)) == ["OK", "GENERIC"]
    until(lambda: reader.poll() or not reader.subscription.images, "the end of the image")
    assert reader.messages == []
    reader.close()
    session.close()


def older(message, version, block_length):
    """Encode a message like a sender of an older schema, with a shorter block."""
    content = codec.encode(message)
    full = codec.HEADER.unpack_from(content)[0]
    header = codec.HEADER.pack(block_length, message.TEMPLATE_ID, SCHEMA_ID, version)
    body = content[codec.HEADER.size :]
    return header + body[:block_length] + body[full:]


def test_p24_a_request_of_an_older_schema(session, stopped):
    request = ReplayRequest(
        control_session_id=session.control_session_id,
        correlation_id=session.aeron.next_correlation_id(), recording_id=stopped.recording_id,
        position=-1, length=-1, replay_stream_id=new_stream_id(), replay_channel="aeron:ipc",
    )  # fmt: skip
    reader = Reader(session.aeron, "aeron:ipc", request.replay_stream_id)
    session.offer(older(request, version=6, block_length=44))
    assert session.response(request.correlation_id).code == ControlResponseCode.OK
    assert reader.until_end() == stopped.sent
    reader.close()


def test_p25_invalid_requests_are_ignored(session):
    fields = {"stream_id": new_stream_id(), "source_location": 0, "channel": "aeron:ipc"}
    ignored = []

    def damaged(at, value, size):
        """Return a request to record with some bytes replaced."""
        ignored.append(session.aeron.next_correlation_id())
        own = {"control_session_id": session.control_session_id, "correlation_id": ignored[-1]}
        content = bytearray(codec.encode(StartRecordingRequest(**own, **fields)))
        content[at : at + size] = value.to_bytes(size, "little")
        return bytes(content)

    session.offer(damaged(8 + 20, 77, 4))
    session.offer(damaged(2, 999, 2))
    session.offer(damaged(4, 102, 2))
    assert session.were_ignored(*ignored)
    session.ok(StartRecordingRequest, **fields)


def test_a_replay_of_two_publications_has_one_session_id(session):
    """Data recorded from two sessions is replayed with the replay's session id."""
    recorded = Recorded(session).send(3)
    recorded.stop()
    extended = Extended(recorded).send(3)
    extended.stop()
    reader = Replay(session, recorded.recording_id).read()
    assert reader.until_end() == extended.sent
    reader.close()
