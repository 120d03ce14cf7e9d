"""Control sessions: authentication, unsolicited messages, and the end of a session. Cases S1 to
S12.
"""

import time

import pytest

from tests.archive.archives import until
from tests.archive.conversation import ANY_PORT, LOCAL, ControlSession, summary
from windtunnel.driver.archive.protocol.codes import (
    PROTOCOL_VERSION,
    ControlResponseCode,
    ErrorCode,
    semantic_version,
)
from windtunnel.driver.archive.protocol.requests import (
    ArchiveIdRequest,
    ChallengeResponse,
    CloseSessionRequest,
    KeepAliveRequest,
    StartPositionRequest,
    StopPositionRequest,
    TruncateRecordingRequest,
)
from windtunnel.driver.archive.protocol.responses import Challenge, ControlResponse, Ping

SESSION_TYPE_ID = 113
CONNECT_TIMEOUT_S = 5.0
"""The connect timeout of the fixtures `short_timeout_archive` and `authenticated_archive`."""
TICK_S = 0.01
"""The coarsest resolution of a clock."""


def session_counter(archive, control_session_id):
    """Return the counter of a session, or None."""
    own = control_session_id.to_bytes(8, "little", signed=True)
    for each in archive.aeron.counters:
        if each.type_id == SESSION_TYPE_ID and each.key[8:16] == own:
            return each
    return None


def assert_accepted(archive, session):
    """Check that a session was accepted and receives responses."""
    response = session.response(session.connect_request)
    assert response.code == ControlResponseCode.OK
    assert response.relevant_id == response.control_session_id > 0
    assert response.version == PROTOCOL_VERSION == 68_608
    assert session_counter(archive, response.control_session_id).value == response.relevant_id
    session.ok(ArchiveIdRequest)


@pytest.mark.parametrize("is_local", [True, False], ids=["ipc", "udp"])
def test_s1_without_authentication_a_session_is_accepted(archive, is_local):
    request = LOCAL if is_local else f"{archive.control_channel}|term-length=64k"
    response = LOCAL if is_local else ANY_PORT
    session = ControlSession(archive, request_channel=request, response_channel=response)
    assert_accepted(archive, session)
    session.close()


def test_s2_the_first_response_is_repeated_until_a_request_arrives(session):
    until(lambda: len(session.received(session.connect_request)) >= 4, "four equal responses")
    first, *others = session.received(session.connect_request, ControlResponse)
    assert all(each == first for each in others)
    session.ok(ArchiveIdRequest)
    count = len(session.received(session.connect_request))
    until(lambda: session.messages(Ping), "a ping")
    assert len(session.received(session.connect_request)) == count


@pytest.mark.full
def test_s3_another_major_version_is_rejected(short_timeout_archive):
    session = ControlSession(short_timeout_archive, version=semantic_version(2, 0, 0))
    until(lambda: len(session.received(session.connect_request)) >= 3, "the repeated error")
    for each in session.until_end():
        assert each.correlation_id == session.connect_request
        assert each.code == ControlResponseCode.ERROR
        assert each.relevant_id == each.control_session_id
        assert "2.0.0" in each.error_message
    until(lambda: not session.publication.is_connected, "the end of the request channel")


def test_s4_another_minor_version_is_accepted(archive):
    session = ControlSession(archive, version=semantic_version(1, 0, 0))
    assert_accepted(archive, session)
    session.close()


@pytest.mark.full
def test_s5_rejected_credentials(authenticated_archive):
    session = ControlSession(authenticated_archive, credentials=b"stranger")
    until(lambda: len(session.received(session.connect_request)) >= 2, "the repeated error")
    assert set(summary(session.received(session.connect_request))) == {"AUTHENTICATION_REJECTED"}
    assert set(summary(session.until_end())) == {"AUTHENTICATION_REJECTED"}


def test_s6_the_challenge_response_has_a_new_correlation_id(authenticated_archive):
    session = ControlSession(authenticated_archive, credentials=b"guest")
    challenge = session.response(session.connect_request)
    assert isinstance(challenge, Challenge)
    assert challenge.encoded_challenge == b"which word?"
    response = session.request(ChallengeResponse, encoded_credentials=b"the word")
    assert response.code == ControlResponseCode.OK
    assert response.relevant_id == session.control_session_id
    assert session.ok(ArchiveIdRequest) is not None
    session.close()


def test_s6_a_wrong_challenge_response_is_rejected(authenticated_archive):
    session = ControlSession(authenticated_archive, credentials=b"guest")
    error = session.refused(ChallengeResponse, encoded_credentials=b"a guess")
    assert error == ErrorCode.AUTHENTICATION_REJECTED


@pytest.mark.full
def test_s7_a_challenge_without_a_response(authenticated_archive):
    start_s = time.monotonic()
    session = ControlSession(authenticated_archive, credentials=b"guest")
    received = session.until_end()
    assert time.monotonic() - start_s > CONNECT_TIMEOUT_S - TICK_S
    assert set(summary(received)) == {"Challenge"}
    challenges = {(each.correlation_id, each.encoded_challenge) for each in received}
    assert challenges == {(session.connect_request, b"which word?")}
    until(lambda: not session.publication.is_connected, "the end of the request channel")
    until(
        lambda: session_counter(authenticated_archive, session.control_session_id) is None,
        "the end of its counter",
    )


def test_s8_an_unauthorised_request_is_rejected(authenticated_archive):
    session = ControlSession(authenticated_archive, credentials=b"reader")
    error = session.refused(TruncateRecordingRequest, recording_id=0, position=0)
    assert error == ErrorCode.UNAUTHORISED_ACTION
    assert session.refused(StopPositionRequest, recording_id=0) == ErrorCode.UNKNOWN_RECORDING
    other = ControlSession(authenticated_archive, credentials=b"writer")
    error = other.refused(TruncateRecordingRequest, recording_id=0, position=0)
    assert error == ErrorCode.UNKNOWN_RECORDING
    session.close()
    other.close()


def test_s9_requests_of_a_session_are_accepted_only_from_its_publication(archive, session):
    unknown = session.send(StartPositionRequest, recording_id=0, control_session_id=123_456_789_012)
    other = ControlSession(archive)
    foreign = other.send(
        StartPositionRequest, recording_id=0, control_session_id=session.control_session_id
    )
    other.offer(CloseSessionRequest(control_session_id=session.control_session_id))
    assert other.were_ignored(foreign)
    assert session.were_ignored(unknown, foreign)
    other.close()


def test_s10_an_active_session_is_pinged(short_timeout_archive):
    session = ControlSession(short_timeout_archive)
    session.send(KeepAliveRequest, correlation_id=-1)
    until(lambda: len(session.messages(Ping)) >= 3, "pings")
    pings = [received for received in session.all if isinstance(received.message, Ping)]
    assert {received.length for received in pings} == {16}
    assert {received.message.control_session_id for received in pings} == {
        session.control_session_id
    }
    session.close()


def test_s11_the_archive_id_is_that_of_the_mark_file(archive, session):
    archive_id = session.ok(ArchiveIdRequest)
    mark = (archive.directory / "archive-mark.dat").read_bytes()[64:72]
    assert archive_id == int.from_bytes(mark, "little", signed=True)


def test_s12_a_closed_session_has_no_counter_and_sends_nothing(archive):
    session = ControlSession(archive)
    session.ok(ArchiveIdRequest)
    count = len(session.messages(ControlResponse))
    assert session_counter(archive, session.control_session_id) is not None
    session.offer(CloseSessionRequest(control_session_id=session.control_session_id))
    session.until_end()
    until(
        lambda: session_counter(archive, session.control_session_id) is None,
        "the end of its counter",
    )
    assert len(session.messages(ControlResponse)) == count
    session.close()
