"""Segment files: detach, attach, delete, migrate. Cases G1 to G15."""

import pytest

from tests.archive.archives import SEGMENT, until
from tests.archive.conversation import shape
from tests.archive.streams import Recorded, Replay, new_stream_id, positioned, replayed
from tests.archive.test_truncation import bases, unread
from windtunnel.driver.archive.protocol.codes import ErrorCode, RecordingSignal
from windtunnel.driver.archive.protocol.requests import (
    AttachSegmentsRequest,
    DeleteDetachedSegmentsRequest,
    DetachSegmentsRequest,
    MigrateSegmentsRequest,
    PurgeSegmentsRequest,
    StartPositionRequest,
    StopPositionRequest,
)

FULL = 1_024 - 32
"""The message length at which frames fill a term to its last byte."""
STREAM_ID_AT = 16


@pytest.fixture
def three(talk):
    """A live recording of three segments."""
    recorded = Recorded(talk, positioned(0)).send(300)
    yield recorded
    if not recorded.publication.is_closed:
        recorded.stop()


def own(recorded, **fields):
    return {"recording_id": recorded.recording_id} | fields


def start_of(talk, recorded):
    return talk.ok(StartPositionRequest, **own(recorded))


def detach(talk, recorded, position):
    assert talk.ok(DetachSegmentsRequest, **own(recorded, new_start_position=position)) == 0


def not_detached(talk, recorded, position):
    before = start_of(talk, recorded)
    refusal = talk.refused(DetachSegmentsRequest, **own(recorded, new_start_position=position))
    assert start_of(talk, recorded) == before
    return refusal


def attach(talk, recorded):
    return talk.ok(AttachSegmentsRequest, **own(recorded))


def deleted(talk, kind, **fields):
    """Return the number of files in a response, once these files are deleted."""
    request = talk.send(kind, **fields)
    count = talk.answer(request).relevant_id
    talk.signal(RecordingSignal.DELETE, request)
    assert shape(talk.heard(request)) == ["OK", "DELETE"]
    return count


def test_g1_not_where_a_segment_begins(talk, three):
    assert not_detached(talk, three, 65_536) == ErrorCode.GENERIC


def test_g2_not_the_first_segment(talk, three):
    assert not_detached(talk, three, 0) == ErrorCode.GENERIC
    detach(talk, three, SEGMENT)
    assert not_detached(talk, three, SEGMENT) == ErrorCode.GENERIC
    assert not_detached(talk, three, 0) == ErrorCode.GENERIC


def test_g3_not_beyond_the_last_segment(talk, three):
    assert not_detached(talk, three, 3 * SEGMENT) == ErrorCode.GENERIC
    three.stop()
    assert not_detached(talk, three, 3 * SEGMENT) == ErrorCode.GENERIC
    detach(talk, three, 2 * SEGMENT)


def test_g4_not_where_a_replay_is(talk, three):
    reader = unread(talk, three)
    assert not_detached(talk, three, SEGMENT) == ErrorCode.GENERIC
    reader.close()


def test_g5_g6_g7_detached_files_stay_and_come_back(archive, talk, three):
    detach(talk, three, SEGMENT)
    assert start_of(talk, three) == SEGMENT
    assert bases(archive, three) == [0, SEGMENT, 2 * SEGMENT]
    refused = talk.answer(Replay(talk, three.recording_id, position=0).request)
    assert refused.relevant_id == ErrorCode.INVALID_POSITION
    three.stop()
    assert replayed(talk, three.recording_id) == three.sent[124:]
    assert attach(talk, three) == 1
    assert start_of(talk, three) == 0
    assert attach(talk, three) == 0
    assert replayed(talk, three.recording_id) == three.sent


def test_g8_the_first_file_may_begin_with_nothing(talk):
    recorded = Recorded(talk, positioned(4_096)).send(200)
    detach(talk, recorded, SEGMENT)
    assert attach(talk, recorded) == 1
    assert start_of(talk, recorded) == 4_096
    recorded.stop()
    assert replayed(talk, recorded.recording_id) == recorded.sent


def _shorter(file):
    file.truncate(SEGMENT - 32)


def _empty(file):
    file.truncate(0)
    file.truncate(SEGMENT)


def _of_another_stream(file):
    file.seek(STREAM_ID_AT)
    file.write((123_456).to_bytes(4, "little"))


@pytest.mark.parametrize("harm", [_shorter, _empty, _of_another_stream])
def test_g9_a_file_that_does_not_belong(archive, talk, three, harm):
    detach(talk, three, SEGMENT)
    with (archive.directory / f"{three.recording_id}-0.rec").open("r+b") as file:
        harm(file)
    assert talk.refused(AttachSegmentsRequest, **own(three)) == ErrorCode.GENERIC
    assert start_of(talk, three) == SEGMENT


def test_g10_two_files_at_once(talk, three):
    detach(talk, three, 2 * SEGMENT)
    assert attach(talk, three) == 2
    assert start_of(talk, three) == 0


def test_g11_deleting_what_is_detached(archive, talk, three):
    detach(talk, three, SEGMENT)
    assert deleted(talk, DeleteDetachedSegmentsRequest, **own(three)) == 1
    assert bases(archive, three) == [SEGMENT, 2 * SEGMENT]
    assert deleted(talk, DeleteDetachedSegmentsRequest, **own(three)) == 0
    three.stop()
    assert replayed(talk, three.recording_id) == three.sent[124:]


def test_g12_detaching_and_deleting_in_one(archive, talk, three):
    fields = own(three, new_start_position=2 * SEGMENT)
    assert deleted(talk, PurgeSegmentsRequest, **fields) == 2
    assert start_of(talk, three) == 2 * SEGMENT
    assert bases(archive, three) == [2 * SEGMENT]


def test_g13_segments_are_counted_from_the_first_term(archive, talk):
    recorded = Recorded(talk, positioned(66_560)).send(200)
    first = 65_536
    assert bases(archive, recorded) == [first, first + SEGMENT]
    assert not_detached(talk, recorded, SEGMENT) == ErrorCode.GENERIC
    detach(talk, recorded, first + SEGMENT)
    assert start_of(talk, recorded) == first + SEGMENT
    recorded.stop()


def neighbours(talk, *, begin=2 * SEGMENT, **geometry):
    """A recording of [0, two segments), and one of the same stream from `begin` on."""
    stream_id = new_stream_id()
    source = Recorded(talk, positioned(0), stream_id=stream_id)
    source.send(2 * SEGMENT // 1_024, length=FULL).stop()
    target = Recorded(talk, positioned(begin, **geometry), stream_id=stream_id)
    target.number = source.number
    target.send(40, length=FULL).stop()
    return source, target


def migration(source, target):
    return {"src_recording_id": source.recording_id, "dst_recording_id": target.recording_id}


def test_g14_one_recording_becomes_the_beginning_of_another(archive, talk):
    source, target = neighbours(talk)
    assert deleted(talk, MigrateSegmentsRequest, **migration(source, target)) == 2
    assert start_of(talk, target) == 0
    ends = (StartPositionRequest, StopPositionRequest)
    assert [talk.ok(kind, **own(source)) for kind in ends] == [0, 0]
    assert bases(archive, source) == []
    assert bases(archive, target) == [0, SEGMENT, 2 * SEGMENT]
    assert replayed(talk, target.recording_id) == source.sent + target.sent


def test_g15_recordings_that_are_no_neighbours(archive, talk):
    others = [{"begin": 3 * SEGMENT}, {"mtu": 2_048}, {"initial_term_id": 8}]
    for each in others:
        source, target = neighbours(talk, **each)
        fields = migration(source, target)
        assert talk.refused(MigrateSegmentsRequest, **fields) == ErrorCode.GENERIC, each
        assert start_of(talk, target) == target.started.position


def test_g15_a_source_that_is_active(talk):
    source, target = neighbours(talk)
    live = Recorded(talk, positioned(0), stream_id=source.stream_id)
    fields = migration(live, target)
    assert talk.refused(MigrateSegmentsRequest, **fields) == ErrorCode.GENERIC
    live.stop()


def test_g15_a_name_that_is_taken(archive, talk):
    source, target = neighbours(talk)
    taken = archive.directory / f"{target.recording_id}-0.rec"
    taken.write_bytes(b"mine")
    fields = migration(source, target)
    assert talk.refused(MigrateSegmentsRequest, **fields) == ErrorCode.GENERIC
    assert taken.read_bytes() == b"mine"
    assert bases(archive, source)[:2] == [0, SEGMENT]
    taken.unlink()


def test_the_files_of_a_finished_recording_are_whole(archive, talk, three):
    three.stop()
    until(lambda: len(bases(archive, three)) == 3, "three files")
    for base in bases(archive, three):
        file = archive.directory / f"{three.recording_id}-{base}.rec"
        assert file.stat().st_size == SEGMENT
