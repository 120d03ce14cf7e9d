"""Segment files: detach, attach, delete, migrate. Cases G1 to G15."""

import pytest

from tests.archive.archives import SEGMENT, until
from tests.archive.conversation import summary
from tests.archive.streams import Recorded, Replay, new_stream_id, positioned, replayed
from tests.archive.test_truncation import bases, unread_replay
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
def three(session):
    """A live recording of three segments."""
    recorded = Recorded(session, positioned(0)).send(300)
    yield recorded
    if not recorded.publication.is_closed:
        recorded.stop()


def own(recorded, **fields):
    return {"recording_id": recorded.recording_id} | fields


def start_of(session, recorded):
    return session.ok(StartPositionRequest, **own(recorded))


def detach(session, recorded, position):
    assert session.ok(DetachSegmentsRequest, **own(recorded, new_start_position=position)) == 0


def not_detached(session, recorded, position):
    before = start_of(session, recorded)
    error = session.refused(DetachSegmentsRequest, **own(recorded, new_start_position=position))
    assert start_of(session, recorded) == before
    return error


def attach(session, recorded):
    return session.ok(AttachSegmentsRequest, **own(recorded))


def deleted(session, kind, **fields):
    """Return the number of files in a response, once these files are deleted."""
    request = session.send(kind, **fields)
    count = session.response(request).relevant_id
    session.signal(RecordingSignal.DELETE, request)
    assert summary(session.received(request)) == ["OK", "DELETE"]
    return count


def test_g1_detaching_within_a_segment_is_rejected(session, three):
    assert not_detached(session, three, 65_536) == ErrorCode.GENERIC


def test_g2_detaching_at_the_start_position_is_rejected(session, three):
    assert not_detached(session, three, 0) == ErrorCode.GENERIC
    detach(session, three, SEGMENT)
    assert not_detached(session, three, SEGMENT) == ErrorCode.GENERIC
    assert not_detached(session, three, 0) == ErrorCode.GENERIC


def test_g3_detaching_beyond_the_last_segment_is_rejected(session, three):
    assert not_detached(session, three, 3 * SEGMENT) == ErrorCode.GENERIC
    three.stop()
    assert not_detached(session, three, 3 * SEGMENT) == ErrorCode.GENERIC
    detach(session, three, 2 * SEGMENT)


def test_g4_detaching_segments_of_a_replay_is_rejected(session, three):
    reader = unread_replay(session, three)
    assert not_detached(session, three, SEGMENT) == ErrorCode.GENERIC
    reader.close()


def test_g5_g6_g7_detached_files_are_kept_and_can_be_attached(archive, session, three):
    detach(session, three, SEGMENT)
    assert start_of(session, three) == SEGMENT
    assert bases(archive, three) == [0, SEGMENT, 2 * SEGMENT]
    refused = session.response(Replay(session, three.recording_id, position=0).request)
    assert refused.relevant_id == ErrorCode.INVALID_POSITION
    three.stop()
    assert replayed(session, three.recording_id) == three.sent[124:]
    assert attach(session, three) == 1
    assert start_of(session, three) == 0
    assert attach(session, three) == 0
    assert replayed(session, three.recording_id) == three.sent


def test_g8_the_first_file_may_begin_with_a_gap(session):
    recorded = Recorded(session, positioned(4_096)).send(200)
    detach(session, recorded, SEGMENT)
    assert attach(session, recorded) == 1
    assert start_of(session, recorded) == 4_096
    recorded.stop()
    assert replayed(session, recorded.recording_id) == recorded.sent


def _shorter(file):
    file.truncate(SEGMENT - 32)


def _empty(file):
    file.truncate(0)
    file.truncate(SEGMENT)


def _of_another_stream(file):
    file.seek(STREAM_ID_AT)
    file.write((123_456).to_bytes(4, "little"))


@pytest.mark.parametrize("damage", [_shorter, _empty, _of_another_stream])
def test_g9_an_invalid_file_is_not_attached(archive, session, three, damage):
    detach(session, three, SEGMENT)
    with (archive.directory / f"{three.recording_id}-0.rec").open("r+b") as file:
        damage(file)
    assert session.refused(AttachSegmentsRequest, **own(three)) == ErrorCode.GENERIC
    assert start_of(session, three) == SEGMENT


def test_g10_two_files_are_attached(session, three):
    detach(session, three, 2 * SEGMENT)
    assert attach(session, three) == 2
    assert start_of(session, three) == 0


def test_g11_detached_segments_are_deleted(archive, session, three):
    detach(session, three, SEGMENT)
    assert deleted(session, DeleteDetachedSegmentsRequest, **own(three)) == 1
    assert bases(archive, three) == [SEGMENT, 2 * SEGMENT]
    assert deleted(session, DeleteDetachedSegmentsRequest, **own(three)) == 0
    three.stop()
    assert replayed(session, three.recording_id) == three.sent[124:]


def test_g12_purging_detaches_and_deletes(archive, session, three):
    fields = own(three, new_start_position=2 * SEGMENT)
    assert deleted(session, PurgeSegmentsRequest, **fields) == 2
    assert start_of(session, three) == 2 * SEGMENT
    assert bases(archive, three) == [2 * SEGMENT]


def test_g13_segments_are_counted_from_the_first_term(archive, session):
    recorded = Recorded(session, positioned(66_560)).send(200)
    first = 65_536
    assert bases(archive, recorded) == [first, first + SEGMENT]
    assert not_detached(session, recorded, SEGMENT) == ErrorCode.GENERIC
    detach(session, recorded, first + SEGMENT)
    assert start_of(session, recorded) == first + SEGMENT
    recorded.stop()


def adjacent_recordings(session, *, begin=2 * SEGMENT, **geometry):
    """Make a recording of [0, two segments), and one of the same stream from `begin` on."""
    stream_id = new_stream_id()
    source = Recorded(session, positioned(0), stream_id=stream_id)
    source.send(2 * SEGMENT // 1_024, length=FULL).stop()
    target = Recorded(session, positioned(begin, **geometry), stream_id=stream_id)
    target.number = source.number
    target.send(40, length=FULL).stop()
    return source, target


def migration(source, target):
    return {"src_recording_id": source.recording_id, "dst_recording_id": target.recording_id}


def test_g14_segments_are_migrated_to_an_adjacent_recording(archive, session):
    source, target = adjacent_recordings(session)
    assert deleted(session, MigrateSegmentsRequest, **migration(source, target)) == 2
    assert start_of(session, target) == 0
    ends = (StartPositionRequest, StopPositionRequest)
    assert [session.ok(kind, **own(source)) for kind in ends] == [0, 0]
    assert bases(archive, source) == []
    assert bases(archive, target) == [0, SEGMENT, 2 * SEGMENT]
    assert replayed(session, target.recording_id) == source.sent + target.sent


def test_g15_recordings_that_are_not_adjacent(archive, session):
    others = [{"begin": 3 * SEGMENT}, {"mtu": 2_048}, {"initial_term_id": 8}]
    for each in others:
        source, target = adjacent_recordings(session, **each)
        fields = migration(source, target)
        assert session.refused(MigrateSegmentsRequest, **fields) == ErrorCode.GENERIC, each
        assert start_of(session, target) == target.started.position


def test_g15_an_active_source(session):
    source, target = adjacent_recordings(session)
    live = Recorded(session, positioned(0), stream_id=source.stream_id)
    fields = migration(live, target)
    assert session.refused(MigrateSegmentsRequest, **fields) == ErrorCode.GENERIC
    live.stop()


def test_g15_an_existing_file(archive, session):
    source, target = adjacent_recordings(session)
    taken = archive.directory / f"{target.recording_id}-0.rec"
    taken.write_bytes(b"mine")
    fields = migration(source, target)
    assert session.refused(MigrateSegmentsRequest, **fields) == ErrorCode.GENERIC
    assert taken.read_bytes() == b"mine"
    assert bases(archive, source)[:2] == [0, SEGMENT]
    taken.unlink()


def test_the_files_of_a_stopped_recording_have_full_length(archive, session, three):
    three.stop()
    until(lambda: len(bases(archive, three)) == 3, "three files")
    for base in bases(archive, three):
        file = archive.directory / f"{three.recording_id}-{base}.rec"
        assert file.stat().st_size == SEGMENT
