"""Control sessions: authentication, unsolicited messages, and the end of a session. Cases S1 to
S12.
"""

import time

import pytest

from tests.archive.archives import until
from tests.archive.conversation import ANY_PORT, LOCAL, Conversation, shape
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
"""The connect timeout of the fixtures `impatient` and `guarded`."""
TICK_S = 0.01
"""The coarsest resolution of a clock."""


def session_counter(archive, control_session_id):
    """Return the counter of a session, or None."""
    own = control_session_id.to_bytes(8, "little", signed=True)
    for each in archive.aeron.counters:
        if each.type_id == SESSION_TYPE_ID and each.key[8:16] == own:
            return each
    return None


def let_in(archive, talk):
    """Check that a session was accepted and receives responses."""
    answer = talk.answer(talk.connecting)
    assert answer.code == ControlResponseCode.OK
    assert answer.relevant_id == answer.control_session_id > 0
    assert answer.version == PROTOCOL_VERSION == 68_608
    assert session_counter(archive, answer.control_session_id).value == answer.relevant_id
    talk.ok(ArchiveIdRequest)


@pytest.mark.parametrize("is_local", [True, False], ids=["ipc", "udp"])
def test_s1_everybody_is_let_in(archive, is_local):
    request = LOCAL if is_local else f"{archive.control_channel}|term-length=64k"
    response = LOCAL if is_local else ANY_PORT
    talk = Conversation(archive, request_channel=request, response_channel=response)
    let_in(archive, talk)
    talk.close()


def test_s2_the_first_answer_is_repeated_until_a_request_comes(talk):
    until(lambda: len(talk.heard(talk.connecting)) >= 4, "four times the same answer")
    first, *others = talk.heard(talk.connecting, ControlResponse)
    assert all(each == first for each in others)
    talk.ok(ArchiveIdRequest)
    count = len(talk.heard(talk.connecting))
    until(lambda: talk.messages(Ping), "the sign that the session is active")
    assert len(talk.heard(talk.connecting)) == count


@pytest.mark.full
def test_s3_another_major_version_is_turned_away(impatient):
    talk = Conversation(impatient, version=semantic_version(2, 0, 0))
    until(lambda: len(talk.heard(talk.connecting)) >= 3, "the refusal, repeated")
    for each in talk.until_end():
        assert each.correlation_id == talk.connecting
        assert each.code == ControlResponseCode.ERROR
        assert each.relevant_id == each.control_session_id
        assert "2.0.0" in each.error_message
    until(lambda: not talk.publication.is_connected, "the end of the request channel")


def test_s4_another_minor_version_is_let_in(archive):
    talk = Conversation(archive, version=semantic_version(1, 0, 0))
    let_in(archive, talk)
    talk.close()


@pytest.mark.full
def test_s5_rejected_credentials(guarded):
    talk = Conversation(guarded, credentials=b"stranger")
    until(lambda: len(talk.heard(talk.connecting)) >= 2, "the refusal, repeated")
    assert set(shape(talk.heard(talk.connecting))) == {"AUTHENTICATION_REJECTED"}
    assert set(shape(talk.until_end())) == {"AUTHENTICATION_REJECTED"}


def test_s6_a_challenge_is_answered_with_a_new_correlation_id(guarded):
    talk = Conversation(guarded, credentials=b"guest")
    challenge = talk.answer(talk.connecting)
    assert isinstance(challenge, Challenge)
    assert challenge.encoded_challenge == b"which word?"
    answer = talk.ask(ChallengeResponse, encoded_credentials=b"the word")
    assert answer.code == ControlResponseCode.OK
    assert answer.relevant_id == talk.control_session_id
    assert talk.ok(ArchiveIdRequest) is not None
    talk.close()


def test_s6_a_wrong_answer_is_rejected(guarded):
    talk = Conversation(guarded, credentials=b"guest")
    refusal = talk.refused(ChallengeResponse, encoded_credentials=b"a guess")
    assert refusal == ErrorCode.AUTHENTICATION_REJECTED


@pytest.mark.full
def test_s7_a_challenge_without_an_answer(guarded):
    asked_s = time.monotonic()
    talk = Conversation(guarded, credentials=b"guest")
    heard = talk.until_end()
    assert time.monotonic() - asked_s > CONNECT_TIMEOUT_S - TICK_S
    assert set(shape(heard)) == {"Challenge"}
    said = {(each.correlation_id, each.encoded_challenge) for each in heard}
    assert said == {(talk.connecting, b"which word?")}
    until(lambda: not talk.publication.is_connected, "the end of the request channel")
    until(lambda: session_counter(guarded, talk.control_session_id) is None, "its counter's end")


def test_s8_what_one_may_not_do_is_refused(guarded):
    talk = Conversation(guarded, credentials=b"reader")
    refusal = talk.refused(TruncateRecordingRequest, recording_id=0, position=0)
    assert refusal == ErrorCode.UNAUTHORISED_ACTION
    assert talk.refused(StopPositionRequest, recording_id=0) == ErrorCode.UNKNOWN_RECORDING
    other = Conversation(guarded, credentials=b"writer")
    refusal = other.refused(TruncateRecordingRequest, recording_id=0, position=0)
    assert refusal == ErrorCode.UNKNOWN_RECORDING
    talk.close()
    other.close()


def test_s9_only_a_sessions_own_publication_is_heard(archive, talk):
    unknown = talk.send(StartPositionRequest, recording_id=0, control_session_id=123_456_789_012)
    other = Conversation(archive)
    foreign = other.send(
        StartPositionRequest, recording_id=0, control_session_id=talk.control_session_id
    )
    other.offer(CloseSessionRequest(control_session_id=talk.control_session_id))
    assert other.nothing_came_of(foreign)
    assert talk.nothing_came_of(unknown, foreign)
    other.close()


def test_s10_an_active_session_is_pinged(impatient):
    talk = Conversation(impatient)
    talk.send(KeepAliveRequest, correlation_id=-1)
    until(lambda: len(talk.messages(Ping)) >= 3, "pings")
    pings = [heard for heard in talk.all if isinstance(heard.message, Ping)]
    assert {heard.length for heard in pings} == {16}
    assert {heard.message.control_session_id for heard in pings} == {talk.control_session_id}
    talk.close()


def test_s11_an_archive_tells_its_id(archive, talk):
    archive_id = talk.ok(ArchiveIdRequest)
    mark = (archive.directory / "archive-mark.dat").read_bytes()[64:72]
    assert archive_id == int.from_bytes(mark, "little", signed=True)


def test_s12_a_closed_session_is_gone(archive):
    talk = Conversation(archive)
    talk.ok(ArchiveIdRequest)
    heard = len(talk.messages(ControlResponse))
    assert session_counter(archive, talk.control_session_id) is not None
    talk.offer(CloseSessionRequest(control_session_id=talk.control_session_id))
    talk.until_end()
    until(lambda: session_counter(archive, talk.control_session_id) is None, "its counter's end")
    assert len(talk.messages(ControlResponse)) == heard
    talk.close()
