"""Listings and queries: the messages that are sent, and how they end. Cases L1 to L12."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import Conversation, shape
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
def two(talk):
    """The two newest recordings of an archive."""
    made = [Recorded(talk, f"aeron:ipc?term-length=64k|alias=pair-{name}") for name in "ab"]
    for each in made:
        each.send(2).stop()
    return made


def listed(talk, kind, count, **fields):
    """Return all messages of a listing that ends with `count` messages."""
    request = talk.send(kind, **fields)
    until(lambda: len(talk.heard(request)) >= count, f"{count} messages")
    talk.ok(ArchiveIdRequest)
    found = talk.heard(request)
    assert len(found) == count, found
    return found


def test_l1_what_is_missing_is_told_at_the_end(talk, two):
    first, second = (each.recording_id for each in two)
    a, b, end = listed(talk, ListRecordingsRequest, 3, from_recording_id=first, record_count=10)
    assert (a.recording_id, b.recording_id) == (first, second)
    assert (end.code, end.relevant_id) == (ControlResponseCode.RECORDING_UNKNOWN, second + 1)
    assert (a.start_position, a.stop_position, a.mtu_length) == (0, 2 * FRAME, 1_408)
    assert (a.term_buffer_length, a.segment_file_length) == (65_536, 131_072)
    assert a.stream_id == two[0].stream_id
    assert 0 < a.start_timestamp <= a.stop_timestamp


def test_l2_nothing_is_told_where_nothing_is_missing(talk, two):
    fields = {"from_recording_id": two[0].recording_id, "record_count": 2}
    found = listed(talk, ListRecordingsRequest, 2, **fields)
    assert shape(found) == 2 * ["RecordingDescriptor"]


def test_l3_from_beyond_the_end(talk):
    (end,) = listed(talk, ListRecordingsRequest, 1, from_recording_id=1_000_000, record_count=5)
    assert (end.code, end.relevant_id) == (ControlResponseCode.RECORDING_UNKNOWN, 1_000_000)


def test_l4_one_that_is_unknown(talk):
    (end,) = listed(talk, ListRecordingRequest, 1, recording_id=1_000_001)
    assert (end.code, end.relevant_id) == (ControlResponseCode.RECORDING_UNKNOWN, 1_000_001)
    assert end.error_message == ""


def test_l5_one_listing_at_a_time(archive, talk):
    """The first cannot end: its descriptors exceed the window of a client that does not read."""
    recorded = Recorded(talk, f"aeron:ipc?term-length=64k|alias={'long' * 750}")
    others = [
        talk.aeron.add_exclusive_publication(recorded.channel, recorded.stream_id)
        for _ in range(11)
    ]
    until(lambda: len(talk.heard(recorded.request)) == 13, "twelve recordings")
    neighbour = Conversation(archive)
    fields = {"from_recording_id": recorded.recording_id, "record_count": 12}
    first = talk.send(ListRecordingsRequest, **fields)
    second = talk.send(ListRecordingRequest, recording_id=recorded.recording_id)
    for _ in range(2):
        neighbour.ok(StartPositionRequest, recording_id=recorded.recording_id)
    refusal = talk.answer(second)
    assert (refusal.code, refusal.relevant_id) == (
        ControlResponseCode.ERROR, ErrorCode.ACTIVE_LISTING,
    )  # fmt: skip
    until(lambda: len(talk.heard(first)) == 12, "the first listing")
    assert shape(talk.heard(first)) == 12 * ["RecordingDescriptor"]
    for each in (*others, recorded.publication):
        each.close()
    neighbour.close()


def test_l6_by_a_part_of_the_channel(talk, two):
    fields = {
        "from_recording_id": two[0].recording_id, "record_count": 10,
        "stream_id": two[1].stream_id, "channel": "=pair-b",
    }  # fmt: skip
    found, end = listed(talk, ListRecordingsForUriRequest, 2, **fields)
    assert found.recording_id == two[1].recording_id
    assert end.code == ControlResponseCode.RECORDING_UNKNOWN
    fields["stream_id"] = new_stream_id()
    assert shape(listed(talk, ListRecordingsForUriRequest, 1, **fields)) == ["RECORDING_UNKNOWN"]


def test_l7_the_last_that_matches(talk, two):
    wanted = two[0]
    fields = {
        "min_recording_id": 0, "session_id": wanted.publication.session_id,
        "stream_id": wanted.stream_id, "channel": "pair",
    }  # fmt: skip
    kind = FindLastMatchingRecordingRequest
    assert talk.ok(kind, **fields) == wanted.recording_id
    assert talk.ok(kind, **fields | {"channel": "pear"}) == -1
    assert talk.ok(kind, **fields | {"min_recording_id": wanted.recording_id + 1}) == -1
    refusal = talk.refused(kind, **fields | {"min_recording_id": -1})
    assert refusal == ErrorCode.UNKNOWN_RECORDING


@pytest.mark.parametrize("index", [-1, 1_000_000])
def test_l8_subscriptions_beyond_the_range(talk, index):
    answer = talk.ask(
        ListRecordingSubscriptionsRequest, pseudo_index=index, subscription_count=1,
        apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
    )  # fmt: skip
    assert (answer.code, answer.relevant_id) == (ControlResponseCode.SUBSCRIPTION_UNKNOWN, 0)


def test_l9_and_l10_positions_while_active_and_afterwards(talk):
    recorded = Recorded(talk).send(7)
    asked = {"recording_id": recorded.recording_id}
    assert [talk.ok(kind, **asked) for kind in POSITIONS] == [0, -1, 7 * FRAME, 7 * FRAME]
    recorded.stop()
    assert [talk.ok(kind, **asked) for kind in POSITIONS] == [0, 7 * FRAME, -1, 7 * FRAME]


@pytest.mark.parametrize("kind_of_position", POSITIONS)
@pytest.mark.parametrize("recording_id", [-1, 1_000_002])
def test_l11_positions_of_an_unknown_recording(talk, kind_of_position, recording_id):
    refusal = talk.refused(kind_of_position, recording_id=recording_id)
    assert refusal == ErrorCode.UNKNOWN_RECORDING


def entry_length(archive, recording_id):
    """Return the length of an entry in a catalog, without its header."""
    catalog, at = (archive.directory / "archive.catalog").read_bytes(), CATALOG_HEADER
    while length := int.from_bytes(catalog[at : at + 4], "little"):
        own = int.from_bytes(catalog[at + RECORDING_ID_AT : at + RECORDING_ID_AT + 8], "little")
        if own == recording_id:
            return length
        at += ENTRY_HEADER + length
    raise AssertionError(f"no entry of recording {recording_id}")


def test_l12_a_descriptor_is_sent_with_its_padding(archive, talk, two):
    talk.ask(ListRecordingRequest, recording_id=two[0].recording_id)
    (heard,) = [each for each in talk.all if isinstance(each.message, RecordingDescriptor)]
    assert heard.length == 8 + entry_length(archive, two[0].recording_id)
