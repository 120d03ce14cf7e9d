"""Truncation and purging: files, replays and signals. Cases T1 to T10."""

import pytest

from tests.archive.archives import SEGMENT, TERM, until
from tests.archive.conversation import shape
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
def three(talk):
    """A stopped recording of three segments."""
    recorded = Recorded(talk, positioned(0)).send(300)
    recorded.stop()
    return recorded


def truncation(talk, recorded, position):
    """Truncate a recording. Returns the response, once all files are deleted."""
    request = talk.send(
        TruncateRecordingRequest, recording_id=recorded.recording_id, position=position
    )
    answer = talk.answer(request)
    assert answer.code == ControlResponseCode.OK, answer
    signal = talk.signal(RecordingSignal.DELETE, request)
    assert shape(talk.heard(request)) == ["OK", "DELETE"]
    assert (signal.recording_id, signal.subscription_id, signal.position) == (
        recorded.recording_id, -1, -1,
    )  # fmt: skip
    return answer


def bases(archive, recorded):
    """Return the base positions of a recording's segment files."""
    names = archive.directory.glob(f"{recorded.recording_id}-*.rec")
    return sorted(int(path.stem.partition("-")[2]) for path in names)


def stop_position(talk, recorded):
    return talk.ok(StopPositionRequest, recording_id=recorded.recording_id)


def refused(talk, recorded, position):
    return talk.refused(
        TruncateRecordingRequest, recording_id=recorded.recording_id, position=position
    )


@pytest.mark.full
def test_t1_an_active_recording(talk):
    recorded = Recorded(talk).send(2)
    assert refused(talk, recorded, 0) == ErrorCode.ACTIVE_RECORDING
    recorded.stop()


def test_t2_a_position_outside_or_not_aligned(talk):
    late = Recorded(talk, positioned(4_096)).send(10)
    late.stop()
    for position in (4_064, late.stop_position + 32, 4_096 + 33):
        assert refused(talk, late, position) == ErrorCode.INVALID_POSITION
    assert stop_position(talk, late) == late.stop_position


def test_t3_a_position_within_a_frame(talk, three):
    """Java's archive has moved the stop position by then, and leaves it there."""
    assert refused(talk, three, FRAME + 32) == ErrorCode.GENERIC


def test_t4_to_where_it_stops_already(archive, talk, three):
    before = bases(archive, three)
    answer = truncation(talk, three, three.stop_position)
    assert answer.relevant_id == 0
    assert bases(archive, three) == before == [0, SEGMENT, 2 * SEGMENT]
    assert replayed(talk, three.recording_id) == three.sent


def test_t5_to_a_frame_in_the_middle_segment(archive, talk, three):
    cut = SEGMENT + 10 * FRAME
    assert truncation(talk, three, cut).relevant_id >= 1
    assert bases(archive, three) == [0, SEGMENT]
    middle = (archive.directory / f"{three.recording_id}-{SEGMENT}.rec").read_bytes()
    assert len(middle) == SEGMENT
    assert any(middle[10 * FRAME - 32 : 10 * FRAME])
    assert not any(middle[10 * FRAME :])
    assert stop_position(talk, three) == cut
    assert replayed(talk, three.recording_id) == three.sent[: 124 + 10]


def test_t6_to_where_a_segment_begins(archive, talk, three):
    assert truncation(talk, three, SEGMENT).relevant_id >= 2
    assert bases(archive, three) == [0]
    assert replayed(talk, three.recording_id) == three.sent[:124]


def test_t7_to_its_start(archive, talk, three):
    truncation(talk, three, 0)
    assert bases(archive, three) == []
    found = talk.ask(ListRecordingRequest, recording_id=three.recording_id)
    assert (found.start_position, found.stop_position) == (0, 0)


def unread(talk, recorded):
    """A replay whose reader is connected but does not read, so the replay cannot end."""
    replay = Replay(talk, recorded.recording_id)
    reader = replay.read()
    until(lambda: reader.subscription.images, "the image of the replay")
    (reader.image,) = reader.subscription.images
    return reader


def test_t8_an_active_replay_is_broken_off(archive, talk, three):
    reader = unread(talk, three)
    truncation(talk, three, TERM)
    assert bases(archive, three) == [0]
    until(lambda: reader.image.is_publication_revoked, "the end of the replay")
    reader.close()


def test_t9_what_may_not_be_purged(talk, three):
    active = Recorded(talk).send(1)
    asked = {"recording_id": active.recording_id}
    assert talk.refused(PurgeRecordingRequest, **asked) == ErrorCode.ACTIVE_RECORDING
    active.stop()
    reader = unread(talk, three)
    asked = {"recording_id": three.recording_id}
    assert talk.refused(PurgeRecordingRequest, **asked) == ErrorCode.ACTIVE_RECORDING
    reader.close()
    refusal = talk.refused(PurgeRecordingRequest, recording_id=1_000_004)
    assert refusal == ErrorCode.UNKNOWN_RECORDING


def entry_state(archive, recording_id):
    """Return the state of a recording's catalog entry."""
    catalog, at = (archive.directory / "archive.catalog").read_bytes(), ENTRY_HEADER
    while length := int.from_bytes(catalog[at : at + 4], "little"):
        own = catalog[at + RECORDING_ID_AT : at + RECORDING_ID_AT + 8]
        if int.from_bytes(own, "little") == recording_id:
            return int.from_bytes(catalog[at + STATE_AT : at + STATE_AT + 4], "little")
        at += ENTRY_HEADER + length
    return None


def test_t10_a_purged_recording_is_gone_for_good(archive, talk, three):
    own = {"recording_id": three.recording_id}
    request = talk.send(PurgeRecordingRequest, **own)
    assert talk.answer(request).relevant_id == 3
    signal = talk.signal(RecordingSignal.DELETE, request)
    assert signal.recording_id == three.recording_id
    assert bases(archive, three) == []
    assert entry_state(archive, three.recording_id) == DELETED
    found = talk.ask(ListRecordingRequest, **own)
    assert (found.code, found.relevant_id) == (
        ControlResponseCode.RECORDING_UNKNOWN, three.recording_id,
    )  # fmt: skip
    assert talk.refused(StopPositionRequest, **own) == ErrorCode.UNKNOWN_RECORDING
    following = Recorded(talk)
    assert following.recording_id > three.recording_id
    following.stop()
