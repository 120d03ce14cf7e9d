"""The steps of a merge with a scripted archive: its requests, their times, and its timeouts."""

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
from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.channel import uri

STREAM_ID, SESSION_ID, RECORDING_ID = 1_001, 5, 9


@pytest.fixture
def merge(on_stage, client):
    subscription = on_stage.aeron.add_subscription(
        f"aeron:udp?control-mode=manual|session-id={SESSION_ID}", STREAM_ID
    )
    made = ReplayMerge(
        subscription, client, replay_channel=f"aeron:udp?session-id={SESSION_ID}",
        replay_destination="aeron:udp?endpoint=10.0.0.1:0",
        live_destination="aeron:udp?endpoint=10.0.0.1:0",
        recording_id=RECORDING_ID, start_position=64,
    )  # fmt: skip
    yield made
    made.close()
    subscription.close()


def until_state(on_stage, merge, state):
    def is_there():
        merge.do_work()
        return merge.state is state

    on_stage.until(is_there, turns=20_000)


def test_the_position_is_asked_for_until_there_is_one(on_stage, merge):
    """With exponential backoff: 16 ms after the first request, 32 after the second."""
    times_ms = []

    def answer(request):
        times_ms.append(on_stage.clock.now_ns() // MS)
        return [ok(request, -1 if len(times_ms) < 4 else 4_096)]

    on_stage.archive.script[MaxRecordedPositionRequest] = answer
    assert merge.state is MergeState.RESOLVE_REPLAY_PORT
    until_state(on_stage, merge, MergeState.REPLAY)
    pauses = [later - earlier for earlier, later in pairwise(times_ms)]
    assert [16 <= pauses[0] < 24, 32 <= pauses[1] < 40, 64 <= pauses[2] < 72] == [True] * 3


def test_the_replay_is_asked_for_where_it_will_be_heard(on_stage, merge):
    on_stage.archive.script |= {
        MaxRecordedPositionRequest: lambda request: [ok(request, 4_096)],
        ReplayRequest: lambda request: [ok(request, 3 << 32 | SESSION_ID)],
    }
    until_state(on_stage, merge, MergeState.CATCHUP)
    (request,) = on_stage.archive.of(ReplayRequest)
    assert (request.recording_id, request.position, request.length) == (RECORDING_ID, 64, I64_MAX)
    assert request.replay_stream_id == STREAM_ID
    channel = uri.parse(request.replay_channel)
    found = {key: channel.get(key) for key in ("session-id", "linger", "eos")}
    assert found == {"session-id": "5", "linger": "0", "eos": "false"}
    assert channel.get("endpoint") == merge.subscription.resolved_endpoint
    merge.close()
    on_stage.until(lambda: on_stage.archive.of(StopReplayRequest))
    assert on_stage.archive.of(StopReplayRequest)[0].replay_session_id == 3 << 32 | SESSION_ID
    assert merge.state is MergeState.CLOSED
    assert merge.do_work() == 0


@pytest.mark.full
def test_a_replay_that_does_not_arrive(on_stage, merge):
    on_stage.archive.script |= {
        MaxRecordedPositionRequest: lambda request: [ok(request, 4_096)],
        ReplayRequest: lambda request: [ok(request, 3 << 32 | SESSION_ID)],
    }
    until_state(on_stage, merge, MergeState.CATCHUP)
    before_ns = on_stage.clock.now_ns()
    with pytest.raises(ArchiveTimeoutError, match="within 5000 ms in state CATCHUP"):
        until_state(on_stage, merge, MergeState.MERGED)
    assert 5_000 * MS <= on_stage.clock.now_ns() - before_ns < 5_200 * MS
    assert merge.has_failed
    assert merge.do_work() == 0


def test_a_refused_replay(on_stage, merge):
    on_stage.archive.script |= {
        MaxRecordedPositionRequest: lambda request: [ok(request, 4_096)],
        ReplayRequest: lambda request: [error(request, ErrorCode.INVALID_POSITION)],
    }
    with pytest.raises(ArchiveError, match="INVALID_POSITION"):
        until_state(on_stage, merge, MergeState.CATCHUP)
    assert merge.has_failed


def test_the_archive_leaves(on_stage, merge):
    on_stage.archive.script[MaxRecordedPositionRequest] = lambda request: [ok(request, -1)]
    until_state(on_stage, merge, MergeState.GET_RECORDING_POSITION)
    on_stage.archive.script.clear()
    on_stage.archive.publication.close()
    with pytest.raises(ArchiveError, match=r"not connected|has closed"):
        until_state(on_stage, merge, MergeState.REPLAY)
    assert merge.has_failed
