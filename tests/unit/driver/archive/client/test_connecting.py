"""The steps of connecting: what is sent, what is ignored, how it fails."""

import pytest

from tests.unit.driver.archive.client.scripted_archive import ARCHIVE_ID, SESSION_ID, error, ok
from windtunnel.driver.archive.client import ArchiveError, ArchiveTimeoutError, ConnectState
from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    PROTOCOL_VERSION,
    ErrorCode,
    semantic_version,
)
from windtunnel.driver.archive.protocol.requests import (
    ArchiveIdRequest,
    AuthConnectRequest,
    ChallengeResponse,
    CloseSessionRequest,
    KeepAliveRequest,
)
from windtunnel.driver.archive.protocol.responses import Challenge
from windtunnel.driver.channel import uri
from windtunnel.driver.client import RegistrationError
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode


def test_a_session_is_opened(on_stage):
    client = on_stage.connect(client_name="me", credentials=b"secret")
    assert (client.control_session_id, client.archive_id) == (SESSION_ID, ARCHIVE_ID)
    on_stage.until(lambda: on_stage.archive.of(KeepAliveRequest))
    assert on_stage.archive.kinds == ["AuthConnectRequest", "ArchiveIdRequest", "KeepAliveRequest"]
    (request,) = on_stage.archive.of(AuthConnectRequest)
    assert request.version == PROTOCOL_VERSION
    assert request.encoded_credentials == b"secret"
    assert request.client_info.startswith("name=me version=1.53.0 commit=")
    channel = uri.parse(request.response_channel)
    found = {key: channel.get(key) for key in ("term-length", "mtu", "sparse")}
    assert found == {"term-length": "65536", "mtu": "1408", "sparse": "true"}
    assert channel.int32("session-id") == client.session.publication.session_id
    (keep_alive,) = on_stage.archive.of(KeepAliveRequest)
    assert (keep_alive.control_session_id, keep_alive.correlation_id) == (SESSION_ID, NULL_VALUE)
    client.close()
    on_stage.until(lambda: on_stage.archive.of(CloseSessionRequest))


def test_the_states_come_in_their_order(on_stage):
    connecting, seen = on_stage.connecting(), []

    def is_there():
        if connecting.state not in seen:
            seen.append(connecting.state)
        return connecting.poll()

    session = on_stage.until(is_there)
    assert seen == [ConnectState(number) for number in range(8)]
    assert connecting.state is ConnectState.DONE
    assert connecting.poll() is session
    connecting.close()
    assert not session.is_closed
    session.close()


def test_an_older_archive_is_not_asked_for_its_id(on_stage):
    on_stage.archive.script[AuthConnectRequest] = lambda request: [
        ok(request, SESSION_ID, version=semantic_version(1, 10, 0))
    ]
    with on_stage.connect() as client:
        assert client.archive_id == NULL_VALUE
    assert not on_stage.archive.of(ArchiveIdRequest)


def test_repeated_answers_are_passed_over(on_stage):
    on_stage.archive.script[AuthConnectRequest] = lambda request: 5 * [ok(request, SESSION_ID)]
    with on_stage.connect() as client:
        assert client.archive_id == ARCHIVE_ID
        assert client.request_archive_id() == ARCHIVE_ID


def test_a_challenge_is_answered_with_a_new_correlation_id(on_stage):
    on_stage.archive.script |= {
        AuthConnectRequest: lambda request: [
            Challenge(
                control_session_id=SESSION_ID, correlation_id=request.correlation_id,
                version=-559_038_737, encoded_challenge=b"who?",
            )
        ],
        ChallengeResponse: lambda request: [ok(request, SESSION_ID)],
    }  # fmt: skip
    with on_stage.connect(on_challenge=lambda asked: b"me, " + asked) as client:
        assert client.archive_id == ARCHIVE_ID
    (first,), (answer,) = (
        on_stage.archive.of(kind) for kind in (AuthConnectRequest, ChallengeResponse)
    )
    assert answer.encoded_credentials == b"me, who?"
    assert answer.correlation_id != first.correlation_id


def test_a_refusal_closes_everything(on_stage):
    on_stage.archive.script[AuthConnectRequest] = lambda request: [
        error(request, ErrorCode.AUTHENTICATION_REJECTED)
    ]
    with pytest.raises(ArchiveError, match=r"AUTHENTICATION_REJECTED \(10\): because") as refusal:
        on_stage.connect()
    assert refusal.value.code == ErrorCode.AUTHENTICATION_REJECTED
    on_stage.until(lambda: on_stage.archive.of(CloseSessionRequest))
    on_stage.until(lambda: not on_stage.archive.publication.is_connected)
    on_stage.until(lambda: not on_stage.archive.subscription.is_connected)


def test_nobody_listens(on_stage):
    on_stage.archive.subscription.close()
    with pytest.raises(ArchiveTimeoutError, match="AWAIT_PUBLICATION_CONNECTED"):
        on_stage.connect()


def test_nobody_answers(on_stage):
    on_stage.archive.script.clear()
    with pytest.raises(ArchiveTimeoutError, match="2000 ms, state AWAIT_CONNECT_RESPONSE"):
        on_stage.connect()
    on_stage.until(lambda: not on_stage.archive.publication.is_connected)


def test_giving_up_in_the_middle_leaves_nothing(on_stage):
    connecting = on_stage.connecting()
    on_stage.until(
        lambda: connecting.poll() or connecting.state is ConnectState.AWAIT_PUBLICATION_CONNECTED
    )
    connecting.close()
    on_stage.until(lambda: not on_stage.archive.subscription.is_connected)
    waiting = on_stage.connecting()
    waiting.poll()
    waiting.close()
    assert not on_stage.aeron.has_active_commands or on_stage.until(
        lambda: not on_stage.aeron.has_active_commands
    )


def test_what_the_driver_refuses_only_for_now_is_asked_again(on_stage, monkeypatch):
    refusals = [RegistrationError(DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE, "later")]
    look = on_stage.aeron.get_subscription

    def looked(registration_id):
        if refusals:
            on_stage.aeron.abandon(registration_id)
            raise refusals.pop()
        return look(registration_id)

    monkeypatch.setattr(on_stage.aeron, "get_subscription", looked)
    with on_stage.connect() as client:
        assert client.archive_id == ARCHIVE_ID
    refusals.append(RegistrationError(DriverErrorCode.INVALID_CHANNEL, "never"))
    with pytest.raises(RegistrationError, match="never"):
        on_stage.connect()
