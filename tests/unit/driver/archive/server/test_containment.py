"""An unexpected error ends only the session that caused it, and its traceback is logged."""

import pytest

from tests.unit.driver.archive.server.own_archive import ControlClient, Ok
from tests.unit.driver.archive.server.own_copy import SOURCE_ID, replicate
from tests.unit.driver.archive.server.own_stream import STREAM, Reader
from windtunnel.driver.archive.conductor.archive_conductor import ArchiveFailure
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.protocol.codec import encode
from windtunnel.driver.archive.protocol.requests import ArchiveIdRequest
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter
from windtunnel.driver.archive.replay.recording_reader import RecordingReader
from windtunnel.driver.archive.replication.replication_session import ReplicationSession, State
from windtunnel.driver.archive.replication.replications import Replications
from windtunnel.driver.archive.replication.source_archive import SourceArchive
from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.client.errors import DriverTimeoutError

SECOND = 1_000_000_000


def defect(*_):
    return 1 // 0


def failing_for(method, session_id):
    """Return a method that fails for one session only."""
    return lambda self, *args: defect() if self.session_id == session_id else method(self, *args)


def logged_defect(env):
    """Return the only defect in the archive's error log."""
    (text,) = [each for each in env.errors if "ZeroDivisionError" in each]
    assert "Traceback" in text
    return text


@pytest.mark.parametrize("letter", ["a", "\N{LATIN SMALL LETTER E WITH ACUTE}"])
def test_a_long_response_channel_that_the_driver_rejects_ends_only_its_session(env, client, letter):
    other = ControlClient(env, response_stream=21)
    channel = "aeron:udp?alias=" + letter * 1_100
    other.post(encode(other.connect_request(response_channel=channel)))
    env.run_for(SECOND)
    assert any("cannot add response publication" in each for each in env.errors)
    env.until(lambda: not other.requests.is_connected, turns=30_000)
    assert client.request(ArchiveIdRequest) == Ok(77)


@pytest.mark.parametrize("part", ["_serve", "close"])
def test_an_unexpected_error_in_one_control_session_does_not_end_others(
    env, client, monkeypatch, part
):
    env.has_defect = True
    failing = env.connect_client(response_stream=21)
    assert failing.request(ArchiveIdRequest) == Ok(77)
    broken = failing_for(getattr(ControlSession, part), failing.session_id)
    monkeypatch.setattr(ControlSession, part, broken)
    if part == "close":
        failing.responses.close()
    env.run_for(5 * SECOND)
    assert logged_defect(env).startswith("(-1) control session: Traceback")
    assert client.request(ArchiveIdRequest) == Ok(77)
    sessions = env.archive._conductor._sessions._sessions
    assert list(sessions) == [client.session_id]
    if part == "_serve":
        assert not failing.responses.images


@pytest.mark.parametrize(
    ("kind", "part"),
    [(ReplicationSession, "do_work"), (ReplicationSession, "close"), (SourceArchive, "close")],
)
def test_an_unexpected_error_in_one_replication_does_not_end_the_archive(
    two, monkeypatch, kind, part
):
    env, client, source = two
    env.has_defect = True
    source.stopped_recording(10, archive_id=SOURCE_ID)
    with monkeypatch.context() as patch:
        patch.setattr(kind, part, defect)
        replicate(client)
        env.run_for(5 * SECOND)
    assert logged_defect(env).startswith("(-1) replication: Traceback")
    assert client.request(ArchiveIdRequest) == Ok(77)
    assert not env.archive._conductor._operations.replications._running


def test_an_unexpected_error_in_one_recording_stops_it_at_its_position(env, client, monkeypatch):
    env.has_defect = True
    other = client.live_recording(10, stream=STREAM + 1)
    live = client.live_recording(10)
    write = SegmentWriter.write

    def broken(self, block):
        return defect() if self._recording_id == live.recording_id else write(self, block)

    monkeypatch.setattr(SegmentWriter, "write", broken)
    client.publish(live.publication, 1)
    env.until(lambda: ("STOP", live.recording_id, live.end) in client.signals())
    assert [each[0] for each in client.summaries(live.response.correlation_id)][-2:] == [
        "ERROR",
        "STOP",
    ]
    assert "segment_writer" not in logged_defect(env).partition("Traceback")[0]
    client.recorded(other.recording_id, client.publish(other.publication, 5))


def test_an_unexpected_error_in_one_replay_ends_only_that_replay(env, client, monkeypatch):
    env.has_defect = True
    client.stopped_recording(300)
    reader = Reader(client)
    with monkeypatch.context() as patch:
        patch.setattr(RecordingReader, "block", defect)
        response = client.request_replay(0)
        env.until(lambda: len(client.summaries(response.correlation_id)) == 2)
    assert [each[0] for each in client.summaries(response.correlation_id)] == ["OK", "ERROR"]
    env.until(lambda: not reader.subscription.images)
    logged_defect(env)
    again = Reader(client, stream=6)
    client.request_replay(0, replay_stream_id=6)
    assert len(again.until_end()) == 300


def test_an_unexpected_error_in_a_deletion_does_not_end_the_archive(env, client, monkeypatch):
    env.has_defect = True
    with monkeypatch.context() as patch:
        patch.setattr(Deletions, "do_work", defect)
        assert client.request(ArchiveIdRequest) == Ok(77)
    assert "deletions" in logged_defect(env)


def test_a_driver_timeout_in_a_deletion_ends_the_archive(env, client, monkeypatch):
    def gone(*_):
        raise DriverTimeoutError("no driver")

    with monkeypatch.context() as patch:
        patch.setattr(Deletions, "do_work", gone)
        with pytest.raises(DriverTimeoutError):
            env.archive.invoke()


def stop_position(env, recording_id=0):
    with Catalog(env.directory) as catalog:
        return catalog.descriptor(recording_id).stop_position


def test_all_stop_positions_are_written_when_the_driver_dies_during_a_replication(two):
    env, client, source = two
    copied = source.live_recording(10, archive_id=SOURCE_ID)
    other = client.live_recording(5, stream=STREAM + 1)
    replicate(client)
    (copy,) = env.archive._conductor._operations.replications._running.values()
    client.recorded(1, copied.end)
    env.until(lambda: copy.state == State.COPY)
    env.world.driver.cnc.set_closed()
    env.clock.advance(SECOND)
    with pytest.raises(ArchiveFailure, match="shut down"):
        env.archive.invoke()
    env.archive.close()
    assert [stop_position(env, each) for each in (0, 1)] == [other.end, copied.end]


@pytest.mark.parametrize("part", [Replications, Deletions])
def test_a_part_that_fails_to_close_does_not_keep_others_open(env, client, monkeypatch, part):
    env.has_defect = True
    live = client.live_recording(5)
    closed = []
    sessions = env.archive._conductor._sessions
    monkeypatch.setattr(sessions, "close", lambda: closed.append(sessions))
    monkeypatch.setattr(part, "close", defect)
    env.archive.close()
    assert stop_position(env) == live.end
    assert closed == [sessions]
    logged_defect(env)
