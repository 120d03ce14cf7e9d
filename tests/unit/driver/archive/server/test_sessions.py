"""Control sessions: connect, versions, authentication, liveness, close. Cases S1 to S12."""

import pytest

from tests.unit.driver.archive.server.own_archive import (
    CONTROL_STREAM,
    LOCAL,
    ControlClient,
    Err,
    Ok,
    own_archive,
)
from tests.unit.driver.archive.storage.own_recording import DATA, FRAME
from windtunnel.driver.archive.control import control_sessions
from windtunnel.driver.archive.control.authentication import DenyAll
from windtunnel.driver.archive.protocol.codec import encode
from windtunnel.driver.archive.protocol.codes import (
    PROTOCOL_VERSION,
    ControlResponseCode,
    semantic_version,
)
from windtunnel.driver.archive.protocol.requests import (
    ArchiveIdRequest,
    ChallengeResponse,
    CloseSessionRequest,
    KeepAliveRequest,
    ListRecordingRequest,
    StartPositionRequest,
)
from windtunnel.driver.archive.protocol.responses import Challenge
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.client.image.header import BEGIN

SECOND = 1_000_000_000
HERE = "tests.unit.driver.archive.server.test_sessions"


class ChallengingAuthenticator:
    """An authenticator that challenges every client for a password."""

    def __init__(self):
        self.known = {}

    def on_connect_request(self, session_id, credentials, now_ms):
        self.known[session_id] = credentials

    def on_challenge_response(self, session_id, credentials, now_ms):
        self.known[session_id] = credentials

    def on_connected_session(self, session, now_ms):
        if self.known[session.session_id] == b"never":
            session.reject()
        else:
            session.challenge(b"word?")

    def on_challenged_session(self, session, now_ms):
        if self.known[session.session_id] == b"word":
            session.authenticate(b"friend")


class OnlyQueries(DenyAll):
    """An authorisation service that allows only queries."""

    def is_authorised(self, protocol_id, action_id, type_id, principal):
        return action_id in (ArchiveIdRequest.TEMPLATE_ID, KeepAliveRequest.TEMPLATE_ID)


class Broken(ChallengingAuthenticator):
    """An authenticator whose methods raise errors."""

    def on_connected_session(self, session, now_ms):
        if self.known[session.session_id] == b"friend":
            session.authenticate(b"")
        else:
            raise ValueError("what is that?")

    def is_authorised(self, protocol_id, action_id, type_id, principal):
        raise KeyError(action_id)


def test_the_response_to_a_connect_request_has_the_session_and_the_version(env):
    client = ControlClient(env)
    response = client.connect()
    assert response.code == ControlResponseCode.OK
    assert response.relevant_id == response.control_session_id
    assert response.version == PROTOCOL_VERSION
    (counter,) = [each for each in client.aeron.counters if each.type_id == 113]
    assert counter.value == response.control_session_id
    assert counter.label == (
        "control-session: name=test sourceIdentity=aeron:ipc "
        f"sessionId={client.requests.session_id} - archiveId=77"
    )
    assert counter.reference_id == client.responses.images[0].correlation_id


def test_the_counter_label_of_a_client_without_a_name_has_no_gap(env):
    client = ControlClient(env)
    client.connect(client_info="")
    (counter,) = [each for each in client.aeron.counters if each.type_id == 113]
    assert counter.label.startswith("control-session: sourceIdentity=aeron:ipc sessionId=")


@pytest.mark.parametrize("letter", [b"n", b"\xe9", b"\xff"])
def test_the_counter_label_shortens_a_client_name_of_any_bytes(env, letter):
    client = ControlClient(env)
    request = client.connect_request(client_info="#" * 400)
    client.post(encode(request).replace(b"#", letter))
    response = env.until(lambda: client.response_to(request.correlation_id))
    assert response.code == ControlResponseCode.OK
    (counter,) = [each for each in client.aeron.counters if each.type_id == 113]
    assert len(counter.label) == 380
    assert counter.label.endswith("archiveId=77")


def test_a_request_longer_than_the_limit_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(control_sessions, "REQUEST_LENGTH_MAX", 4_000)
    with own_archive(tmp_path, monkeypatch) as env:
        client = ControlClient(env)
        client.post(encode(client.connect_request(client_info="#" * 4_000)))
        env.run_for(SECOND)
        assert client.received == []
        assert len(env.archive._conductor._sessions._sessions) == 0
        assert client.connect(client_info="#" * 3_000).code == ControlResponseCode.OK


def test_the_connect_response_is_repeated_until_the_first_request(env, client):
    env.run_for(1_500_000_000)
    repeated = len(client.received)
    assert 7 <= repeated <= 9
    client.send(KeepAliveRequest)
    env.run_for(SECOND)
    assert len(client.received) <= repeated + 1


def test_an_older_minor_version_is_accepted(env):
    response = ControlClient(env).connect(version=semantic_version(1, 0, 0))
    assert response.code == ControlResponseCode.OK


def test_another_major_version_is_rejected_and_its_session_times_out(env):
    client = ControlClient(env)
    response = client.connect(version=semantic_version(2, 0, 0))
    assert response.code == ControlResponseCode.ERROR
    assert response.relevant_id == response.control_session_id
    env.run_for(4 * SECOND)
    assert len(client.received) > 15
    assert client.requests.is_connected
    env.until(lambda: not client.responses.images)
    env.until(lambda: not client.requests.is_connected, turns=30_000)
    assert not [each for each in client.aeron.counters if each.type_id == 113]


def test_the_rejection_of_credentials_is_repeated_until_the_timeout(tmp_path, monkeypatch):
    with own_archive(
        tmp_path, monkeypatch, authenticator_supplier=f"{HERE}:ChallengingAuthenticator"
    ) as env:
        client = ControlClient(env)
        assert client.connect(encoded_credentials=b"never") == Err(10)
        env.run_for(4 * SECOND)
        assert client.responses.images
        env.until(lambda: not client.responses.images)
        assert all(each == Err(10) for each in client.received)


def test_a_challenge_response_has_a_new_correlation_id(tmp_path, monkeypatch):
    with own_archive(
        tmp_path, monkeypatch, authenticator_supplier=f"{HERE}:ChallengingAuthenticator"
    ) as env:
        client = ControlClient(env)
        request = client.connect_request()
        client.post(encode(request))
        challenge = env.until(lambda: next(iter(client.received), None))
        assert isinstance(challenge, Challenge)
        assert challenge.encoded_challenge == b"word?"
        assert challenge.correlation_id == request.correlation_id
        client.session_id = challenge.control_session_id
        response = client.request(ChallengeResponse, encoded_credentials=b"word")
        assert response == Ok(client.session_id)
        assert response.correlation_id != request.correlation_id


def test_a_challenge_response_from_another_publication_is_ignored(tmp_path, monkeypatch):
    with own_archive(
        tmp_path, monkeypatch, authenticator_supplier=f"{HERE}:ChallengingAuthenticator"
    ) as env:
        client, other = ControlClient(env), ControlClient(env, response_stream=21)
        client.post(encode(client.connect_request()))
        challenge = env.until(lambda: next(iter(client.received), None))
        client.session_id = other.session_id = challenge.control_session_id
        other.send(ChallengeResponse, encoded_credentials=b"word")
        env.run_for(SECOND)
        assert client.received == [challenge]
        assert client.request(ChallengeResponse, encoded_credentials=b"word") == Ok(
            client.session_id
        )


def test_a_challenge_without_a_response_closes_the_session(tmp_path, monkeypatch):
    with own_archive(
        tmp_path, monkeypatch, authenticator_supplier=f"{HERE}:ChallengingAuthenticator"
    ) as env:
        client = ControlClient(env)
        client.post(encode(client.connect_request()))
        env.run_for(4 * SECOND)
        assert client.responses.images
        env.until(lambda: not client.responses.images)
        assert [type(each) for each in client.received] == [Challenge]


def test_an_unauthorised_request_is_rejected_and_the_session_stays_open(tmp_path, monkeypatch):
    supplier = f"{HERE}:OnlyQueries"
    with own_archive(tmp_path, monkeypatch, authorisation_service_supplier=supplier) as env:
        client = env.connect_client()
        assert client.request(StartPositionRequest, recording_id=0) == Err(13)
        assert client.request(ArchiveIdRequest) == Ok(77)


def test_a_request_with_the_wrong_session_or_publication_gets_no_response(env):
    client, other = env.connect_client(), env.connect_client(response_stream=21)
    own_id = client.session_id
    client.session_id = own_id + 1_000
    wrong_session = client.send(ArchiveIdRequest)
    client.session_id = own_id
    other.session_id = own_id
    wrong_publication = other.send(ArchiveIdRequest)
    other.send(CloseSessionRequest)
    assert client.request(ArchiveIdRequest) == Ok(77)
    assert not client.responses_to(wrong_session)
    assert not client.responses_to(wrong_publication)
    assert not other.responses_to(wrong_publication)


def test_an_idle_session_is_pinged_every_second(env, client):
    client.request(ArchiveIdRequest)
    client.pings = 0
    env.run_for(5 * SECOND)
    assert 4 <= client.pings <= 5


def test_a_close_request_closes_the_session_without_a_response(env, client):
    client.request(ArchiveIdRequest)
    before = len(client.received)
    client.send(CloseSessionRequest)
    env.until(lambda: not client.responses.images)
    env.until(lambda: not [each for each in client.aeron.counters if each.type_id == 113])
    assert len(client.received) == before
    assert env.errors == []


def test_a_client_that_reads_no_responses_times_out(env, client):
    env.clients.remove(client)
    for _ in range(2_000):
        client.requests.offer(
            encode(
                ListRecordingRequest(
                    control_session_id=client.session_id, correlation_id=1, recording_id=5
                )
            )
        )
        env.step()
    env.run_for(6 * SECOND)
    assert any("timeout sending a response" in each for each in env.errors)
    other = env.connect_client(response_stream=22)
    assert other.request(ArchiveIdRequest) == Ok(77)


@pytest.mark.parametrize(
    "name", ["nobody:here", "no-module", f"{HERE}:ControlClient", "builtins:dict"]
)
def test_an_invalid_authenticator_is_rejected_at_start(tmp_path, monkeypatch, name):
    with (
        pytest.raises(ConfigurationError, match="AERON_ARCHIVE_AUTHENTICATOR_SUPPLIER"),
        own_archive(tmp_path, monkeypatch, authenticator_supplier=name),
    ):
        pass


def test_an_authenticator_error_affects_only_its_session(tmp_path, monkeypatch):
    name = f"{HERE}:Broken"
    with own_archive(
        tmp_path, monkeypatch, authenticator_supplier=name, authorisation_service_supplier=name
    ) as env:
        failing = ControlClient(env)
        failing.post(encode(failing.connect_request()))
        env.until(lambda: any("what is that?" in each for each in env.errors))
        other = ControlClient(env, response_stream=21)
        other.connect(encoded_credentials=b"friend")
        correlation_id = other.send(ArchiveIdRequest)
        env.run_for(SECOND)
        assert not other.responses_to(correlation_id)
        assert any(f"KeyError({ArchiveIdRequest.TEMPLATE_ID})" in each for each in env.errors)
        assert other.responses.images
        env.until(lambda: not failing.responses.images)


def test_an_incomplete_message_is_discarded_when_its_client_closes(env, client):
    ((_, assembler),) = env.archive._conductor._sessions._subscriptions
    for _ in range(3):
        publication = client.aeron.add_exclusive_publication(LOCAL, CONTROL_STREAM)
        env.until(lambda publication=publication: publication.is_connected)
        # The first fragment of a message whose second is never sent.
        fragment = FRAME.pack(
            64, 0, BEGIN, DATA, 0, publication.session_id, CONTROL_STREAM,
            publication.initial_term_id, 0,
        )  # fmt: skip
        assert publication.offer_block(fragment + bytes(32)) == 64
        env.run_for(SECOND)
        assert len(assembler._messages) == 1
        publication.close()
        env.until(lambda: not assembler._messages, turns=20_000)


def test_an_unexpected_error_drops_one_message_and_logs_its_traceback(env, client, monkeypatch):
    env.has_defect = True
    other = ControlClient(env, response_stream=33)
    with monkeypatch.context() as patch:
        patch.setattr(control_sessions, "ControlSession", lambda *_: 1 // 0)
        other.post(encode(other.connect_request()))
        env.run_for(SECOND)
    assert client.request(ArchiveIdRequest) == Ok(77)
    assert other.connect().code == ControlResponseCode.OK
    (error,) = [text for text in env.errors if "Traceback" in text]
    assert "AuthConnectRequest: Traceback" in error
    assert "ZeroDivisionError" in error
