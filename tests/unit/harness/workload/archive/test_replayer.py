"""The replayer waits for the end of a replay, and documents it as a publisher would."""

import struct
from types import SimpleNamespace

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from tests.unit.harness.workload.routines import answering, finish
from tests.unit.harness.workload.small_case import small_case
from windtunnel.driver.archive.client import ArchiveError
from windtunnel.harness.dissect.driver_files.counter_key import RECEIVER_POSITION, SENDER_POSITION
from windtunnel.harness.workload.archive import replayer
from windtunnel.harness.workload.publisher_facts import begin_facts
from windtunnel.harness.workload.stop import GaveUp

SESSION, STREAM = -77, 1_001


def counter(position, type_id=SENDER_POSITION, session=SESSION, stream=STREAM):
    key = struct.pack("<qii", 5, session, stream).ljust(112, b"\0")
    return SimpleNamespace(type_id=type_id, key=key, value=position)


class ScriptedArchive:
    """An archive and a driver with scripted responses to each poll."""

    def __init__(self, *polls, errors=()):
        """Take the recording's stop position and the counters for each poll."""
        self.polls, self.errors = list(polls), list(errors)
        self.counters = []

    @answering
    def stop_position(self, recording_id):
        stop, self.counters = self.polls.pop(0)
        return stop

    def check_for_error_response(self):
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture
def facts(tmp_path):
    made = begin_facts(small_case(tmp_path).traffic[0], 1)
    replayer.note_replay(made, own.descriptor(3, start=64), SESSION, 2)
    return made


def follow(archive, facts):
    finish(replayer._follow(archive, archive, 3, facts))
    return facts


def test_the_replay_has_the_terms_of_the_recording(facts):
    assert (facts.session_id, facts.stream_id) == (SESSION, STREAM)
    assert (facts.initial_term_id, facts.term_length) == (own.INITIAL_TERM_ID, own.TERM)
    assert (facts.start_position, facts.end_position, facts.started_ns) == (64, 64, 2)


def test_it_ends_when_the_whole_recording_is_sent(facts):
    archive = ScriptedArchive(
        (-1, []), (-1, [counter(96)]), (-1, [counter(256)]), (256, [counter(256)])
    )
    assert follow(archive, facts).end_position == 256
    assert archive.polls == []


def test_a_recording_that_has_stopped_is_sent_to_its_end(facts):
    archive = ScriptedArchive((256, [counter(96)]), (256, [counter(256)]))
    assert follow(archive, facts).end_position == 256


def test_only_the_replays_own_sender_counts(facts):
    others = [
        counter(999, type_id=RECEIVER_POSITION),
        counter(999, session=1),
        counter(999, stream=2),
    ]
    archive = ScriptedArchive((256, others), (256, [*others, counter(256)]))
    assert follow(archive, facts).end_position == 256


def test_a_replay_that_disappears_has_failed(facts):
    with pytest.raises(GaveUp, match="ended at position 96, before its end"):
        follow(ScriptedArchive((-1, [counter(96)]), (256, [])), facts)


def test_an_error_response_of_the_archive_is_an_error(facts):
    archive = ScriptedArchive(
        (-1, []), (-1, []), errors=[ArchiveError("no subscribers for the replay")]
    )
    with pytest.raises(ArchiveError, match="no subscribers"):
        follow(archive, facts)
