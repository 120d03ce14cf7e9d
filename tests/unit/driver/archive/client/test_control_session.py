"""Requests and responses: correlation, timeouts and errors."""

import pytest

from tests.unit.driver.archive.client.scripted_archive import SESSION_ID, error, ok
from tests.unit.driver.media_driver.invoked_driver import MS
from windtunnel.driver.archive.client import ArchiveClosedError, ArchiveError, ArchiveTimeoutError
from windtunnel.driver.archive.client.control_session import UNCLAIMED_MAX
from windtunnel.driver.archive.client.turns import advance
from windtunnel.driver.archive.protocol import codec
from windtunnel.driver.archive.protocol.codes import ControlResponseCode, ErrorCode, RecordingSignal
from windtunnel.driver.archive.protocol.requests import (
    ListRecordingsRequest,
    StartPositionRequest,
    StartRecordingRequest2,
    StopPositionRequest,
)
from windtunnel.driver.archive.protocol.responses import (
    Ping,
    RecordingDescriptor,
    RecordingSignalEvent,
)
from windtunnel.driver.logbuffer import publication_result as result

UNUSED_ID = 1_000_000
"""A correlation id that no request of the tests uses."""


def signal(request, kind=RecordingSignal.START):
    return RecordingSignalEvent(
        control_session_id=SESSION_ID, correlation_id=request.correlation_id, recording_id=3,
        subscription_id=9, position=64, signal=kind,
    )  # fmt: skip


def descriptor(request, recording_id):
    return RecordingDescriptor(
        control_session_id=SESSION_ID, correlation_id=request.correlation_id,
        recording_id=recording_id, start_timestamp=1, stop_timestamp=-1, start_position=0,
        stop_position=-1, initial_term_id=0, segment_file_length=131_072,
        term_buffer_length=65_536, mtu_length=1_408, session_id=5, stream_id=6,
        stripped_channel="aeron:ipc", original_channel="aeron:ipc", source_identity="aeron:ipc",
    )  # fmt: skip


def test_only_the_response_with_matching_ids_completes_a_call(env, client, errors):
    def responses(request):
        yield ok(request, 1, control_session_id=SESSION_ID + 1)
        yield ok(request, 2, correlation_id=request.correlation_id + 1)
        yield Ping(control_session_id=SESSION_ID)
        yield codec.encode(ok(request, 3))[:20]
        yield b"\0\0\x99\x99\x65\0\x0e\0"
        yield error(request, ErrorCode.GENERIC, correlation_id=1)
        yield ok(request, 4)

    env.archive.script[StartPositionRequest] = responses
    assert client.start_position(8) == 4
    assert [(each.code, each.correlation_id) for each in errors] == [(ErrorCode.GENERIC, 1)]
    assert client.session._reader.malformed_count == 1


def test_recording_signals_are_passed_to_the_handler(env):
    signals = []
    with env.connect(on_recording_signal=signals.append) as client:
        env.archive.script[StartRecordingRequest2] = lambda request: [
            signal(request), ok(request, 9), signal(request, RecordingSignal.STOP),
        ]  # fmt: skip
        assert client.start_recording("aeron:ipc", 6) == 9
        env.until(lambda: client.poll_for_recording_signals() or len(signals) == 2)
        assert [each.signal for each in signals] == [RecordingSignal.START, RecordingSignal.STOP]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ControlResponseCode.RECORDING_UNKNOWN, ErrorCode.UNKNOWN_RECORDING),
        (ControlResponseCode.SUBSCRIPTION_UNKNOWN, ErrorCode.UNKNOWN_SUBSCRIPTION),
        (ControlResponseCode.NULL, ErrorCode.GENERIC),
    ],
)
def test_any_response_code_except_ok_raises_an_error(env, client, code, expected):
    env.archive.script[StartPositionRequest] = lambda request: [ok(request, 8, code=code)]
    with pytest.raises(ArchiveError, match=code.name) as refusal:
        client.start_position(8)
    assert refusal.value.code == expected


def test_a_response_of_an_unexpected_type_raises_an_error(env, client):
    env.archive.script[StartPositionRequest] = lambda request: [descriptor(request, 1)]
    with pytest.raises(ArchiveError, match="found RecordingDescriptor"):
        client.start_position(8)


def test_a_code_of_a_newer_archive_keeps_its_number(env, client):
    env.archive.script[StartPositionRequest] = lambda request: [error(request, 4_000)]
    with pytest.raises(ArchiveError, match=r"unknown code \(4000\)") as refusal:
        client.start_position(8)
    assert refusal.value.code == 4_000


def test_a_call_without_a_response_times_out(env, client, errors):
    before_ns = env.clock.now_ns()
    with pytest.raises(
        ArchiveTimeoutError, match="StartPositionRequest: no response within 2000 ms"
    ):
        client.start_position(8)
    assert 2_000 * MS <= env.clock.now_ns() - before_ns < 2_200 * MS
    (late,) = env.archive.of(StartPositionRequest)
    env.archive.send(ok(late, 5))
    env.archive.script[StartPositionRequest] = lambda request: [ok(request, 6)]
    assert client.start_position(8) == 6
    assert errors == []


@pytest.mark.full
def test_each_descriptor_restarts_the_timeout_of_a_listing(env, client):
    found = []

    def slow(recorded):
        """Time passes between one descriptor and the next."""
        found.append(recorded.recording_id)
        for _ in range(1_500):
            env.turn(0)

    def responses(request):
        yield from (descriptor(request, number) for number in range(3))
        yield ok(request, 3, code=ControlResponseCode.RECORDING_UNKNOWN)

    env.archive.script[ListRecordingsRequest] = responses
    assert client.list_recordings(0, 9, slow) == 3
    assert found == [0, 1, 2]
    env.archive.script[ListRecordingsRequest] = lambda request: [descriptor(request, 7)]
    assert client.list_recordings(0, 1, slow) == 1
    with pytest.raises(ArchiveTimeoutError):
        client.list_recordings(0, 2, slow)
    env.archive.script[ListRecordingsRequest] = lambda request: [
        error(request, ErrorCode.ACTIVE_LISTING)
    ]
    with pytest.raises(ArchiveError, match="ACTIVE_LISTING"):
        client.list_recordings(0, 2, slow)


def test_responses_may_arrive_out_of_order(env, client):
    """The second request gets its response first."""
    session, held = client.session, []
    env.archive.script |= {
        StartPositionRequest: lambda request: held.append(request),
        StopPositionRequest: lambda request: [ok(request, 2), ok(held[0], 1)],
    }
    first = session.request(StartPositionRequest, recording_id=0)
    second = session.request(StopPositionRequest, recording_id=0)
    done = {}

    def is_done():
        for name, turns in (("first", first), ("second", second)):
            is_over, response = advance(turns)
            if is_over and response is not None:
                done[name] = response.relevant_id
        return len(done) == 2

    env.until(is_done)
    assert done == {"first": 1, "second": 2}


def test_a_call_fails_when_the_archive_closes_its_publication(env, client):
    env.archive.script[StartPositionRequest] = lambda _: env.archive.publication.close()
    with pytest.raises(ArchiveClosedError, match="has closed the session"):
        client.start_position(8)
    assert not client.is_connected
    with pytest.raises(ArchiveClosedError):
        client.poll_for_recording_signals()


def test_a_request_is_offered_three_times(env, client, monkeypatch):
    offers = []

    def refuse(content):
        offers.append(content)
        return result.BACK_PRESSURED

    monkeypatch.setattr(client.session.publication, "offer", refuse)
    with pytest.raises(ArchiveError, match="within 3 attempts"):
        client.start_position(8)
    assert len(offers) == 3
    monkeypatch.setattr(client.session.publication, "offer", lambda _: result.NOT_CONNECTED)
    with pytest.raises(ArchiveClosedError, match="not connected"):
        client.start_position(8)
    monkeypatch.undo()


def test_a_request_that_is_too_long_is_rejected(client):
    with pytest.raises(ArchiveError, match="maximum length is 8192"):
        client.start_recording("aeron:ipc?alias=" + 9_000 * "x", 6)


def test_errors_without_a_pending_call_are_queued_for_polling(env):
    with env.connect() as client:
        env.archive.script[StartPositionRequest] = lambda request: [
            *(
                error(request, 0, correlation_id=UNUSED_ID + number)
                for number in range(UNCLAIMED_MAX + 5)
            ),
            ok(request, 4),
        ]
        assert client.start_position(8) == 4
        assert "because" in client.poll_for_error_response()
        with pytest.raises(ArchiveError, match="because") as oldest:
            client.check_for_error_response()
        # The oldest errors were dropped for the newest.
        assert oldest.value.correlation_id == UNUSED_ID + 5 + 1
        count = 2
        while client.poll_for_error_response() is not None:
            count += 1
        assert count == UNCLAIMED_MAX
        client.check_for_error_response()


def test_calls_fail_after_the_aeron_client_is_closed(env, client):
    env.aeron.close()
    with pytest.raises(ArchiveClosedError):
        client.request_archive_id()
    client.close()
