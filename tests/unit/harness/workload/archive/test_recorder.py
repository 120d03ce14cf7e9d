"""The recorder: its requests to an archive, the archive's responses, and its end."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from tests.unit.harness.workload.routines import answering, finish
from windtunnel.driver.archive.client import ArchiveContext, ArchiveError, ArchiveTimeoutError
from windtunnel.driver.archive.protocol.codes import ErrorCode, SourceLocation
from windtunnel.driver.base.clock import ManualClock
from windtunnel.harness.artifact.host.recording import Recorded
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.workload.archive import recorder as recorder_of
from windtunnel.harness.workload.archive.recorder import ANSWER_NS, NOT_STOPPED, Recorder
from windtunnel.harness.workload.routine import Surroundings

CHANNEL, STREAM = "aeron:udp?endpoint=b:1", own.STREAM_ID


class ScriptedArchive:
    """An archive whose recordings a test changes between two polls."""

    def __init__(self):
        self.recordings, self.positions, self.asked = {}, {}, []
        self.archive_id = 1
        self.refusal = None

    def record(self, number, start=0, position=0):
        self.recordings[number] = own.descriptor(number, start=start)
        self.positions[number] = position

    def stop(self, number, position):
        self.recordings[number] = replace(self.recordings[number], stop_position=position)
        self.positions[number] = NOT_STOPPED

    @answering
    def start_recording(self, channel, stream_id, location, *, auto_stop):
        if self.refusal is not None:
            raise self.refusal
        self.asked.append((channel, stream_id, location, auto_stop))

    @answering
    def list_recordings_for_uri(self, first, count, fragment, stream_id, handler):
        assert (first, fragment, stream_id) == (0, "", STREAM)
        for each in self.recordings.values():
            handler(each)

    @answering
    def recording_position(self, number):
        return self.positions[number]


@pytest.fixture
def archive():
    return ScriptedArchive()


@pytest.fixture
def recorder(archive):
    made = Recorder(STREAM)
    finish(made.begin(archive, CHANNEL, SourceLocation.REMOTE))
    return made


def test_one_image_is_recorded_and_polled_until_it_stops(archive, recorder):
    assert archive.asked == [(CHANNEL, STREAM, SourceLocation.REMOTE, True)]
    assert not finish(recorder.look(archive))
    archive.record(0, start=64, position=128)
    assert not finish(recorder.look(archive))
    archive.positions[0] = 256
    assert not finish(recorder.look(archive))
    archive.stop(0, 320)
    assert finish(recorder.look(archive))
    assert recorder.recordings == [Recorded(0, own.SESSION_ID, 64, 320, 256)]


def test_a_recording_that_stops_between_two_polls_has_its_last_position(archive, recorder):
    archive.record(0, position=128)
    finish(recorder.look(archive))
    archive.positions[0] = NOT_STOPPED
    finish(recorder.look(archive))
    assert recorder.recordings[0].told_position == 128


def test_earlier_recordings_are_not_waited_for(archive):
    archive.record(0, position=64)
    archive.stop(0, 64)
    recorder = Recorder(STREAM)
    finish(recorder.begin(archive, CHANNEL, SourceLocation.REMOTE))
    assert not finish(recorder.look(archive))
    archive.record(1, start=96, position=96)
    archive.stop(1, 128)
    assert finish(recorder.look(archive))
    assert [each.recording_id for each in recorder.recordings] == [0, 1]


def test_a_new_archive_continues_with_another_recording(archive, recorder):
    archive.record(0, position=128)
    finish(recorder.look(archive))
    archive.stop(0, 160)
    archive.archive_id = 2
    finish(recorder.begin(archive, CHANNEL, SourceLocation.REMOTE))
    assert not finish(recorder.look(archive))
    archive.record(1, start=320, position=320)
    assert not finish(recorder.look(archive))
    archive.stop(1, 640)
    assert finish(recorder.look(archive))
    assert [each.told_position for each in recorder.recordings] == [128, 320]


def test_a_living_archive_gets_no_second_request_if_only_its_session_was_lost(archive, recorder):
    archive.record(0, position=128)
    finish(recorder.look(archive))
    archive.stop(0, 160)
    finish(recorder.begin(archive, CHANNEL, SourceLocation.REMOTE))
    assert len(archive.asked) == 1
    assert finish(recorder.look(archive))


def test_an_archive_that_is_already_recording_was_only_late(archive, recorder):
    archive.record(0, position=128)
    archive.refusal = ArchiveError("it is there", ErrorCode.ACTIVE_SUBSCRIPTION)
    finish(recorder.begin(archive, CHANNEL, SourceLocation.REMOTE))
    archive.stop(0, 160)
    assert finish(recorder.look(archive))


class UnusedClient:
    """A client that ignores all requests."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.mark.parametrize(
    ("patience_ms", "kills", "attempts"), [(1, True, 1), (450, True, 3), (150, False, 1)]
)
def test_an_archive_that_starts_slowly_has_the_time_limit_of_a_client(
    patience_ms, kills, attempts, monkeypatch
):
    asked, clock = [], ManualClock()

    def connect(aeron, wanted, given):
        assert given is clock
        asked.append(wanted.message_timeout_ns)
        clock.advance(200_000_000)
        yield
        raise ArchiveTimeoutError("no session")

    settings = ArchiveContext(message_timeout_ns=patience_ms * 1_000_000)
    kill = EventCase(
        id="crash", host="b", process="archive", trigger="delivered", at=1, action="kill",
        lasts_ns=1,
    )  # fmt: skip
    options = SimpleNamespace(case=SimpleNamespace(events=(kill,) if kills else ()))
    monkeypatch.setattr(recorder_of, "connect", connect)
    monkeypatch.setattr(recorder_of, "context", lambda _: settings)
    surroundings = Surroundings(UnusedClient, clock, lambda: 0, pytest.fail)
    with pytest.raises(ArchiveTimeoutError):
        finish(recorder_of._follow(options, Recorder(STREAM), surroundings))
    assert asked == attempts * [ANSWER_NS if kills else settings.message_timeout_ns]


def test_any_other_refusal_is_an_error(archive, recorder):
    archive.archive_id, archive.refusal = 2, ArchiveError("no room", ErrorCode.STORAGE_SPACE)
    with pytest.raises(ArchiveError, match="no room"):
        finish(recorder.begin(archive, CHANNEL, SourceLocation.REMOTE))
