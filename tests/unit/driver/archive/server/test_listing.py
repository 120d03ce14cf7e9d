"""Listings, queries, channels. Cases L1 to L12."""

import pytest

from tests.unit.driver.archive.server.own_archive import Err, Ok, own_archive
from tests.unit.driver.archive.server.own_stream import FRAME
from tests.unit.driver.archive.storage import own_recording
from windtunnel.driver.archive.protocol.codes import BooleanType, ControlResponseCode
from windtunnel.driver.archive.protocol.requests import (
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
    StopRecordingSubscriptionRequest,
    UpdateChannelRequest,
)
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter

UNKNOWN = "RECORDING_UNKNOWN"


def filled(folder, count):
    """Return a catalog with `count` stopped recordings, every second one with an alias."""
    directory = folder / "archive"
    directory.mkdir()
    with CatalogWriter.create(directory) as catalog:
        for number in range(count):
            alias = "odd" if number % 2 else "even"
            catalog.add(
                own_recording.descriptor(stop=0, original_channel=f"aeron:ipc?alias={alias}")
            )


def told(talker, kind, turns=100, **values):
    """Return all messages of a listing."""
    asked = talker.send(kind, **values)
    for _ in range(turns):
        talker.own.step()
    return talker.about(asked)


def listed(*ids):
    return [("RecordingDescriptor", each) for each in ids]


@pytest.mark.parametrize(
    ("first", "count", "expected"),
    [
        (0, 10, [*listed(0, 1), (UNKNOWN, 2)]),
        (0, 2, listed(0, 1)),
        (1, 1, listed(1)),
        (5, 1, [(UNKNOWN, 5)]),
        (-9, 3, [*listed(0, 1), (UNKNOWN, 2)]),
        (0, 0, []),
        (0, -1, []),
    ],
)
def test_recordings_are_listed_from_an_id_on(tmp_path, monkeypatch, first, count, expected):
    filled(tmp_path, 2)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        values = {"from_recording_id": first, "record_count": count}
        assert told(talker, ListRecordingsRequest, **values) == expected
        assert told(talker, ListRecordingsRequest, **values) == expected


def test_a_long_listing_comes_whole_through_a_short_stream(tmp_path, monkeypatch):
    filled(tmp_path, 500)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        found = told(talker, ListRecordingsRequest, 600, from_recording_id=0, record_count=1000)
        assert found == [*listed(*range(500)), (UNKNOWN, 500)]


def test_one_recording_is_listed_as_the_catalog_has_it(tmp_path, monkeypatch):
    filled(tmp_path, 2)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        lengths = []
        post = talker._on_message
        talker._assembler._handler = lambda payload, header: (
            lengths.append(len(payload)), post(payload, header)
        )  # fmt: skip
        lengths.clear()
        assert told(talker, ListRecordingRequest, recording_id=1) == listed(1)
        assert 8 + 160 in lengths
        assert told(talker, ListRecordingRequest, recording_id=2) == [(UNKNOWN, 2)]
        assert told(talker, ListRecordingRequest, recording_id=-1) == [(UNKNOWN, -1)]


def test_only_one_listing_at_a_time(tmp_path, monkeypatch):
    filled(tmp_path, 2)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        first = talker.send(ListRecordingsRequest, from_recording_id=0, record_count=2)
        second = talker.send(ListRecordingsRequest, from_recording_id=0, record_count=2)
        own.until(lambda: talker.answer(second))
        assert talker.about(first) == listed(0, 1)
        assert talker.answer(second) == Err(1)


def test_an_unknown_recording_is_told_while_the_next_request_waits(talker):
    asked = [talker.send(ListRecordingRequest, recording_id=each) for each in (5, 6)]
    talker.own.until(lambda: all(talker.about(each) for each in asked))
    assert [talker.about(each) for each in asked] == [[(UNKNOWN, 5)], [(UNKNOWN, 6)]]


def test_recordings_are_listed_by_stream_and_text(tmp_path, monkeypatch):
    filled(tmp_path, 4)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        values = {"from_recording_id": 0, "record_count": 10, "stream_id": own_recording.STREAM_ID}
        kind = ListRecordingsForUriRequest
        assert told(talker, kind, channel="alias=odd", **values) == [*listed(1, 3), (UNKNOWN, 4)]
        assert told(talker, kind, channel="", **values)[:4] == listed(0, 1, 2, 3)
        values["stream_id"] += 1
        assert told(talker, kind, channel="alias=odd", **values) == [(UNKNOWN, 4)]


def test_the_newest_that_matches_is_found(tmp_path, monkeypatch):
    filled(tmp_path, 4)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()

        def find(least, text):
            return talker.ask(
                FindLastMatchingRecordingRequest, min_recording_id=least, channel=text,
                session_id=own_recording.SESSION_ID, stream_id=own_recording.STREAM_ID,
            )  # fmt: skip

        assert find(0, "even") == Ok(2)
        assert find(2, "even") == Ok(2)
        assert find(3, "even") == Ok(-1)
        assert find(0, "neither") == Ok(-1)
        assert find(-1, "even") == Err(5)


@pytest.mark.parametrize(("index", "count"), [(-1, 1), (2, 1), (0, 0), (0, -1)])
def test_subscriptions_beyond_range_are_unknown(talker, index, count):
    for stream in (1, 2):
        talker.start(stream=stream)
    answer = talker.ask(
        ListRecordingSubscriptionsRequest, pseudo_index=index, subscription_count=count,
        apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
    )  # fmt: skip
    assert answer.code == ControlResponseCode.SUBSCRIPTION_UNKNOWN


def test_subscriptions_are_listed_by_stream_and_text(own, talker):
    for stream in (1, 2, 3):
        talker.start(stream=stream)

    def streams(**values):
        wanted = {
            "pseudo_index": 0, "subscription_count": 9, "stream_id": 2, "channel": "ipc",
            "apply_stream_id": BooleanType.FALSE,
        } | values  # fmt: skip
        asked = talker.send(ListRecordingSubscriptionsRequest, **wanted)
        for _ in range(50):
            own.step()
        return [
            getattr(each, "stream_id", "end")
            for each in talker.said if each.correlation_id == asked
        ]  # fmt: skip

    assert streams() == [1, 2, 3, "end"]
    assert streams(subscription_count=2) == [1, 2]
    assert streams(pseudo_index=1) == [2, 3, "end"]
    assert streams(apply_stream_id=BooleanType.TRUE) == [2, "end"]
    assert streams(channel="udp") == ["end"]


def test_a_subscription_that_is_stopped_meanwhile_is_not_listed(own, talker):
    started = [talker.start(stream=stream) for stream in (1, 2)]
    asked = talker.send(
        ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=9,
        apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
    )  # fmt: skip
    stop = talker.ask(StopRecordingSubscriptionRequest, subscription_id=started[0].relevant_id)
    assert stop == Ok()
    own.until(lambda: talker.answer(asked))
    found = [
        getattr(each, "stream_id", "end") for each in talker.said if each.correlation_id == asked
    ]
    assert found == [2, "end"]


def positions(talker, recording_id=0):
    return [
        talker.ask(kind, recording_id=recording_id).relevant_id
        for kind in (
            StartPositionRequest, StopPositionRequest, RecordingPositionRequest,
            MaxRecordedPositionRequest,
        )
    ]  # fmt: skip


def test_positions_while_it_goes_on_and_after(own, talker):
    live = talker.live_recording(7)
    assert positions(talker) == [0, -1, 7 * FRAME, 7 * FRAME]
    live.publication.close()
    own.until(lambda: ("STOP", 0, live.end) in talker.signals())
    assert positions(talker) == [0, live.end, -1, live.end]


@pytest.mark.parametrize(
    "kind",
    [
        StartPositionRequest, StopPositionRequest, RecordingPositionRequest,
        MaxRecordedPositionRequest,
    ],
)  # fmt: skip
def test_positions_of_what_is_not_there_are_refused(talker, kind):
    for recording_id in (0, -1, 1 << 62):
        assert talker.ask(kind, recording_id=recording_id) == Err(5)


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:ipc?alias=" + "x" * 2000])
def test_a_channel_is_changed_in_place(tmp_path, monkeypatch, channel):
    filled(tmp_path, 3)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        assert talker.ask(UpdateChannelRequest, recording_id=1, channel=channel) == Ok(0)
        told(talker, ListRecordingsRequest, from_recording_id=0, record_count=3)
        found = [each.original_channel for each in talker.said if hasattr(each, "source_identity")]
        assert found == ["aeron:ipc?alias=even", channel, "aeron:ipc?alias=even"]
        unknown = told(talker, UpdateChannelRequest, recording_id=3, channel=channel)
        assert unknown == [(UNKNOWN, 3)]
        assert told(talker, UpdateChannelRequest, recording_id=1, channel="rubbish") == []


def test_what_was_purged_is_not_listed(own, talker):
    talker.stopped_recording()
    talker.ask(PurgeRecordingRequest, recording_id=0)
    values = {"from_recording_id": 0, "record_count": 9}
    assert told(talker, ListRecordingsRequest, **values) == [(UNKNOWN, 0)]
    assert talker.stopped_recording().recording_id == 1
