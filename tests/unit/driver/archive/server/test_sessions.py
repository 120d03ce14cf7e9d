"""Control sessions: connect, versions, authentication, liveness, end. Cases S1 to S12."""

import pytest

from tests.unit.driver.archive.server.own_archive import (
    CONTROL_STREAM,
    LOCAL,
    Err,
    Ok,
    Talker,
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


class Challenger:
    """An authenticator that challenges every client for a word."""

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


class OnlyQuestions(DenyAll):
    """An authorisation service that allows only queries."""

    def is_authorised(self, protocol_id, action_id, type_id, principal):
        return action_id in (ArchiveIdRequest.TEMPLATE_ID, KeepAliveRequest.TEMPLATE_ID)


class Broken(Challenger):
    """An authenticator whose methods raise errors."""

    def on_connected_session(self, session, now_ms):
        if self.known[session.session_id] == b"friend":
            session.authenticate(b"")
        else:
            raise ValueError("what is that?")

    def is_authorised(self, protocol_id, action_id, type_id, principal):
        raise KeyError(action_id)


def test_connect_is_answered_with_the_session_and_the_version(own):
    talker = Talker(own)
    answer = talker.connect()
    assert answer.code == ControlResponseCode.OK
    assert answer.relevant_id == answer.control_session_id
    assert answer.version == PROTOCOL_VERSION
    (counter,) = [each for each in talker.client.counters if each.type_id == 113]
    assert counter.value == answer.control_session_id
    assert counter.label == (
        "control-session: name=test sourceIdentity=aeron:ipc "
        f"sessionId={talker.requests.session_id} - archiveId=77"
    )
    assert counter.reference_id == talker.responses.images[0].correlation_id


def test_a_client_without_a_name_leaves_no_gap_in_the_counters_label(own):
    talker = Talker(own)
    talker.connect(client_info="")
    (counter,) = [each for each in talker.client.counters if each.type_id == 113]
    assert counter.label.startswith("control-session: sourceIdentity=aeron:ipc sessionId=")


@pytest.mark.parametrize("letter", [b"n", b"\xe9", b"\xff"])
def test_a_clients_name_of_any_bytes_fits_into_the_counters_label(own, letter):
    talker = Talker(own)
    request = talker.connect_request(client_info="#" * 400)
    talker.post(encode(request).replace(b"#", letter))
    answer = own.until(lambda: talker.answer(request.correlation_id))
    assert answer.code == ControlResponseCode.OK
    (counter,) = [each for each in talker.client.counters if each.type_id == 113]
    assert len(counter.label) == 380
    assert counter.label.endswith("archiveId=77")


def test_a_request_longer_than_any_client_sends_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(control_sessions, "REQUEST_LENGTH_MAX", 4_000)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = Talker(own)
        talker.post(encode(talker.connect_request(client_info="#" * 4_000)))
        own.run_for(SECOND)
        assert talker.said == []
        assert len(own.archive._conductor._sessions._sessions) == 0
        assert talker.connect(client_info="#" * 3_000).code == ControlResponseCode.OK


def test_the_answer_is_repeated_until_the_first_request(own, talker):
    own.run_for(1_500_000_000)
    repeated = len(talker.said)
    assert 7 <= repeated <= 9
    talker.send(KeepAliveRequest)
    own.run_for(SECOND)
    assert len(talker.said) <= repeated + 1


def test_an_older_minor_version_is_served(own):
    answer = Talker(own).connect(version=semantic_version(1, 0, 0))
    assert answer.code == ControlResponseCode.OK


def test_another_major_version_is_refused_and_given_up(own):
    talker = Talker(own)
    answer = talker.connect(version=semantic_version(2, 0, 0))
    assert answer.code == ControlResponseCode.ERROR
    assert answer.relevant_id == answer.control_session_id
    own.run_for(4 * SECOND)
    assert len(talker.said) > 15
    assert talker.requests.is_connected
    own.until(lambda: not talker.responses.images)
    own.until(lambda: not talker.requests.is_connected, turns=30_000)
    assert not [each for each in talker.client.counters if each.type_id == 113]


def test_rejected_credentials_are_told_until_the_time_is_up(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, authenticator_supplier=f"{HERE}:Challenger") as own:
        talker = Talker(own)
        assert talker.connect(encoded_credentials=b"never") == Err(10)
        own.run_for(4 * SECOND)
        assert talker.responses.images
        own.until(lambda: not talker.responses.images)
        assert all(each == Err(10) for each in talker.said)


def test_a_challenge_is_answered_with_a_new_id(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, authenticator_supplier=f"{HERE}:Challenger") as own:
        talker = Talker(own)
        request = talker.connect_request()
        talker.post(encode(request))
        challenge = own.until(lambda: next(iter(talker.said), None))
        assert isinstance(challenge, Challenge)
        assert challenge.encoded_challenge == b"word?"
        assert challenge.correlation_id == request.correlation_id
        talker.session_id = challenge.control_session_id
        answer = talker.ask(ChallengeResponse, encoded_credentials=b"word")
        assert answer == Ok(talker.session_id)
        assert answer.correlation_id != request.correlation_id


def test_a_challenge_is_not_answered_by_another_publication(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, authenticator_supplier=f"{HERE}:Challenger") as own:
        talker, stranger = Talker(own), Talker(own, response_stream=21)
        talker.post(encode(talker.connect_request()))
        challenge = own.until(lambda: next(iter(talker.said), None))
        talker.session_id = stranger.session_id = challenge.control_session_id
        stranger.send(ChallengeResponse, encoded_credentials=b"word")
        own.run_for(SECOND)
        assert talker.said == [challenge]
        assert talker.ask(ChallengeResponse, encoded_credentials=b"word") == Ok(talker.session_id)


def test_a_challenge_without_an_answer_ends_the_session(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, authenticator_supplier=f"{HERE}:Challenger") as own:
        talker = Talker(own)
        talker.post(encode(talker.connect_request()))
        own.run_for(4 * SECOND)
        assert talker.responses.images
        own.until(lambda: not talker.responses.images)
        assert [type(each) for each in talker.said] == [Challenge]


def test_what_is_not_allowed_is_refused_and_the_session_goes_on(tmp_path, monkeypatch):
    supplier = f"{HERE}:OnlyQuestions"
    with own_archive(tmp_path, monkeypatch, authorisation_service_supplier=supplier) as own:
        talker = own.talk()
        assert talker.ask(StartPositionRequest, recording_id=0) == Err(13)
        assert talker.ask(ArchiveIdRequest) == Ok(77)


def test_another_session_or_publication_gets_no_answer(own):
    talker, stranger = own.talk(), own.talk(response_stream=21)
    own_id = talker.session_id
    talker.session_id = own_id + 1_000
    nobody = talker.send(ArchiveIdRequest)
    talker.session_id = own_id
    stranger.session_id = own_id
    other = stranger.send(ArchiveIdRequest)
    stranger.send(CloseSessionRequest)
    assert talker.ask(ArchiveIdRequest) == Ok(77)
    assert not talker.answers(nobody)
    assert not talker.answers(other)
    assert not stranger.answers(other)


def test_an_idle_session_is_pinged_every_second(own, talker):
    talker.ask(ArchiveIdRequest)
    talker.pings = 0
    own.run_for(5 * SECOND)
    assert 4 <= talker.pings <= 5


def test_a_closed_session_is_gone_without_an_answer(own, talker):
    talker.ask(ArchiveIdRequest)
    before = len(talker.said)
    talker.send(CloseSessionRequest)
    own.until(lambda: not talker.responses.images)
    own.until(lambda: not [each for each in talker.client.counters if each.type_id == 113])
    assert len(talker.said) == before
    assert own.errors == []


def test_a_client_that_takes_no_answers_for_too_long_is_given_up(own, talker):
    own.talkers.remove(talker)
    for _ in range(2_000):
        talker.requests.offer(
            encode(
                ListRecordingRequest(
                    control_session_id=talker.session_id, correlation_id=1, recording_id=5
                )
            )
        )
        own.step()
    own.run_for(6 * SECOND)
    assert any("timeout sending a response" in each for each in own.errors)
    other = own.talk(response_stream=22)
    assert other.ask(ArchiveIdRequest) == Ok(77)


@pytest.mark.parametrize("name", ["nobody:here", "no-module", f"{HERE}:Talker", "builtins:dict"])
def test_an_authenticator_that_is_none_is_refused_at_start(tmp_path, monkeypatch, name):
    with (
        pytest.raises(ConfigurationError, match="AERON_ARCHIVE_AUTHENTICATOR_SUPPLIER"),
        own_archive(tmp_path, monkeypatch, authenticator_supplier=name),
    ):
        pass


def test_an_authenticator_that_fails_harms_its_session_alone(tmp_path, monkeypatch):
    name = f"{HERE}:Broken"
    with own_archive(
        tmp_path, monkeypatch, authenticator_supplier=name, authorisation_service_supplier=name
    ) as own:
        victim = Talker(own)
        victim.post(encode(victim.connect_request()))
        own.until(lambda: any("what is that?" in each for each in own.errors))
        friend = Talker(own, response_stream=21)
        friend.connect(encoded_credentials=b"friend")
        asked = friend.send(ArchiveIdRequest)
        own.run_for(SECOND)
        assert not friend.answers(asked)
        assert any(f"KeyError({ArchiveIdRequest.TEMPLATE_ID})" in each for each in own.errors)
        assert friend.responses.images
        own.until(lambda: not victim.responses.images)


def test_what_a_client_had_begun_to_say_goes_with_it(own, talker):
    ((_, assembler),) = own.archive._conductor._sessions._subscriptions
    for _ in range(3):
        stranger = talker.client.add_exclusive_publication(LOCAL, CONTROL_STREAM)
        own.until(lambda stranger=stranger: stranger.is_connected)
        # The first fragment of a message whose second is never sent.
        fragment = FRAME.pack(
            64, 0, BEGIN, DATA, 0, stranger.session_id, CONTROL_STREAM,
            stranger.initial_term_id, 0,
        )  # fmt: skip
        assert stranger.offer_block(fragment + bytes(32)) == 64
        own.run_for(SECOND)
        assert len(assembler._messages) == 1
        stranger.close()
        own.until(lambda: not assembler._messages, turns=20_000)


def test_an_error_that_nobody_foresaw_costs_one_message_and_is_told_whole(own, talker, monkeypatch):
    own.has_defect = True
    stranger = Talker(own, response_stream=33)
    with monkeypatch.context() as patch:
        patch.setattr(control_sessions, "ControlSession", lambda *_: 1 // 0)
        stranger.post(encode(stranger.connect_request()))
        own.run_for(SECOND)
    assert talker.ask(ArchiveIdRequest) == Ok(77)
    assert stranger.connect().code == ControlResponseCode.OK
    (told,) = [text for text in own.errors if "Traceback" in text]
    assert "AuthConnectRequest: Traceback" in told
    assert "ZeroDivisionError" in told
