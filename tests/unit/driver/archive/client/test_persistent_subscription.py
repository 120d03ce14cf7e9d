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

    def __init__(self, env):
        self.errors, self.states = [], []
        params = from_start()
        self.subscription = PersistentSubscription(
            env.aeron, env.context(), params,
            PersistentHandlers(on_error=self.errors.append), env.clock,
        )  # fmt: skip

    def poll(self):
        self.subscription.poll(lambda payload, header: None)
        if self.subscription.state not in self.states:
            self.states.append(self.subscription.state)
        return self.subscription


@pytest.fixture
def persistent(env):
    created = Persistent(env)
    yield created
    created.subscription.close()


def until_state(env, persistent, state):
    env.until(lambda: persistent.poll().state is state, turns=20_000)


def test_the_states_of_a_session_specific_replay(env, persistent):
    env.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [ok(request, 7)],
    }
    until_state(env, persistent, PersistentState.REPLAY)
    assert [int(each) for each in persistent.states] == [0, 1, 2, 3, 4, 6, 12]
    (request,) = env.archive.of(ReplayRequest)
    assert (request.position, request.length) == (0, -1)
    assert "rejoin=false" in request.replay_channel


def test_a_replay_that_does_not_arrive_is_requested_again(env, persistent):
    env.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [ok(request, 7)],
    }
    env.until(lambda: persistent.poll() and len(env.archive.of(ReplayRequest)) == 2, turns=20_000)
    assert [type(each) for each in persistent.errors] == [ArchiveTimeoutError]
    assert not persistent.subscription.has_failed


@pytest.mark.parametrize("is_accepted", [True, False])
def test_closing_the_subscription_stops_an_accepted_replay(env, persistent, is_accepted):
    env.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [ok(request, 7 << 32 | 5)] if is_accepted else [],
    }
    state = PersistentState.REPLAY if is_accepted else PersistentState.AWAIT_REPLAY_RESPONSE
    until_state(env, persistent, state)
    persistent.subscription.close()
    env.until(lambda: not env.archive.subscription.is_connected)
    stopped = [each.replay_session_id for each in env.archive.of(StopReplayRequest)]
    assert stopped == [7 << 32 | 5] * is_accepted


def test_a_list_request_without_a_response_is_retried(env, persistent):
    env.until(
        lambda: persistent.poll() and len(env.archive.of(ListRecordingRequest)) == 2,
        turns=20_000,
    )
    assert "ListRecordingRequest: no response" in str(persistent.errors[0])


def test_a_lost_archive_connection_is_established_again(env, persistent):
    until_state(env, persistent, PersistentState.AWAIT_LIST_RECORDING_RESPONSE)
    env.archive.publication.close()
    env.archive.publication = None
    env.until(
        lambda: persistent.poll() and len(env.archive.of(AuthConnectRequest)) == 2,
        turns=20_000,
    )
    env.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [ok(request, 7)],
    }
    until_state(env, persistent, PersistentState.REPLAY)


@pytest.mark.parametrize(
    ("response", "reason"),
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
def test_a_permanent_error_fails_the_subscription(env, persistent, response, reason):
    env.archive.script[ListRecordingRequest] = lambda request: [response(request)]
    until_state(env, persistent, PersistentState.FAILED)
    assert persistent.subscription.reason is reason
    assert persistent.errors == [persistent.subscription.failure]
    env.until(lambda: not env.archive.publication.is_connected)


def test_a_rejected_replay_fails_the_subscription(env, persistent):
    env.archive.script |= {
        ListRecordingRequest: lambda request: [descriptor(request)],
        ReplayRequest: lambda request: [error(request, ErrorCode.INVALID_POSITION)],
    }
    until_state(env, persistent, PersistentState.FAILED)
    assert persistent.subscription.reason is FailureReason.INVALID_START_POSITION


def test_at_the_end_of_a_stopped_recording_it_waits_for_the_live_stream(env, persistent):
    env.archive.script[ListRecordingRequest] = lambda request: [
        descriptor(request, stop_position=0)
    ]
    until_state(env, persistent, PersistentState.AWAIT_LIVE)
    env.until(lambda: persistent.poll() and persistent.errors, turns=20_000)
    assert "no image of the live stream 1001 on aeron:ipc" in str(persistent.errors[0])
    for _ in range(2_500):
        env.turn(0)
        persistent.poll()
    with env.aeron.add_exclusive_publication("aeron:ipc", STREAM_ID):
        until_state(env, persistent, PersistentState.LIVE)
    assert len(persistent.errors) == 1
    assert persistent.subscription.is_live


def test_a_temporary_rejection_of_the_live_subscription_is_retried(env, persistent, monkeypatch):
    env.archive.script[ListRecordingRequest] = lambda request: [
        descriptor(request, stop_position=0)
    ]
    until_state(env, persistent, PersistentState.ADD_LIVE_SUBSCRIPTION)
    get, refused = env.aeron.get_subscription, []

    def refuse_once(registration_id):
        if not refused:
            env.aeron.abandon(registration_id)
            refused.append(RegistrationError(DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE, ""))
            raise refused[0]
        return get(registration_id)

    monkeypatch.setattr(env.aeron, "get_subscription", refuse_once)
    with env.aeron.add_exclusive_publication("aeron:ipc", STREAM_ID):
        until_state(env, persistent, PersistentState.LIVE)
    assert persistent.errors == refused != []
    assert len(env.archive.of(ListRecordingRequest)) == 1


def test_counters_name_the_streams(env, persistent):
    until_state(env, persistent, PersistentState.AWAIT_LIST_RECORDING_RESPONSE)
    labels = [each.label for each in env.aeron.counters if 114 <= each.type_id <= 117]
    assert labels == [
        f"Persistent Subscription {name}: 1002 aeron:ipc?rejoin=false 1001 aeron:ipc"
        for name in ("State", "Join Difference", "Live Left Count", "Live Joined Count")
    ]


@pytest.mark.parametrize("use_invoker", [True, False])
def test_a_poll_invokes_an_aeron_client_without_a_thread(env, persistent, monkeypatch, use_invoker):
    until_state(env, persistent, PersistentState.AWAIT_LIST_RECORDING_RESPONSE)
    context = replace(env.aeron.context, use_conductor_agent_invoker=use_invoker)
    monkeypatch.setattr(env.aeron, "context", context)
    turns = []
    monkeypatch.setattr(env.aeron, "invoke", lambda: turns.append(1))
    persistent.poll()
    assert turns == [1] * use_invoker


def test_replays_over_a_response_channel_have_the_medium_of_the_control_channel(env):
    params = from_start("aeron:udp?control-mode=response|control=localhost:20400")
    with pytest.raises(ConfigurationError, match="expected the medium of the archive's control"):
        PersistentSubscription(env.aeron, env.context(), params)


def test_the_port_of_a_response_channel_is_resolved_before_the_replay_request(monkeypatch):
    channel = "aeron:udp?control-mode=response|control=localhost:20400|endpoint=localhost:0"
    resolved = channel[:-1] + "20401"
    results = iter([None, resolved])
    subscription = SimpleNamespace(
        registration_id=5, try_resolve_channel_endpoint_port=lambda: next(results)
    )
    channels, states = [], []

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
            SimpleNamespace(relevant_id=9), lambda *arguments: channels.append(arguments[4])
        ),
    }.items():
        monkeypatch.setattr(replaying, name, operation)
    turns = PersistentSetup(from_start(channel), states.append).replay(None, 0)
    while not (result := advance(turns))[0]:
        assert states[-1] is PersistentState.AWAIT_REPLAY_CHANNEL_ENDPOINT
        assert not channels
    assert result[1].replay_id == 9
    assert channels == [resolved]
