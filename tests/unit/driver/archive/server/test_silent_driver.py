"""The archive serves its clients while the driver reads no commands.

The C driver reads no commands while it looks up a host name, which may take ten seconds.
"""

from contextlib import contextmanager

from tests.unit.driver.archive.server.own_archive import ControlClient, Err, Ok
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
    """Keep the driver from reading commands."""
    with monkeypatch.context() as patch:
        patch.setattr(ring_buffer_reader, "peek", lambda *_: (ring_buffer_reader.NO_MESSAGE, 0))
        yield


def send_start(client, stream=STREAM, channel=IPC, *, auto_stop=False):
    return client.send(
        StartRecordingRequest2, stream_id=stream, source_location=SourceLocation.LOCAL,
        auto_stop=BooleanType(auto_stop), channel=channel,
    )  # fmt: skip


def assert_served(env, client):
    """Assert that the archive responds to `client` without delay."""
    before_ns = env.clock.now_ns()
    assert client.request(ArchiveIdRequest) == Ok(77)
    assert env.clock.now_ns() - before_ns < 100 * MS


def in_flight(env):
    """Return the number of the archive's commands that the driver has not responded to."""
    registrations = env.archive._conductor._resources.client._conductor.commands.registrations
    return sum(each.is_awaiting for each in registrations._registrations.values())


def test_while_a_start_waits_for_the_driver_other_requests_are_served(env, client, monkeypatch):
    other = env.connect_client(response_stream=21)
    with silent(monkeypatch):
        started = send_start(other)
        env.run_for(2 * SECOND)
        assert_served(env, client)
        assert not other.responses_to(started)
    assert env.until(lambda: other.response_to(started)).code.name == "OK"
    publication = other.aeron.add_exclusive_publication(IPC, STREAM)
    other.publish(publication, 5)
    other.recorded(0, publication.position)


def test_active_recordings_continue_while_a_start_waits(env, client, monkeypatch):
    client.start()
    publication = client.aeron.add_exclusive_publication(IPC, STREAM)
    client.recorded(0, client.publish(publication, 5))
    other = env.connect_client(response_stream=21)
    with silent(monkeypatch):
        started = send_start(other, stream=STREAM + 1)
        env.run_for(SECOND)
        before_ns = env.clock.now_ns()
        client.recorded(0, client.publish(publication, 20, first=5))
        assert env.clock.now_ns() - before_ns < 100 * MS
        assert not other.responses_to(started)


def test_the_response_to_a_start_precedes_the_signal_of_its_recording(env, client, monkeypatch):
    publication = client.aeron.add_exclusive_publication(IPC, STREAM)
    with silent(monkeypatch):
        started = send_start(client)
        env.run_for(SECOND)
    env.until(lambda: len(client.summaries(started)) == 2)
    subscription_id = client.response_to(started).relevant_id
    assert client.summaries(started) == [("OK", subscription_id), ("START", 0, 0)]
    assert publication.is_connected


def test_a_start_that_the_driver_rejects_gets_an_error_response(env, client):
    started = send_start(client, channel="aeron:udp?endpoint=10.0.0.1:70000")
    env.until(lambda: client.response_to(started))
    assert client.response_to(started) == Err(ErrorCode.GENERIC)
    assert client.start().code.name == "OK"
    assert client.start(stream=STREAM + 1).code.name == "OK"


def test_a_client_has_at_most_four_starts_in_flight(env, client, monkeypatch):
    other = env.connect_client(response_stream=21)
    with silent(monkeypatch):
        before = in_flight(env)
        waiting = [send_start(other, stream=3_000 + number) for number in range(10)]
        env.run_for(SECOND)
        assert in_flight(env) - before == 4
        mine = send_start(client)
        env.run_for(SECOND)
        assert in_flight(env) - before == 5
        assert_served(env, client)
    assert env.until(lambda: client.response_to(mine)).code.name == "OK"
    env.until(lambda: all(other.response_to(each) for each in waiting))
    assert {other.response_to(each).code.name for each in waiting} == {"OK"}


def test_waiting_starts_count_as_concurrent_recordings(env, client, monkeypatch):
    with silent(monkeypatch):
        limit = env.settings.max_concurrent_recordings
        waiting = [send_start(client, stream=3_000 + number) for number in range(limit)]
        assert client.start(stream=STREAM) == Err(ErrorCode.MAX_RECORDINGS)
        assert client.start(stream=3_000) == Err(ErrorCode.MAX_RECORDINGS)
    env.until(lambda: all(client.response_to(each) for each in waiting))


def test_a_stream_whose_start_waits_can_be_stopped_and_started_again(env, client, monkeypatch):
    with silent(monkeypatch):
        started = send_start(client)
        assert client.start() == Err(ErrorCode.ACTIVE_SUBSCRIPTION)
        assert client.request(StopRecordingRequest, stream_id=STREAM, channel=IPC) == Ok()
        assert "stopped" in env.until(lambda: client.response_to(started)).error_message
        again = send_start(client)
    assert env.until(lambda: client.response_to(again)).code.name == "OK"
    env.run_for(SECOND)
    publication = client.aeron.add_exclusive_publication(IPC, STREAM)
    client.publish(publication, 3)
    client.recorded(0, publication.position)
    assert [each for each in client.signals() if each[0] == "START"] == [("START", 0, 0)]


def test_a_stream_whose_start_waits_is_not_listed(env, client, monkeypatch):
    def listed():
        correlation_id = client.send(
            ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=5,
            apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
        )  # fmt: skip
        return env.until(
            lambda: [each for each in client.received if each.correlation_id == correlation_id]
        )[0]

    with silent(monkeypatch):
        started = send_start(client)
        env.run_for(SECOND)
        assert listed().code.name == "SUBSCRIPTION_UNKNOWN"
    env.until(lambda: client.response_to(started))
    assert listed().subscription_id == client.response_to(started).relevant_id


def test_while_a_recording_waits_for_its_counter_requests_are_served(env, client, monkeypatch):
    response = client.start()
    publication = client.aeron.add_exclusive_publication(IPC, STREAM)
    with silent(monkeypatch):
        env.run_for(SECOND)
        assert_served(env, client)
    end = client.publish(publication, 20)
    client.recorded(0, end)
    assert client.summaries(response.correlation_id) == [
        ("OK", response.relevant_id),
        ("START", 0, 0),
    ]


def test_a_recording_can_be_stopped_while_it_waits_for_its_counter(env, client, monkeypatch):
    response = client.start()
    client.aeron.add_exclusive_publication(IPC, STREAM)
    with silent(monkeypatch):
        env.run_for(SECOND)
        assert client.request(StopRecordingRequest, stream_id=STREAM, channel=IPC) == Ok()
        env.run_for(SECOND)
    env.until(lambda: len(client.summaries(response.correlation_id)) == 3)
    assert client.summaries(response.correlation_id)[1:] == [("START", 0, 0), ("STOP", 0, 0)]
    assert client.start().code.name == "OK"


def test_an_archive_closed_while_a_recording_waits_for_its_counter_writes_the_stop_position(
    env, client, monkeypatch
):
    from windtunnel.driver.archive.storage.catalog import Catalog

    client.start()
    client.aeron.add_exclusive_publication(IPC, STREAM)
    with silent(monkeypatch):
        env.run_for(SECOND)
        env.archive.close()
    with Catalog(env.directory) as catalog:
        assert catalog.descriptor(0).stop_position == 0


def test_the_archive_does_not_wait_for_the_rejection_of_an_unresponsive_client(
    env, client, monkeypatch
):
    other = ControlClient(env, response_stream=21)
    other.post(encode(other.connect_request(response_stream_id=99)))
    env.run_for(SECOND)
    with silent(monkeypatch):
        env.run_for(5 * SECOND)
        assert any("timeout establishing the session" in each for each in env.errors)
        assert_served(env, client)
    env.until(lambda: not other.requests.is_connected, turns=30_000)


def test_while_a_replication_waits_for_its_session_id_requests_are_served(two, monkeypatch):
    env, client, source = two
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    with silent(monkeypatch):
        before_ns = env.clock.now_ns()
        response = replicate(client)
        assert_served(env, client)
        assert env.clock.now_ns() - before_ns < SECOND
    assert until_end(env, client, response.relevant_id, "STOP")[-1] == ("STOP", 0, end)
