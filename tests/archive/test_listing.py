"""Listings and queries: their messages, and how they end. Cases L1 to L12."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import ControlSession, summary
from tests.archive.streams import FRAME, Recorded, new_stream_id
from windtunnel.driver.archive.protocol.codes import BooleanType, ControlResponseCode, ErrorCode
from windtunnel.driver.archive.protocol.requests import (
    ArchiveIdRequest,
    FindLastMatchingRecordingRequest,
    ListRecordingRequest,
    ListRecordingsForUriRequest,
    ListRecordingsRequest,
    ListRecordingSubscriptionsRequest,
    MaxRecordedPositionRequest,
    PurgeRecordingRequest,
    RecordingPositionRequest,
    StartPositionRequest,
    StopPositionRequest,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor

CATALOG_HEADER, ENTRY_HEADER, RECORDING_ID_AT = 32, 32, 48
POSITIONS = (
    StartPositionRequest, StopPositionRequest, RecordingPositionRequest, MaxRecordedPositionRequest
)  # fmt: skip


@pytest.fixture
def two(session):
    """The two newest recordings of an archive."""
    made = [Recorded(session, f"aeron:ipc?term-length=64k|alias=pair-{name}") for name in "ab"]
    for each in made:
        each.send(2).stop()
    return made


def listed(session, kind, count, **fields):
    """Return all messages of a listing that ends with `count` messages."""
    request = session.send(kind, **fields)
    until(lambda: len(session.received(request)) >= count, f"{count} messages")
    session.ok(ArchiveIdRequest)
    found = session.received(request)
    assert len(found) == count, found
    return found


def test_l1_missing_recordings_are_reported_at_the_end(session, two):
    first, second = (each.recording_id for each in two)
    a, b, end = listed(session, ListRecordingsRequest, 3, from_recording_id=first, record_count=10)
    assert (a.recording_id, b.recording_id) == (first, second)
    assert (end.code, end.relevant_id) == (ControlResponseCode.RECORDING_UNKNOWN, second + 1)
    assert (a.start_position, a.stop_position, a.mtu_length) == (0, 2 * FRAME, 1_408)
    assert (a.term_buffer_length, a.segment_file_length) == (65_536, 131_072)
    assert a.stream_id == two[0].stream_id
    assert 0 < a.start_timestamp <= a.stop_timestamp


def test_l2_no_error_if_no_recording_is_missing(session, two):
    fields = {"from_recording_id": two[0].recording_id, "record_count": 2}
    found = listed(session, ListRecordingsRequest, 2, **fields)
    assert summary(found) == 2 * ["RecordingDescriptor"]


def test_l3_from_an_id_beyond_the_last(session):
    (end,) = listed(session, ListRecordingsRequest, 1, from_recording_id=1_000_000, record_count=5)
    assert (end.code, end.relevant_id) == (ControlResponseCode.RECORDING_UNKNOWN, 1_000_000)


def test_the_end_of_a_list_that_begins_at_a_purged_recording(session, two):
    first, second = (each.recording_id for each in two)
    session.ok(PurgeRecordingRequest, recording_id=first)
    fields = {"from_recording_id": first, "record_count": 10}
    only, end = listed(session, ListRecordingsRequest, 2, **fields)
    assert only.recording_id == second
    assert (end.code, end.relevant_id) == (ControlResponseCode.RECORDING_UNKNOWN, first + 1)


def test_l4_an_unknown_recording(session):
    (end,) = listed(session, ListRecordingRequest, 1, recording_id=1_000_001)
    assert (end.code, end.relevant_id) == (ControlResponseCode.RECORDING_UNKNOWN, 1_000_001)
    assert end.error_message == ""


def test_l5_one_listing_at_a_time(archive, session):
    """The first cannot end: its descriptors exceed the window of a client that does not read."""
    recorded = Recorded(session, f"aeron:ipc?term-length=64k|alias={'long' * 750}")
    others = [
        session.aeron.add_exclusive_publication(recorded.channel, recorded.stream_id)
        for _ in range(11)
    ]
    until(lambda: len(session.received(recorded.request)) == 13, "twelve recordings")
    other_session = ControlSession(archive)
    fields = {"from_recording_id": recorded.recording_id, "record_count": 12}
    first = session.send(ListRecordingsRequest, **fields)
    second = session.send(ListRecordingRequest, recording_id=recorded.recording_id)
    for _ in range(2):
        other_session.ok(StartPositionRequest, recording_id=recorded.recording_id)
    error = session.response(second)
    assert (error.code, error.relevant_id) == (
        ControlResponseCode.ERROR, ErrorCode.ACTIVE_LISTING,
    )  # fmt: skip
    until(lambda: len(session.received(first)) == 12, "the first listing")
    assert summary(session.received(first)) == 12 * ["RecordingDescriptor"]
    for each in (*others, recorded.publication):
        each.close()
    other_session.close()


def test_l6_by_a_part_of_the_channel(session, two):
    fields = {
        "from_recording_id": two[0].recording_id, "record_count": 10,
        "stream_id": two[1].stream_id, "channel": "=pair-b",
    }  # fmt: skip
    found, end = listed(session, ListRecordingsForUriRequest, 2, **fields)
    assert found.recording_id == two[1].recording_id
    assert end.code == ControlResponseCode.RECORDING_UNKNOWN
    fields["stream_id"] = new_stream_id()
    assert summary(listed(session, ListRecordingsForUriRequest, 1, **fields)) == [
        "RECORDING_UNKNOWN"
    ]


def test_l7_the_last_matching_recording(session, two):
    wanted = two[0]
    fields = {
        "min_recording_id": 0, "session_id": wanted.publication.session_id,
        "stream_id": wanted.stream_id, "channel": "pair",
    }  # fmt: skip
    kind = FindLastMatchingRecordingRequest
    assert session.ok(kind, **fields) == wanted.recording_id
    assert session.ok(kind, **fields | {"channel": "pear"}) == -1
    assert session.ok(kind, **fields | {"min_recording_id": wanted.recording_id + 1}) == -1
    error = session.refused(kind, **fields | {"min_recording_id": -1})
    assert error == ErrorCode.UNKNOWN_RECORDING


@pytest.mark.parametrize("index", [-1, 1_000_000])
def test_l8_subscriptions_beyond_the_range(session, index):
    response = session.request(
        ListRecordingSubscriptionsRequest, pseudo_index=index, subscription_count=1,
        apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
    )  # fmt: skip
    assert (response.code, response.relevant_id) == (ControlResponseCode.SUBSCRIPTION_UNKNOWN, 0)


def test_l9_and_l10_positions_while_active_and_afterwards(session):
    recorded = Recorded(session).send(7)
    arguments = {"recording_id": recorded.recording_id}
    assert [session.ok(kind, **arguments) for kind in POSITIONS] == [0, -1, 7 * FRAME, 7 * FRAME]
    recorded.stop()
    assert [session.ok(kind, **arguments) for kind in POSITIONS] == [0, 7 * FRAME, -1, 7 * FRAME]


@pytest.mark.parametrize("kind_of_position", POSITIONS)
@pytest.mark.parametrize("recording_id", [-1, 1_000_002])
def test_l11_positions_of_an_unknown_recording(session, kind_of_position, recording_id):
    error = session.refused(kind_of_position, recording_id=recording_id)
    assert error == ErrorCode.UNKNOWN_RECORDING


def entry_length(archive, recording_id):
    """Return the length of an entry in a catalog, without its header."""
    catalog, at = (archive.directory / "archive.catalog").read_bytes(), CATALOG_HEADER
    while length := int.from_bytes(catalog[at : at + 4], "little"):
        own = int.from_bytes(catalog[at + RECORDING_ID_AT : at + RECORDING_ID_AT + 8], "little")
        if own == recording_id:
            return length
        at += ENTRY_HEADER + length
    raise AssertionError(f"no entry of recording {recording_id}")


def test_l12_a_descriptor_is_sent_with_its_padding(archive, session, two):
    session.request(ListRecordingRequest, recording_id=two[0].recording_id)
    (received,) = [each for each in session.all if isinstance(each.message, RecordingDescriptor)]
    assert received.length == 8 + entry_length(archive, two[0].recording_id)
