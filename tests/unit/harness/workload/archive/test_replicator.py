"""The replicator: it ends when its archive signals the end and the copy has stopped."""

from types import SimpleNamespace

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from tests.unit.harness.workload.routines import answering, finish
from windtunnel.driver.archive.client import ArchiveError
from windtunnel.driver.archive.protocol.codes import RecordingSignal
from windtunnel.driver.archive.replication.source_archive import NOT_CONNECTED
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.workload.archive.replicator import Copying
from windtunnel.harness.workload.stop import GaveUp


class ScriptedArchive:
    """One event per turn: the copy's stop position, and possibly a signal or an error."""

    def __init__(self, copying, *turns):
        self.copying, self.turns, self.words = copying, list(turns), []

    @answering
    def list_recordings_for_uri(self, first, count, fragment, stream_id, handler):
        stop, *self.words = self.turns.pop(0)
        for each in self.words:
            if isinstance(each, RecordingSignal):
                self.copying.on_signal(SimpleNamespace(signal=each))
        if stop is not None:
            handler(own.descriptor(2, stop=stop))
        return int(stop is not None)

    @answering
    def recording_position(self, number):
        return 64

    def check_for_error_response(self):
        for each in self.words:
            if isinstance(each, ArchiveError):
                raise each


def follow(*turns):
    """Return the result at the end, and the turns that were not needed."""
    copying, facts = Copying(own.STREAM_ID), RecorderFacts(own.STREAM_ID, 1, 2, None)
    archive = ScriptedArchive(copying, *turns)
    finish(copying.follow(archive, facts))
    return facts.recordings, archive.turns


def test_it_ends_when_the_replication_has_ended_and_the_copy_has_stopped():
    (copy,), left = follow(
        (None,),
        (0, RecordingSignal.REPLICATE),
        (-1, RecordingSignal.EXTEND),
        (-1, RecordingSignal.SYNC, RecordingSignal.REPLICATE_END),
        (96,),
    )
    assert (copy.recording_id, copy.told_position, copy.stop_position) == (2, 64, 96)
    assert left == []


def test_a_copy_that_has_not_begun_is_not_complete():
    """An archive creates a copy as a recording that has stopped at its start."""
    _, left = follow((0,), (0,), (-1,), (96, RecordingSignal.REPLICATE_END), (128,))
    assert left == [(128,)]


def test_an_error_of_the_archive_is_an_error():
    with pytest.raises(ArchiveError, match="no connection"):
        follow((None, ArchiveError("no connection")))


@pytest.mark.parametrize(("text", "kind"), [(NOT_CONNECTED, GaveUp), ("no", ArchiveError)])
def test_a_silent_source_is_given_up_and_any_other_error_is_an_error(text, kind):
    with pytest.raises(kind, match=text):
        follow((0,), (0, ArchiveError(f"error: {text}")))
