"""The recorder: what it asks of an archive, what it is told, and when it is over."""

from dataclasses import replace

import pytest

from driver.archive.client import ArchiveError
from driver.archive.protocol.codes import ErrorCode, SourceLocation
from harness.artifact.recording import Recorded
from harness.workload.recorder import NOT_STOPPED, Recorder
from tests.unit.driver.archive.storage import own_recording as own

CHANNEL, STREAM = "aeron:udp?endpoint=b:1", own.STREAM_ID


class ScriptedArchive:
    """An archive whose recordings tests change between two looks."""

    def __init__(self):
        self.recordings, self.positions, self.asked = {}, {}, []
        self.refusal = None

    def record(self, number, start=0, position=0):
        self.recordings[number] = own.descriptor(number, start=start)
        self.positions[number] = position

    def stop(self, number, position):
        self.recordings[number] = replace(self.recordings[number], stop_position=position)
        self.positions[number] = NOT_STOPPED

    def start_recording(self, channel, stream_id, location, *, auto_stop):
        if self.refusal is not None:
            raise self.refusal
        self.asked.append((channel, stream_id, location, auto_stop))

    def list_recordings_for_uri(self, first, count, fragment, stream_id, handler):
        assert (first, fragment, stream_id) == (0, "", STREAM)
        for each in self.recordings.values():
            handler(each)

    def recording_position(self, number):
        return self.positions[number]


@pytest.fixture
def archive():
    return ScriptedArchive()


@pytest.fixture
def recorder(archive):
    made = Recorder(STREAM)
    made.begin(archive, CHANNEL, SourceLocation.REMOTE)
    return made


def test_one_image_is_recorded_and_looked_at_until_it_stops(archive, recorder):
    assert archive.asked == [(CHANNEL, STREAM, SourceLocation.REMOTE, True)]
    assert not recorder.look(archive)
    archive.record(0, start=64, position=128)
    assert not recorder.look(archive)
    archive.positions[0] = 256
    assert not recorder.look(archive)
    archive.stop(0, 320)
    assert recorder.look(archive)
    assert recorder.recordings == [Recorded(0, own.SESSION_ID, 64, 320, 256)]


def test_one_that_stops_between_two_questions_keeps_what_was_told(archive, recorder):
    archive.record(0, position=128)
    recorder.look(archive)
    archive.positions[0] = NOT_STOPPED
    recorder.look(archive)
    assert recorder.recordings[0].told_position == 128


def test_what_was_there_before_is_not_waited_for(archive):
    archive.record(0, position=64)
    archive.stop(0, 64)
    recorder = Recorder(STREAM)
    recorder.begin(archive, CHANNEL, SourceLocation.REMOTE)
    assert not recorder.look(archive)
    archive.record(1, start=96, position=96)
    archive.stop(1, 128)
    assert recorder.look(archive)
    assert [each.recording_id for each in recorder.recordings] == [0, 1]


def test_a_new_archive_goes_on_with_another_recording(archive, recorder):
    archive.record(0, position=128)
    recorder.look(archive)
    archive.stop(0, 160)
    recorder.begin(archive, CHANNEL, SourceLocation.REMOTE)
    assert not recorder.look(archive)
    archive.record(1, start=320, position=320)
    assert not recorder.look(archive)
    archive.stop(1, 640)
    assert recorder.look(archive)
    assert [each.told_position for each in recorder.recordings] == [128, 320]


def test_an_archive_that_records_already_was_only_late(archive, recorder):
    archive.record(0, position=128)
    archive.refusal = ArchiveError("it is there", ErrorCode.ACTIVE_SUBSCRIPTION)
    recorder.begin(archive, CHANNEL, SourceLocation.REMOTE)
    archive.stop(0, 160)
    assert recorder.look(archive)


def test_any_other_refusal_is_an_error(archive, recorder):
    archive.refusal = ArchiveError("no room", ErrorCode.STORAGE_SPACE)
    with pytest.raises(ArchiveError, match="no room"):
        recorder.begin(archive, CHANNEL, SourceLocation.REMOTE)
