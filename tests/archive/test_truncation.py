"""Truncation and purging: files, replays and signals. Cases T1 to T10."""

import pytest

from tests.archive.archives import SEGMENT, TERM, until
from tests.archive.conversation import summary
from tests.archive.streams import FRAME, Recorded, Replay, positioned, replayed
from windtunnel.driver.archive.protocol.codes import ControlResponseCode, ErrorCode, RecordingSignal
from windtunnel.driver.archive.protocol.requests import (
    ListRecordingRequest,
    PurgeRecordingRequest,
    StopPositionRequest,
    TruncateRecordingRequest,
)

ENTRY_HEADER, STATE_AT, RECORDING_ID_AT, DELETED = 32, 4, 48, 2


@pytest.fixture
def three(session):
    """A stopped recording of three segments."""
    recorded = Recorded(session, positioned(0)).send(300)
    recorded.stop()
    return recorded


def truncation(session, recorded, position):
    """Truncate a recording. Returns the response, once all files are deleted."""
    request = session.send(
        TruncateRecordingRequest, recording_id=recorded.recording_id, position=position
    )
    response = session.response(request)
    assert response.code == ControlResponseCode.OK, response
    signal = session.signal(RecordingSignal.DELETE, request)
    assert summary(session.received(request)) == ["OK", "DELETE"]
    assert (signal.recording_id, signal.subscription_id, signal.position) == (
        recorded.recording_id, -1, -1,
    )  # fmt: skip
    return response


def bases(archive, recorded):
    """Return the base positions of a recording's segment files."""
    names = archive.directory.glob(f"{recorded.recording_id}-*.rec")
    return sorted(int(path.stem.partition("-")[2]) for path in names)


def stop_position(session, recorded):
    return session.ok(StopPositionRequest, recording_id=recorded.recording_id)


def refused(session, recorded, position):
    return session.refused(
        TruncateRecordingRequest, recording_id=recorded.recording_id, position=position
    )


@pytest.mark.full
def test_t1_an_active_recording(session):
    recorded = Recorded(session).send(2)
    assert refused(session, recorded, 0) == ErrorCode.ACTIVE_RECORDING
    recorded.stop()


def test_t2_a_position_outside_or_not_aligned(session):
    late = Recorded(session, positioned(4_096)).send(10)
    late.stop()
    for position in (4_064, late.stop_position + 32, 4_096 + 33):
        assert refused(session, late, position) == ErrorCode.INVALID_POSITION
    assert stop_position(session, late) == late.stop_position


def test_t3_a_position_within_a_frame(session, three):
    """Java's archive moves the stop position before the error, and leaves it there."""
    assert refused(session, three, FRAME + 32) == ErrorCode.GENERIC


def test_t4_to_its_stop_position(archive, session, three):
    before = bases(archive, three)
    response = truncation(session, three, three.stop_position)
    assert response.relevant_id == 0
    assert bases(archive, three) == before == [0, SEGMENT, 2 * SEGMENT]
    assert replayed(session, three.recording_id) == three.sent


def test_t5_to_a_frame_of_the_middle_segment(archive, session, three):
    cut = SEGMENT + 10 * FRAME
    assert truncation(session, three, cut).relevant_id >= 1
    assert bases(archive, three) == [0, SEGMENT]
    middle = (archive.directory / f"{three.recording_id}-{SEGMENT}.rec").read_bytes()
    assert len(middle) == SEGMENT
    assert any(middle[10 * FRAME - 32 : 10 * FRAME])
    assert not any(middle[10 * FRAME :])
    assert stop_position(session, three) == cut
    assert replayed(session, three.recording_id) == three.sent[: 124 + 10]


def test_t6_to_the_start_of_a_segment(archive, session, three):
    assert truncation(session, three, SEGMENT).relevant_id >= 2
    assert bases(archive, three) == [0]
    assert replayed(session, three.recording_id) == three.sent[:124]


def test_t7_to_its_start_position(archive, session, three):
    truncation(session, three, 0)
    assert bases(archive, three) == []
    found = session.request(ListRecordingRequest, recording_id=three.recording_id)
    assert (found.start_position, found.stop_position) == (0, 0)


def unread_replay(session, recorded):
    """Start a replay whose reader is connected but does not read, so the replay cannot end."""
    replay = Replay(session, recorded.recording_id)
    reader = replay.read()
    until(lambda: reader.subscription.images, "the image of the replay")
    (reader.image,) = reader.subscription.images
    return reader


def test_t8_an_active_replay_is_aborted(archive, session, three):
    reader = unread_replay(session, three)
    truncation(session, three, TERM)
    assert bases(archive, three) == [0]
    until(lambda: reader.image.is_publication_revoked, "the end of the replay")
    reader.close()


def test_t9_recordings_that_cannot_be_purged(session, three):
    active = Recorded(session).send(1)
    arguments = {"recording_id": active.recording_id}
    assert session.refused(PurgeRecordingRequest, **arguments) == ErrorCode.ACTIVE_RECORDING
    active.stop()
    reader = unread_replay(session, three)
    arguments = {"recording_id": three.recording_id}
    assert session.refused(PurgeRecordingRequest, **arguments) == ErrorCode.ACTIVE_RECORDING
    reader.close()
    error = session.refused(PurgeRecordingRequest, recording_id=1_000_004)
    assert error == ErrorCode.UNKNOWN_RECORDING


def entry_state(archive, recording_id):
    """Return the state of a recording's catalog entry."""
    catalog, at = (archive.directory / "archive.catalog").read_bytes(), ENTRY_HEADER
    while length := int.from_bytes(catalog[at : at + 4], "little"):
        own = catalog[at + RECORDING_ID_AT : at + RECORDING_ID_AT + 8]
        if int.from_bytes(own, "little") == recording_id:
            return int.from_bytes(catalog[at + STATE_AT : at + STATE_AT + 4], "little")
        at += ENTRY_HEADER + length
    return None


def test_t10_a_purged_recording_is_removed_permanently(archive, session, three):
    own = {"recording_id": three.recording_id}
    request = session.send(PurgeRecordingRequest, **own)
    assert session.response(request).relevant_id == 3
    signal = session.signal(RecordingSignal.DELETE, request)
    assert signal.recording_id == three.recording_id
    assert bases(archive, three) == []
    assert entry_state(archive, three.recording_id) == DELETED
    found = session.request(ListRecordingRequest, **own)
    assert (found.code, found.relevant_id) == (
        ControlResponseCode.RECORDING_UNKNOWN, three.recording_id,
    )  # fmt: skip
    assert session.refused(StopPositionRequest, **own) == ErrorCode.UNKNOWN_RECORDING
    following = Recorded(session)
    assert following.recording_id > three.recording_id
    following.stop()
