"""Persistent subscriptions while publishers and archives stop and restart."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import ANY_PORT, LOCAL
from tests.archive.streams import FRAME, Extended, Recorded, message, new_stream_id
from tests.peer.ports import free_port
from windtunnel.driver.archive.client import (
    FROM_LIVE,
    FROM_START,
    ArchiveContext,
    ArchiveError,
    FailureReason,
    PersistentHandlers,
    PersistentParams,
    PersistentState,
    PersistentSubscription,
)
from windtunnel.driver.archive.protocol.codes import ErrorCode, RecordingSignal, SourceLocation
from windtunnel.driver.archive.protocol.requests import PurgeRecordingRequest
from windtunnel.driver.base.errors import ConfigurationError

STATE_TYPE_ID, JOINED_TYPE_ID = 114, 117


class Persistent:
    """A persistent subscription and the messages that it delivered."""

    def __init__(self, archive, recorded, live_channel, replay_channel="aeron:ipc", **params):
        self.messages, self.transitions, self.errors = [], [], []
        self.replay_stream_id = new_stream_id()
        is_response = "response" in replay_channel
        context = ArchiveContext(
            control_request_channel=archive.control_channel if is_response else LOCAL,
            control_response_channel=ANY_PORT if is_response else LOCAL,
        )
        settings = {
            "recording_id": recorded.recording_id, "live_channel": live_channel,
            "live_stream_id": recorded.stream_id, "replay_channel": replay_channel,
            "replay_stream_id": self.replay_stream_id,
        } | params  # fmt: skip
        self.subscription = PersistentSubscription(
            archive.aeron, context, PersistentParams(**settings),
            PersistentHandlers(
                on_live_joined=lambda: self.transitions.append("joined"),
                on_live_left=lambda: self.transitions.append("left"),
                on_error=self.errors.append,
            ),
        )  # fmt: skip

    def poll(self):
        self.subscription.poll(lambda payload, _: self.messages.append(bytes(payload)))
        return self

    @property
    def is_live(self):
        return self.poll().subscription.is_live

    def has(self, messages):
        """Return whether exactly these messages were delivered in order."""
        self.poll()
        assert self.messages == messages[: len(self.messages)]
        return len(self.messages) == len(messages)


@pytest.fixture
def live(session):
    """A stream with several subscribers, recorded at its source."""
    control = f"127.0.0.1:{free_port()}"
    channel = f"aeron:udp?control-mode=dynamic|control={control}|term-length=64k|fc=max"
    recorded = Recorded(session, channel, location=SourceLocation.LOCAL)
    recorded.live_channel = f"aeron:udp?endpoint=127.0.0.1:0|control={control}"
    yield recorded
    if not recorded.publication.is_closed:
        recorded.stop()


@pytest.fixture
def persistent(archive):
    """Creates persistent subscriptions that are closed at the end."""
    made = []

    def make(recorded, live_channel, *args, **params):
        made.append(Persistent(archive, recorded, live_channel, *args, **params))
        return made[-1]

    yield make
    for each in made:
        each.subscription.close()


def send_while(live, reader, condition, count_max=3_000):
    """Publish and read until a condition is true."""

    def step():
        if live.number < count_max:
            live.send(1)
        return condition(reader.poll())

    until(step, "the condition")


RESPONSE = "aeron:udp?control-mode=response|control=127.0.0.1:{port}"
REPLAY_CHANNELS = {
    "session": "aeron:ipc",
    "port": "aeron:udp?endpoint=127.0.0.1:0",
    "response": RESPONSE,
    "response-port": RESPONSE + "|endpoint=127.0.0.1:0",
}


@pytest.mark.parametrize("by", REPLAY_CHANNELS)
def test_from_the_start_to_the_live_stream(archive, live, persistent, by):
    live.send(200)
    channel = REPLAY_CHANNELS[by].format(port=free_port())
    reader = persistent(live, live.live_channel, channel, start_position=FROM_START)
    send_while(live, reader, lambda each: each.is_live)
    for _ in range(50):
        live.send(1)
        reader.poll()
    until(lambda: reader.has(live.sent), "all messages")
    assert reader.transitions == ["joined"]
    assert reader.subscription.position == live.position
    own = f": {reader.replay_stream_id} "
    values = {each.type_id: each.value for each in archive.aeron.counters if own in each.label}
    assert values[STATE_TYPE_ID] == PersistentState.LIVE == 16
    assert values[JOINED_TYPE_ID] == 1
    assert list(map(str, reader.errors)) == []


@pytest.mark.full
def test_from_a_position(live, persistent):
    live.send(100)
    reader = persistent(live, live.live_channel, start_position=40 * FRAME)
    send_while(live, reader, lambda each: each.is_live)
    until(lambda: reader.has(live.sent[40:]), "all messages from there on")


def test_from_the_live_stream(live, persistent):
    live.send(100)
    reader = persistent(live, live.live_channel, start_position=FROM_LIVE)
    until(lambda: reader.is_live, "the live stream")
    joined = len(live.sent)
    for _ in range(20):
        live.send(1)
        reader.poll()
    until(lambda: reader.has(live.sent[joined:]), "what was sent since")


def test_a_long_message_across_the_switch_to_live(live, persistent):
    """Fragments of one message may come from the recording and from the live stream."""
    live.send(100)
    reader = persistent(live, live.live_channel, start_position=FROM_START)

    def step():
        if live.number < 400:
            live.send(1, length=5_000)
        return reader.is_live

    until(step, "the live stream")
    until(lambda: reader.has(live.sent), "all messages")
    assert message(150, 5_000) in reader.messages or live.number <= 150


def test_a_publisher_that_restarts(session, persistent):
    recorded = Recorded(session).send(30)
    reader = persistent(recorded, "aeron:ipc", start_position=FROM_START)
    send_while(recorded, reader, lambda each: each.is_live)
    until(lambda: reader.has(recorded.sent), "all messages of the first")
    recorded.stop()
    until(lambda: reader.poll().transitions == ["joined", "left"], "the end of the live stream")
    following = Extended(recorded)
    session.signal(RecordingSignal.EXTEND, following.request)
    following.send(3)
    send_while(following, reader, lambda each: each.is_live)
    until(lambda: reader.has(following.sent), "all messages of both")
    assert reader.transitions == ["joined", "left", "joined"]
    following.stop()


def test_missed_messages_are_read_from_the_recording(session, persistent):
    """It is at the end of a stopped recording, and joins only after more was published."""
    recorded = Recorded(session).send(20)
    recorded.stop()
    following = Extended(recorded)
    session.signal(RecordingSignal.EXTEND, following.request)
    following.send(40)
    reader = persistent(recorded, "aeron:ipc", start_position=20 * FRAME)
    send_while(following, reader, lambda each: each.is_live)
    until(lambda: reader.has(following.sent[20:]), "the missed and the new messages")
    following.stop()


def failure(reader):
    """Return the failure of a persistent subscription and its reason."""
    until(lambda: reader.poll().subscription.has_failed, "the failure")
    error = reader.subscription.failure
    assert reader.errors[-1] is error
    assert reader.subscription.poll(lambda *_: None) == 0
    return error, reader.subscription.reason


def test_an_unknown_recording(live, persistent, session):
    other = Recorded(session).send(1)
    other.stop()
    session.ok(PurgeRecordingRequest, recording_id=other.recording_id)
    error, reason = failure(persistent(other, live.live_channel, start_position=FROM_START))
    assert isinstance(error, ArchiveError)
    assert error.code == ErrorCode.UNKNOWN_RECORDING
    assert reason is FailureReason.RECORDING_NOT_FOUND


def test_a_recording_of_another_stream(live, persistent):
    reader = persistent(live, live.live_channel, live_stream_id=new_stream_id())
    error, reason = failure(reader)
    assert "expected stream" in str(error)
    assert reason is FailureReason.STREAM_ID_MISMATCH


def test_a_position_that_the_recording_does_not_have(session, live, persistent):
    stopped = Recorded(session).send(5)
    stopped.stop()
    beyond = persistent(stopped, "aeron:ipc", start_position=6 * FRAME)
    assert failure(beyond)[1] is FailureReason.INVALID_START_POSITION
    live.send(5)
    within = persistent(live, live.live_channel, start_position=FRAME + 32)
    error, reason = failure(within)
    assert error.code == ErrorCode.INVALID_POSITION
    assert reason is FailureReason.INVALID_START_POSITION


def test_without_an_archive_connecting_is_retried(archive):
    """Without an archive the error is reported, and the subscription connects again."""
    unreachable = ArchiveContext(
        control_request_channel=f"aeron:udp?endpoint=127.0.0.1:{free_port()}",
        control_response_channel=ANY_PORT, message_timeout_ns=200_000_000,
    )  # fmt: skip
    errors = []
    params = PersistentParams(
        recording_id=0, live_channel="aeron:ipc", live_stream_id=1, replay_channel="aeron:ipc",
        replay_stream_id=2,
    )  # fmt: skip
    handlers = PersistentHandlers(on_error=errors.append)
    subscription = PersistentSubscription(archive.aeron, unreachable, params, handlers)

    def has_tried_twice():
        subscription.poll(lambda *_: None)
        return len(errors) >= 2

    until(has_tried_twice, "two attempts")
    assert subscription.state is PersistentState.AWAIT_ARCHIVE_CONNECTION
    assert not subscription.has_failed
    subscription.close()
    assert subscription.poll(lambda *_: None) == 0


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"recording_id": -1}, "recording_id is -1, but must be at least 0"),
        ({"start_position": -3}, "start_position is -3, but must be at least -2"),
        ({"live_channel": "pigeon"}, "live_channel: "),
    ],
)
def test_settings_out_of_bounds(changes, text):
    given = {
        "recording_id": 0, "live_channel": "aeron:ipc", "live_stream_id": 1,
        "replay_channel": "aeron:ipc", "replay_stream_id": 2,
    }  # fmt: skip
    PersistentParams(**given).conclude()
    with pytest.raises(ConfigurationError, match=text):
        PersistentParams(**given | changes).conclude()
