"""An unexpected error ends only the session that caused it, and is logged with its traceback."""

import pytest

from tests.unit.driver.archive.server.own_archive import Ok, Talker
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


def one_of(method, victim):
    """Return a function that fails for one session only."""
    return lambda self, *given: defect() if self.session_id == victim else method(self, *given)


def told(own):
    """Return the only defect in the archive's error log."""
    (text,) = [each for each in own.errors if "ZeroDivisionError" in each]
    assert "Traceback" in text
    return text


@pytest.mark.parametrize("letter", ["a", "\N{LATIN SMALL LETTER E WITH ACUTE}"])
def test_a_long_response_channel_that_the_driver_refuses_ends_its_session_alone(
    own, talker, letter
):
    stranger = Talker(own, response_stream=21)
    channel = "aeron:udp?alias=" + letter * 1_100
    stranger.post(encode(stranger.connect_request(response_channel=channel)))
    own.run_for(SECOND)
    assert any("cannot add response publication" in each for each in own.errors)
    own.until(lambda: not stranger.requests.is_connected, turns=30_000)
    assert talker.ask(ArchiveIdRequest) == Ok(77)


@pytest.mark.parametrize("part", ["_serve", "close"])
def test_a_defect_in_one_control_session_leaves_the_others(own, talker, monkeypatch, part):
    own.has_defect = True
    victim = own.talk(response_stream=21)
    assert victim.ask(ArchiveIdRequest) == Ok(77)
    broken = one_of(getattr(ControlSession, part), victim.session_id)
    monkeypatch.setattr(ControlSession, part, broken)
    if part == "close":
        victim.responses.close()
    own.run_for(5 * SECOND)
    assert told(own).startswith("(-1) control session: Traceback")
    assert talker.ask(ArchiveIdRequest) == Ok(77)
    sessions = own.archive._conductor._sessions._sessions
    assert list(sessions) == [talker.session_id]
    if part == "_serve":
        assert not victim.responses.images


@pytest.mark.parametrize(
    ("kind", "part"),
    [(ReplicationSession, "do_work"), (ReplicationSession, "close"), (SourceArchive, "close")],
)
def test_a_defect_in_one_replication_leaves_the_archive(two, monkeypatch, kind, part):
    own, talker, source = two
    own.has_defect = True
    source.stopped_recording(10, archive_id=SOURCE_ID)
    with monkeypatch.context() as patch:
        patch.setattr(kind, part, defect)
        replicate(talker)
        own.run_for(5 * SECOND)
    assert told(own).startswith("(-1) replication: Traceback")
    assert talker.ask(ArchiveIdRequest) == Ok(77)
    assert not own.archive._conductor._operations.replications._running


def test_a_defect_in_one_recording_ends_it_where_it_was(own, talker, monkeypatch):
    own.has_defect = True
    other = talker.live_recording(10, stream=STREAM + 1)
    live = talker.live_recording(10)
    write = SegmentWriter.write

    def broken(self, block):
        return defect() if self._recording_id == live.recording_id else write(self, block)

    monkeypatch.setattr(SegmentWriter, "write", broken)
    talker.publish(live.publication, 1)
    own.until(lambda: ("STOP", live.recording_id, live.end) in talker.signals())
    assert [each[0] for each in talker.about(live.answer.correlation_id)][-2:] == ["ERROR", "STOP"]
    assert "segment_writer" not in told(own).partition("Traceback")[0]
    talker.recorded(other.recording_id, talker.publish(other.publication, 5))


def test_a_defect_in_one_replay_ends_it(own, talker, monkeypatch):
    own.has_defect = True
    talker.stopped_recording(300)
    reader = Reader(talker)
    with monkeypatch.context() as patch:
        patch.setattr(RecordingReader, "block", defect)
        answer = talker.ask_replay(0)
        own.until(lambda: len(talker.about(answer.correlation_id)) == 2)
    assert [each[0] for each in talker.about(answer.correlation_id)] == ["OK", "ERROR"]
    own.until(lambda: not reader.subscription.images)
    told(own)
    again = Reader(talker, stream=6)
    talker.ask_replay(0, replay_stream_id=6)
    assert len(again.until_end()) == 300


def test_a_defect_in_what_the_conductor_looks_after_leaves_the_archive(own, talker, monkeypatch):
    own.has_defect = True
    with monkeypatch.context() as patch:
        patch.setattr(Deletions, "do_work", defect)
        assert talker.ask(ArchiveIdRequest) == Ok(77)
    assert "deletions" in told(own)


def test_what_says_that_the_driver_is_gone_still_ends_it(own, talker, monkeypatch):
    def gone(*_):
        raise DriverTimeoutError("no driver")

    with monkeypatch.context() as patch:
        patch.setattr(Deletions, "do_work", gone)
        with pytest.raises(DriverTimeoutError):
            own.archive.invoke()


def stop_position(own, recording_id=0):
    with Catalog(own.directory) as catalog:
        return catalog.descriptor(recording_id).stop_position


def test_a_driver_that_dies_during_a_copy_leaves_every_stop_position_written(two):
    own, talker, source = two
    copied = source.live_recording(10, archive_id=SOURCE_ID)
    other = talker.live_recording(5, stream=STREAM + 1)
    replicate(talker)
    (copy,) = own.archive._conductor._operations.replications._running.values()
    talker.recorded(1, copied.end)
    own.until(lambda: copy.state == State.COPY)
    own.made.driver.cnc.set_closed()
    own.clock.advance(SECOND)
    with pytest.raises(ArchiveFailure, match="shut down"):
        own.archive.invoke()
    own.archive.close()
    assert [stop_position(own, each) for each in (0, 1)] == [other.end, copied.end]


@pytest.mark.parametrize("part", [Replications, Deletions])
def test_what_cannot_be_closed_keeps_no_other_part_open(own, talker, monkeypatch, part):
    own.has_defect = True
    live = talker.live_recording(5)
    closed = []
    sessions = own.archive._conductor._sessions
    monkeypatch.setattr(sessions, "close", lambda: closed.append(sessions))
    monkeypatch.setattr(part, "close", defect)
    own.archive.close()
    assert stop_position(own) == live.end
    assert closed == [sessions]
    told(own)
