"""The archive serves its clients while the driver does not read commands.

The C driver reads no commands while it looks up a host name, which may take ten seconds.
"""

from contextlib import contextmanager

from tests.unit.driver.archive.server.own_archive import Err, Ok, Talker
from tests.unit.driver.archive.server.own_copy import SOURCE_ID, replicate, until_end
from tests.unit.driver.archive.server.own_stream import IPC, STREAM
from windtunnel.driver.archive.protocol.codec import encode
from windtunnel.driver.archive.protocol.codes import BooleanType, ErrorCode, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ArchiveIdRequest,
    ListRecordingSubscriptionsRequest,
    StartRecordingRequest2,
    StopRecordingRequest,
)
from windtunnel.driver.cnc import ring_buffer_reader

MS, SECOND = 1_000_000, 1_000_000_000


@contextmanager
def silent(monkeypatch):
    """Let the driver read no commands."""
    with monkeypatch.context() as patch:
        patch.setattr(ring_buffer_reader, "peek", lambda *_: (ring_buffer_reader.NO_MESSAGE, 0))
        yield


def send_start(talker, stream=STREAM, channel=IPC, *, auto_stop=False):
    return talker.send(
        StartRecordingRequest2, stream_id=stream, source_location=SourceLocation.LOCAL,
        auto_stop=BooleanType(auto_stop), channel=channel,
    )  # fmt: skip


def serves(own, talker):
    """Assert that the archive answers a request of `talker` without delay."""
    before_ns = own.clock.now_ns()
    assert talker.ask(ArchiveIdRequest) == Ok(77)
    assert own.clock.now_ns() - before_ns < 100 * MS


def in_flight(own):
    """Return the number of subscriptions that the archive has requested and not received."""
    registrations = own.archive._conductor._resources.client._conductor.commands.registrations
    return sum(each.is_awaiting for each in registrations._registrations.values())


def test_the_start_of_a_recording_waits_for_the_driver_alone(own, talker, monkeypatch):
    stranger = own.talk(response_stream=21)
    with silent(monkeypatch):
        started = send_start(stranger)
        own.run_for(2 * SECOND)
        serves(own, talker)
        assert not stranger.answers(started)
    assert own.until(lambda: stranger.answer(started)).code.name == "OK"
    publication = stranger.client.add_exclusive_publication(IPC, STREAM)
    stranger.publish(publication, 5)
    stranger.recorded(0, publication.position)


def test_recordings_go_on_while_a_start_waits(own, talker, monkeypatch):
    talker.start()
    publication = talker.client.add_exclusive_publication(IPC, STREAM)
    talker.recorded(0, talker.publish(publication, 5))
    stranger = own.talk(response_stream=21)
    with silent(monkeypatch):
        started = send_start(stranger, stream=STREAM + 1)
        own.run_for(SECOND)
        before_ns = own.clock.now_ns()
        talker.recorded(0, talker.publish(publication, 20, first=5))
        assert own.clock.now_ns() - before_ns < 100 * MS
        assert not stranger.answers(started)


def test_the_response_to_a_start_precedes_the_signal_of_its_recording(own, talker, monkeypatch):
    publication = talker.client.add_exclusive_publication(IPC, STREAM)
    with silent(monkeypatch):
        started = send_start(talker)
        own.run_for(SECOND)
    own.until(lambda: len(talker.about(started)) == 2)
    subscription_id = talker.answer(started).relevant_id
    assert talker.about(started) == [("OK", subscription_id), ("START", 0, 0)]
    assert publication.is_connected


def test_a_start_that_the_driver_refuses_is_answered_with_its_error(own, talker):
    started = send_start(talker, channel="aeron:udp?endpoint=10.0.0.1:70000")
    own.until(lambda: talker.answer(started))
    assert talker.answer(started) == Err(ErrorCode.GENERIC)
    assert talker.start().code.name == "OK"
    assert talker.start(stream=STREAM + 1).code.name == "OK"


def test_a_client_has_at_most_four_starts_at_the_driver(own, talker, monkeypatch):
    stranger = own.talk(response_stream=21)
    with silent(monkeypatch):
        before = in_flight(own)
        waiting = [send_start(stranger, stream=3_000 + number) for number in range(10)]
        own.run_for(SECOND)
        assert in_flight(own) - before == 4
        mine = send_start(talker)
        own.run_for(SECOND)
        assert in_flight(own) - before == 5
        serves(own, talker)
    assert own.until(lambda: talker.answer(mine)).code.name == "OK"
    own.until(lambda: all(stranger.answer(each) for each in waiting))
    assert {stranger.answer(each).code.name for each in waiting} == {"OK"}


def test_waiting_starts_count_as_concurrent_recordings(own, talker, monkeypatch):
    with silent(monkeypatch):
        limit = own.settings.max_concurrent_recordings
        waiting = [send_start(talker, stream=3_000 + number) for number in range(limit)]
        assert talker.start(stream=STREAM) == Err(ErrorCode.MAX_RECORDINGS)
        assert talker.start(stream=3_000) == Err(ErrorCode.MAX_RECORDINGS)
    own.until(lambda: all(talker.answer(each) for each in waiting))


def test_a_stream_whose_start_waits_can_be_stopped_and_started_again(own, talker, monkeypatch):
    with silent(monkeypatch):
        started = send_start(talker)
        assert talker.start() == Err(ErrorCode.ACTIVE_SUBSCRIPTION)
        assert talker.ask(StopRecordingRequest, stream_id=STREAM, channel=IPC) == Ok()
        assert "stopped" in own.until(lambda: talker.answer(started)).error_message
        again = send_start(talker)
    assert own.until(lambda: talker.answer(again)).code.name == "OK"
    own.run_for(SECOND)
    publication = talker.client.add_exclusive_publication(IPC, STREAM)
    talker.publish(publication, 3)
    talker.recorded(0, publication.position)
    assert [each for each in talker.signals() if each[0] == "START"] == [("START", 0, 0)]


def test_a_stream_whose_start_waits_is_not_listed(own, talker, monkeypatch):
    def listed():
        sent = talker.send(
            ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=5,
            apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
        )  # fmt: skip
        return own.until(lambda: [each for each in talker.said if each.correlation_id == sent])[0]

    with silent(monkeypatch):
        started = send_start(talker)
        own.run_for(SECOND)
        assert listed().code.name == "SUBSCRIPTION_UNKNOWN"
    own.until(lambda: talker.answer(started))
    assert listed().subscription_id == talker.answer(started).relevant_id


def test_the_counter_of_a_recording_is_awaited_by_it_alone(own, talker, monkeypatch):
    answer = talker.start()
    publication = talker.client.add_exclusive_publication(IPC, STREAM)
    with silent(monkeypatch):
        own.run_for(SECOND)
        serves(own, talker)
    end = talker.publish(publication, 20)
    talker.recorded(0, end)
    assert talker.about(answer.correlation_id) == [("OK", answer.relevant_id), ("START", 0, 0)]


def test_a_stop_while_the_counter_is_awaited_stops_the_recording(own, talker, monkeypatch):
    answer = talker.start()
    talker.client.add_exclusive_publication(IPC, STREAM)
    with silent(monkeypatch):
        own.run_for(SECOND)
        assert talker.ask(StopRecordingRequest, stream_id=STREAM, channel=IPC) == Ok()
        own.run_for(SECOND)
    own.until(lambda: len(talker.about(answer.correlation_id)) == 3)
    assert talker.about(answer.correlation_id)[1:] == [("START", 0, 0), ("STOP", 0, 0)]
    assert talker.start().code.name == "OK"


def test_an_archive_that_ends_while_a_counter_is_awaited_writes_the_stop_position(
    own, talker, monkeypatch
):
    from windtunnel.driver.archive.storage.catalog import Catalog

    talker.start()
    talker.client.add_exclusive_publication(IPC, STREAM)
    with silent(monkeypatch):
        own.run_for(SECOND)
        own.archive.close()
    with Catalog(own.directory) as catalog:
        assert catalog.descriptor(0).stop_position == 0


def test_the_rejection_of_an_unresponsive_client_is_not_awaited(own, talker, monkeypatch):
    stranger = Talker(own, response_stream=21)
    stranger.post(encode(stranger.connect_request(response_stream_id=99)))
    own.run_for(SECOND)
    with silent(monkeypatch):
        own.run_for(5 * SECOND)
        assert any("timeout establishing the session" in each for each in own.errors)
        serves(own, talker)
    own.until(lambda: not stranger.requests.is_connected, turns=30_000)


def test_a_replication_awaits_its_session_id_alone(two, monkeypatch):
    own, talker, source = two
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    with silent(monkeypatch):
        before_ns = own.clock.now_ns()
        answer = replicate(talker)
        serves(own, talker)
        assert own.clock.now_ns() - before_ns < SECOND
    assert until_end(own, talker, answer.relevant_id, "STOP")[-1] == ("STOP", 0, end)
