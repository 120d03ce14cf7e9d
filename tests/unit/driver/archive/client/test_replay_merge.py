"""A replay merge with a scripted archive: its states, requests, retries and timeouts."""

from itertools import pairwise

import pytest

from tests.unit.driver.archive.client.scripted_archive import error, ok
from tests.unit.driver.media_driver.invoked_driver import MS
from windtunnel.driver.archive.client import (
    ArchiveError,
    ArchiveTimeoutError,
    MergeState,
    ReplayMerge,
)
from windtunnel.driver.archive.protocol.codes import ErrorCode
from windtunnel.driver.archive.protocol.requests import (
    MaxRecordedPositionRequest,
    ReplayRequest,
    StopReplayRequest,
)
from windtunnel.driver.base import system
from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.channel import uri
from windtunnel.driver.client import RegistrationError

STREAM_ID, SESSION_ID, RECORDING_ID = 1_001, 5, 9


@pytest.fixture
def subscription(env):
    created = env.aeron.add_subscription(
        f"aeron:udp?control-mode=manual|session-id={SESSION_ID}", STREAM_ID
    )
    yield created
    created.close()


def merge_of(subscription, client, replay_destination="aeron:udp?endpoint=10.0.0.1:0"):
    return ReplayMerge(
        subscription, client, replay_channel=f"aeron:udp?session-id={SESSION_ID}",
        replay_destination=replay_destination, live_destination="aeron:udp?endpoint=10.0.0.1:0",
        recording_id=RECORDING_ID, start_position=64,
    )  # fmt: skip


@pytest.fixture
def merge(subscription, client):
    created = merge_of(subscription, client)
    yield created
    created.close()


def until_state(env, merge, state):
    def is_reached():
        merge.do_work()
        return merge.state is state

    env.until(is_reached, turns=20_000)


def test_the_recorded_position_is_requested_until_it_is_known(env, merge):
    """Retries back off exponentially: after 16 ms, 32 ms, 64 ms."""
    times_ms = []

    def respond(request):
        times_ms.append(env.clock.now_ns() // MS)
        return [ok(request, -1 if len(times_ms) < 4 else 4_096)]

    env.archive.script[MaxRecordedPositionRequest] = respond
    assert merge.state is MergeState.RESOLVE_REPLAY_PORT
    until_state(env, merge, MergeState.REPLAY)
    pauses = [later - earlier for earlier, later in pairwise(times_ms)]
    assert [16 <= pauses[0] < 24, 32 <= pauses[1] < 40, 64 <= pauses[2] < 72] == [True] * 3


def test_the_replay_is_requested_to_the_resolved_endpoint(env, merge):
    env.archive.script |= {
        MaxRecordedPositionRequest: lambda request: [ok(request, 4_096)],
        ReplayRequest: lambda request: [ok(request, 3 << 32 | SESSION_ID)],
    }
    until_state(env, merge, MergeState.CATCHUP)
    (request,) = env.archive.of(ReplayRequest)
    assert (request.recording_id, request.position, request.length) == (RECORDING_ID, 64, I64_MAX)
    assert request.replay_stream_id == STREAM_ID
    channel = uri.parse(request.replay_channel)
    found = {key: channel.get(key) for key in ("session-id", "linger", "eos")}
    assert found == {"session-id": "5", "linger": "0", "eos": "false"}
    assert channel.get("endpoint") == merge.subscription.resolved_endpoint
    merge.close()
    env.until(lambda: env.archive.of(StopReplayRequest))
    assert env.archive.of(StopReplayRequest)[0].replay_session_id == 3 << 32 | SESSION_ID
    assert merge.state is MergeState.CLOSED
    assert merge.do_work() == 0


@pytest.mark.full
def test_a_replay_that_does_not_arrive_times_out(env, merge):
    env.archive.script |= {
        MaxRecordedPositionRequest: lambda request: [ok(request, 4_096)],
        ReplayRequest: lambda request: [ok(request, 3 << 32 | SESSION_ID)],
    }
    until_state(env, merge, MergeState.CATCHUP)
    before_ns = env.clock.now_ns()
    with pytest.raises(ArchiveTimeoutError, match="within 5000 ms in state CATCHUP"):
        until_state(env, merge, MergeState.MERGED)
    assert 5_000 * MS <= env.clock.now_ns() - before_ns < 5_200 * MS
    assert merge.has_failed
    assert merge.do_work() == 0


def test_a_merge_does_not_wait_for_the_driver(subscription, client, monkeypatch):
    monkeypatch.setattr(system, "sleep_ns", lambda ns: pytest.fail(f"slept {ns} ns"))
    merge = merge_of(subscription, client)
    for _ in range(3):
        merge.do_work()
    assert merge.state is MergeState.RESOLVE_REPLAY_PORT
    merge.close()


def test_a_rejected_destination_fails_the_merge(env, subscription, client):
    # The simulated host has another address.
    merge = merge_of(subscription, client, "aeron:udp?endpoint=10.0.0.9:0")
    with pytest.raises(RegistrationError, match=r"cannot bind 10\.0\.0\.9:0"):
        until_state(env, merge, MergeState.GET_RECORDING_POSITION)
    assert merge.has_failed
    merge.close()


def test_a_rejected_replay_fails_the_merge(env, merge):
    env.archive.script |= {
        MaxRecordedPositionRequest: lambda request: [ok(request, 4_096)],
        ReplayRequest: lambda request: [error(request, ErrorCode.INVALID_POSITION)],
    }
    with pytest.raises(ArchiveError, match="INVALID_POSITION"):
        until_state(env, merge, MergeState.CATCHUP)
    assert merge.has_failed


def test_a_closed_control_session_fails_the_merge(env, merge):
    env.archive.script[MaxRecordedPositionRequest] = lambda request: [ok(request, -1)]
    until_state(env, merge, MergeState.GET_RECORDING_POSITION)
    env.archive.script.clear()
    env.archive.publication.close()
    with pytest.raises(ArchiveError, match=r"not connected|has closed"):
        until_state(env, merge, MergeState.REPLAY)
    assert merge.has_failed
