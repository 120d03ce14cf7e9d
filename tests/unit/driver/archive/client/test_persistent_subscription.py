"""A persistent subscription with a scripted archive: transient and fatal errors."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.unit.driver.archive.client.scripted_archive import SESSION_ID, error, ok
from windtunnel.driver.archive.client import (
    FROM_START,
    ArchiveTimeoutError,
    FailureReason,
    PersistentHandlers,
    PersistentParams,
    PersistentState,
    PersistentSubscription,
)
from windtunnel.driver.archive.client.operations import replay as replaying
from windtunnel.driver.archive.client.persistent_setup import PersistentSetup
from windtunnel.driver.archive.client.turns import advance
from windtunnel.driver.archive.protocol.codes import ControlResponseCode, ErrorCode
from windtunnel.driver.archive.protocol.requests import (
    AuthConnectRequest,
    ListRecordingRequest,
    ReplayRequest,
    StopReplayRequest,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.client import RegistrationError
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

RECORDING_ID, STREAM_ID, REPLAY_STREAM_ID = 9, 1_001, 1_002


def descriptor(request, **changes):
    fields = {
        "control_session_id": SESSION_ID, "correlation_id": request.correlation_id,
        "recording_id": RECORDING_ID, "start_timestamp": 1, "stop_timestamp": -1,
        "start_position": 0, "stop_position": -1, "initial_term_id": 0,
        "segment_file_length": 131_072, "term_buffer_length": 65_536, "mtu_length": 1_408,
        "session_id": 5, "stream_id": STREAM_ID, "stripped_channel": "aeron:ipc",
        "original_channel": "aeron:ipc", "source_identity": "aeron:ipc",
    }  # fmt: skip
    return RecordingDescriptor(**fields | changes)


def from_start(replay_channel="aeron:ipc"):
    return PersistentParams(
        recording_id=RECORDING_ID, live_channel="aeron:ipc", live_stream_id=STREAM_ID,
        replay_channel=replay_channel, replay_stream_id=REPLAY_STREAM_ID,
        start_position=FROM_START,
    )  # fmt: skip


class Persistent:
    """A persistent subscription from the recording's start, and the errors that it reported."""

    def __init__(self, on_stage):
        self.errors, self.states = [], []
        params = from_start()
        self.subscription = PersistentSubscription(
            on_stage.aeron, on_stage.context(), params,
            PersistentHandlers(on_error=self.errors.append), on_stage.clock,
        )  # fmt: skip

    def poll(self):
        self.subscription.poll(lambda payload, header: None)
        if self.subscription.state not in self.states:
            self.states.append(self.subscription.state)
        return self.subscription


@pytest.fixture
def persistent(on_stage):
    made = Persistent(on_stage)
    yield made
    made.subscription.close()


def until_state(on_stage, persistent, state):
    on_stage.until(lambda: persistent.poll().state is state, turns=20_000)


def test_the_states_of_a_session_specific_replay(on_stage, persistent):
    on_stage.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [ok(request, 7)],
    }
    until_state(on_stage, persistent, PersistentState.REPLAY)
    assert [int(each) for each in persistent.states] == [0, 1, 2, 3, 4, 6, 12]
    (request,) = on_stage.archive.of(ReplayRequest)
    assert (request.position, request.length) == (0, -1)
    assert "rejoin=false" in request.replay_channel


def test_a_replay_that_does_not_arrive_is_asked_for_again(on_stage, persistent):
    on_stage.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [ok(request, 7)],
    }
    on_stage.until(
        lambda: persistent.poll() and len(on_stage.archive.of(ReplayRequest)) == 2, turns=20_000
    )
    assert [type(each) for each in persistent.errors] == [ArchiveTimeoutError]
    assert not persistent.subscription.has_failed


@pytest.mark.parametrize("is_accepted", [True, False])
def test_a_replay_is_stopped_when_it_is_not_read_any_more(on_stage, persistent, is_accepted):
    on_stage.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [ok(request, 7 << 32 | 5)] if is_accepted else [],
    }
    state = PersistentState.REPLAY if is_accepted else PersistentState.AWAIT_REPLAY_RESPONSE
    until_state(on_stage, persistent, state)
    persistent.subscription.close()
    on_stage.until(lambda: not on_stage.archive.subscription.is_connected)
    stopped = [each.replay_session_id for each in on_stage.archive.of(StopReplayRequest)]
    assert stopped == [7 << 32 | 5] * is_accepted


def test_an_archive_that_does_not_answer_is_asked_again(on_stage, persistent):
    on_stage.until(
        lambda: persistent.poll() and len(on_stage.archive.of(ListRecordingRequest)) == 2,
        turns=20_000,
    )
    assert "ListRecordingRequest: no response" in str(persistent.errors[0])


def test_an_archive_that_leaves_is_looked_for_again(on_stage, persistent):
    until_state(on_stage, persistent, PersistentState.AWAIT_LIST_RECORDING_RESPONSE)
    on_stage.archive.publication.close()
    on_stage.archive.publication = None
    on_stage.until(
        lambda: persistent.poll() and len(on_stage.archive.of(AuthConnectRequest)) == 2,
        turns=20_000,
    )
    on_stage.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [ok(request, 7)],
    }
    until_state(on_stage, persistent, PersistentState.REPLAY)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda r: descriptor(r, stream_id=STREAM_ID + 1), FailureReason.STREAM_ID_MISMATCH),
        (
            lambda r: ok(r, RECORDING_ID, code=ControlResponseCode.RECORDING_UNKNOWN),
            FailureReason.RECORDING_NOT_FOUND,
        ),
        (lambda r: error(r, ErrorCode.UNAUTHORISED_ACTION), FailureReason.GENERIC),
    ],
    ids=["stream", "unknown", "unauthorised"],
)
def test_what_cannot_become_better_is_the_end(on_stage, persistent, answer, reason):
    on_stage.archive.script[ListRecordingRequest] = lambda request: [answer(request)]
    until_state(on_stage, persistent, PersistentState.FAILED)
    assert persistent.subscription.reason is reason
    assert persistent.errors == [persistent.subscription.failure]
    on_stage.until(lambda: not on_stage.archive.publication.is_connected)


def test_a_refused_replay_is_the_end(on_stage, persistent):
    on_stage.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [error(request, ErrorCode.INVALID_POSITION)],
    }
    until_state(on_stage, persistent, PersistentState.FAILED)
    assert persistent.subscription.reason is FailureReason.INVALID_START_POSITION


def test_the_end_of_a_stopped_recording_is_where_the_live_stream_is_waited_for(
    on_stage, persistent
):
    on_stage.archive.script[ListRecordingRequest] = lambda request: [
        descriptor(request, stop_position=0)
    ]
    until_state(on_stage, persistent, PersistentState.AWAIT_LIVE)
    on_stage.until(lambda: persistent.poll() and persistent.errors, turns=20_000)
    assert "no image of the live stream 1001 on aeron:ipc" in str(persistent.errors[0])
    for _ in range(2_500):
        on_stage.turn(0)
        persistent.poll()
    with on_stage.aeron.add_exclusive_publication("aeron:ipc", STREAM_ID):
        until_state(on_stage, persistent, PersistentState.LIVE)
    assert len(persistent.errors) == 1
    assert persistent.subscription.is_live


def test_a_live_stream_that_is_refused_for_now_is_subscribed_to_again(
    on_stage, persistent, monkeypatch
):
    on_stage.archive.script[ListRecordingRequest] = lambda request: [
        descriptor(request, stop_position=0)
    ]
    until_state(on_stage, persistent, PersistentState.ADD_LIVE_SUBSCRIPTION)
    get, refused = on_stage.aeron.get_subscription, []

    def refuse_once(registration_id):
        if not refused:
            on_stage.aeron.abandon(registration_id)
            refused.append(RegistrationError(DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE, ""))
            raise refused[0]
        return get(registration_id)

    monkeypatch.setattr(on_stage.aeron, "get_subscription", refuse_once)
    with on_stage.aeron.add_exclusive_publication("aeron:ipc", STREAM_ID):
        until_state(on_stage, persistent, PersistentState.LIVE)
    assert persistent.errors == refused != []
    assert len(on_stage.archive.of(ListRecordingRequest)) == 1


def test_counters_name_the_streams(on_stage, persistent):
    until_state(on_stage, persistent, PersistentState.AWAIT_LIST_RECORDING_RESPONSE)
    labels = [each.label for each in on_stage.aeron.counters if 114 <= each.type_id <= 117]
    assert labels == [
        f"Persistent Subscription {name}: 1002 aeron:ipc?rejoin=false 1001 aeron:ipc"
        for name in ("State", "Join Difference", "Live Left Count", "Live Joined Count")
    ]


@pytest.mark.parametrize("use_invoker", [True, False])
def test_a_poll_runs_a_client_without_a_thread(on_stage, persistent, monkeypatch, use_invoker):
    until_state(on_stage, persistent, PersistentState.AWAIT_LIST_RECORDING_RESPONSE)
    context = replace(on_stage.aeron.context, use_conductor_agent_invoker=use_invoker)
    monkeypatch.setattr(on_stage.aeron, "context", context)
    turns = []
    monkeypatch.setattr(on_stage.aeron, "invoke", lambda: turns.append(1))
    persistent.poll()
    assert turns == [1] * use_invoker


def test_replays_over_a_response_channel_have_the_medium_of_the_control_channel(on_stage):
    params = from_start("aeron:udp?control-mode=response|control=localhost:20400")
    with pytest.raises(ConfigurationError, match="expected the medium of the archive's control"):
        PersistentSubscription(on_stage.aeron, on_stage.context(), params)


def test_the_port_of_a_response_channel_is_known_before_the_replay_is_asked_for(monkeypatch):
    channel = "aeron:udp?control-mode=response|control=localhost:20400|endpoint=localhost:0"
    resolved = channel[:-1] + "20401"
    answers = iter([None, resolved])
    subscription = SimpleNamespace(
        registration_id=5, try_resolve_channel_endpoint_port=lambda: next(answers)
    )
    asked, states = [], []

    def at_once(result, note=lambda *arguments: None):
        def operation(*arguments):
            note(*arguments)
            return result
            yield

        return operation

    publication = SimpleNamespace(close=lambda: None)
    for name, operation in {
        "add_subscription": at_once(subscription),
        "request_publication": at_once(publication),
        "request_replay_token": at_once(77),
        "replay_with_token": at_once(
            SimpleNamespace(relevant_id=9), lambda *arguments: asked.append(arguments[4])
        ),
    }.items():
        monkeypatch.setattr(replaying, name, operation)
    turns = PersistentSetup(from_start(channel), states.append).replay(None, 0)
    while not (result := advance(turns))[0]:
        assert states[-1] is PersistentState.AWAIT_REPLAY_CHANNEL_ENDPOINT
        assert not asked
    assert result[1].replay_id == 9
    assert asked == [resolved]
