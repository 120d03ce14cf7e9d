"""The states of a connection attempt: the requests sent, responses ignored, and failures."""

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


def test_a_session_is_opened(env):
    client = env.connect(client_name="me", credentials=b"secret")
    assert (client.control_session_id, client.archive_id) == (SESSION_ID, ARCHIVE_ID)
    env.until(lambda: env.archive.of(KeepAliveRequest))
    assert env.archive.kinds == ["AuthConnectRequest", "ArchiveIdRequest", "KeepAliveRequest"]
    (request,) = env.archive.of(AuthConnectRequest)
    assert request.version == PROTOCOL_VERSION
    assert request.encoded_credentials == b"secret"
    assert request.client_info.startswith("name=me version=1.53.0 commit=")
    channel = uri.parse(request.response_channel)
    found = {key: channel.get(key) for key in ("term-length", "mtu", "sparse")}
    assert found == {"term-length": "65536", "mtu": "1408", "sparse": "true"}
    assert channel.int32("session-id") == client.session.publication.session_id
    (keep_alive,) = env.archive.of(KeepAliveRequest)
    assert (keep_alive.control_session_id, keep_alive.correlation_id) == (SESSION_ID, NULL_VALUE)
    client.close()
    env.until(lambda: env.archive.of(CloseSessionRequest))


def test_the_states_follow_in_order(env):
    connecting, seen = env.connecting(), []

    def poll():
        if connecting.state not in seen:
            seen.append(connecting.state)
        return connecting.poll()

    session = env.until(poll)
    assert seen == [ConnectState(number) for number in range(8)]
    assert connecting.state is ConnectState.DONE
    assert connecting.poll() is session
    connecting.close()
    assert not session.is_closed
    session.close()


def test_an_older_archive_gets_no_archive_id_request(env):
    env.archive.script[AuthConnectRequest] = lambda request: [
        ok(request, SESSION_ID, version=semantic_version(1, 10, 0))
    ]
    with env.connect() as client:
        assert client.archive_id == NULL_VALUE
    assert not env.archive.of(ArchiveIdRequest)


def test_repeated_connect_responses_are_ignored(env):
    env.archive.script[AuthConnectRequest] = lambda request: 5 * [ok(request, SESSION_ID)]
    with env.connect() as client:
        assert client.archive_id == ARCHIVE_ID
        assert client.request_archive_id() == ARCHIVE_ID


def test_a_challenge_response_has_a_new_correlation_id(env):
    env.archive.script |= {
        AuthConnectRequest: lambda request: [
            Challenge(
                control_session_id=SESSION_ID, correlation_id=request.correlation_id,
                version=-559_038_737, encoded_challenge=b"who?",
            )
        ],
        ChallengeResponse: lambda request: [ok(request, SESSION_ID)],
    }  # fmt: skip
    with env.connect(on_challenge=lambda challenge: b"me, " + challenge) as client:
        assert client.archive_id == ARCHIVE_ID
    (first,), (response,) = (
        env.archive.of(kind) for kind in (AuthConnectRequest, ChallengeResponse)
    )
    assert response.encoded_credentials == b"me, who?"
    assert response.correlation_id != first.correlation_id


def test_a_rejection_closes_publication_and_subscription(env):
    env.archive.script[AuthConnectRequest] = lambda request: [
        error(request, ErrorCode.AUTHENTICATION_REJECTED)
    ]
    with pytest.raises(ArchiveError, match=r"AUTHENTICATION_REJECTED \(10\): because") as refusal:
        env.connect()
    assert refusal.value.code == ErrorCode.AUTHENTICATION_REJECTED
    env.until(lambda: env.archive.of(CloseSessionRequest))
    env.until(lambda: not env.archive.publication.is_connected)
    env.until(lambda: not env.archive.subscription.is_connected)


def test_connecting_without_a_control_subscription_times_out(env):
    env.archive.subscription.close()
    with pytest.raises(ArchiveTimeoutError, match="AWAIT_PUBLICATION_CONNECTED"):
        env.connect()


def test_connecting_without_a_response_times_out(env):
    env.archive.script.clear()
    with pytest.raises(ArchiveTimeoutError, match="2000 ms, state AWAIT_CONNECT_RESPONSE"):
        env.connect()
    env.until(lambda: not env.archive.publication.is_connected)


def test_closing_a_connection_attempt_releases_its_resources(env):
    connecting = env.connecting()
    env.until(
        lambda: connecting.poll() or connecting.state is ConnectState.AWAIT_PUBLICATION_CONNECTED
    )
    connecting.close()
    env.until(lambda: not env.archive.subscription.is_connected)
    waiting = env.connecting()
    waiting.poll()
    waiting.close()
    assert not env.aeron.has_active_commands or env.until(lambda: not env.aeron.has_active_commands)


def test_a_temporary_rejection_by_the_driver_is_retried(env, monkeypatch):
    refusals = [RegistrationError(DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE, "later")]
    get = env.aeron.get_subscription

    def fail_first(registration_id):
        if refusals:
            env.aeron.abandon(registration_id)
            raise refusals.pop()
        return get(registration_id)

    monkeypatch.setattr(env.aeron, "get_subscription", fail_first)
    with env.connect() as client:
        assert client.archive_id == ARCHIVE_ID
    refusals.append(RegistrationError(DriverErrorCode.INVALID_CHANNEL, "never"))
    with pytest.raises(RegistrationError, match="never"):
        env.connect()
