"""Recordings are listed and queried, and their channels updated. Cases L1 to L12."""

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


def create_catalog(folder, count):
    """Create a catalog with `count` stopped recordings, whose aliases are "even" and "odd"."""
    directory = folder / "archive"
    directory.mkdir()
    with CatalogWriter.create(directory) as catalog:
        for number in range(count):
            alias = "odd" if number % 2 else "even"
            catalog.add(
                own_recording.descriptor(stop=0, original_channel=f"aeron:ipc?alias={alias}")
            )


def listing(client, kind, turns=100, **values):
    """Return summaries of all responses to a list request."""
    correlation_id = client.send(kind, **values)
    for _ in range(turns):
        client.env.step()
    return client.summaries(correlation_id)


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
    create_catalog(tmp_path, 2)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        values = {"from_recording_id": first, "record_count": count}
        assert listing(client, ListRecordingsRequest, **values) == expected
        assert listing(client, ListRecordingsRequest, **values) == expected


def test_a_long_listing_is_complete_although_the_response_term_is_short(tmp_path, monkeypatch):
    create_catalog(tmp_path, 500)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        found = listing(client, ListRecordingsRequest, 600, from_recording_id=0, record_count=1000)
        assert found == [*listed(*range(500)), (UNKNOWN, 500)]


def test_one_recording_is_listed_with_its_catalog_descriptor(tmp_path, monkeypatch):
    create_catalog(tmp_path, 2)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        lengths = []
        post = client._on_message
        client._assembler._handler = lambda payload, header: (
            lengths.append(len(payload)), post(payload, header)
        )  # fmt: skip
        lengths.clear()
        assert listing(client, ListRecordingRequest, recording_id=1) == listed(1)
        assert 8 + 160 in lengths
        assert listing(client, ListRecordingRequest, recording_id=2) == [(UNKNOWN, 2)]
        assert listing(client, ListRecordingRequest, recording_id=-1) == [(UNKNOWN, -1)]


def test_only_one_listing_at_a_time(tmp_path, monkeypatch):
    create_catalog(tmp_path, 2)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        first = client.send(ListRecordingsRequest, from_recording_id=0, record_count=2)
        second = client.send(ListRecordingsRequest, from_recording_id=0, record_count=2)
        env.until(lambda: client.response_to(second))
        assert client.summaries(first) == listed(0, 1)
        assert client.response_to(second) == Err(1)


def test_each_of_two_requests_for_unknown_recordings_gets_a_response(client):
    correlation_id = [client.send(ListRecordingRequest, recording_id=each) for each in (5, 6)]
    client.env.until(lambda: all(client.summaries(each) for each in correlation_id))
    assert [client.summaries(each) for each in correlation_id] == [[(UNKNOWN, 5)], [(UNKNOWN, 6)]]


def test_recordings_are_filtered_by_stream_and_channel_fragment(tmp_path, monkeypatch):
    create_catalog(tmp_path, 4)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        values = {"from_recording_id": 0, "record_count": 10, "stream_id": own_recording.STREAM_ID}
        kind = ListRecordingsForUriRequest
        assert listing(client, kind, channel="alias=odd", **values) == [*listed(1, 3), (UNKNOWN, 4)]
        assert listing(client, kind, channel="", **values)[:4] == listed(0, 1, 2, 3)
        values["stream_id"] += 1
        assert listing(client, kind, channel="alias=odd", **values) == [(UNKNOWN, 4)]


def test_the_last_matching_recording_is_found(tmp_path, monkeypatch):
    create_catalog(tmp_path, 4)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()

        def find(least, text):
            return client.request(
                FindLastMatchingRecordingRequest, min_recording_id=least, channel=text,
                session_id=own_recording.SESSION_ID, stream_id=own_recording.STREAM_ID,
            )  # fmt: skip

        assert find(0, "even") == Ok(2)
        assert find(2, "even") == Ok(2)
        assert find(3, "even") == Ok(-1)
        assert find(0, "neither") == Ok(-1)
        assert find(-1, "even") == Err(5)


@pytest.mark.parametrize(("index", "count"), [(-1, 1), (2, 1), (0, 0), (0, -1)])
def test_subscriptions_out_of_range_are_unknown(client, index, count):
    for stream in (1, 2):
        client.start(stream=stream)
    response = client.request(
        ListRecordingSubscriptionsRequest, pseudo_index=index, subscription_count=count,
        apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
    )  # fmt: skip
    assert response.code == ControlResponseCode.SUBSCRIPTION_UNKNOWN


def test_subscriptions_are_filtered_by_stream_and_channel_fragment(env, client):
    for stream in (1, 2, 3):
        client.start(stream=stream)

    def streams(**values):
        wanted = {
            "pseudo_index": 0, "subscription_count": 9, "stream_id": 2, "channel": "ipc",
            "apply_stream_id": BooleanType.FALSE,
        } | values  # fmt: skip
        correlation_id = client.send(ListRecordingSubscriptionsRequest, **wanted)
        for _ in range(50):
            env.step()
        return [
            getattr(each, "stream_id", "end")
            for each in client.received if each.correlation_id == correlation_id
        ]  # fmt: skip

    assert streams() == [1, 2, 3, "end"]
    assert streams(subscription_count=2) == [1, 2]
    assert streams(pseudo_index=1) == [2, 3, "end"]
    assert streams(apply_stream_id=BooleanType.TRUE) == [2, "end"]
    assert streams(channel="udp") == ["end"]


def test_a_subscription_stopped_during_a_listing_is_not_listed(env, client):
    started = [client.start(stream=stream) for stream in (1, 2)]
    correlation_id = client.send(
        ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=9,
        apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
    )  # fmt: skip
    stop = client.request(StopRecordingSubscriptionRequest, subscription_id=started[0].relevant_id)
    assert stop == Ok()
    env.until(lambda: client.response_to(correlation_id))
    found = [
        getattr(each, "stream_id", "end")
        for each in client.received
        if each.correlation_id == correlation_id
    ]
    assert found == [2, "end"]


def positions(client, recording_id=0):
    return [
        client.request(kind, recording_id=recording_id).relevant_id
        for kind in (
            StartPositionRequest, StopPositionRequest, RecordingPositionRequest,
            MaxRecordedPositionRequest,
        )
    ]  # fmt: skip


def test_positions_of_an_active_and_a_stopped_recording(env, client):
    live = client.live_recording(7)
    assert positions(client) == [0, -1, 7 * FRAME, 7 * FRAME]
    live.publication.close()
    env.until(lambda: ("STOP", 0, live.end) in client.signals())
    assert positions(client) == [0, live.end, -1, live.end]


@pytest.mark.parametrize(
    "kind",
    [
        StartPositionRequest, StopPositionRequest, RecordingPositionRequest,
        MaxRecordedPositionRequest,
    ],
)  # fmt: skip
def test_position_requests_for_an_unknown_recording_are_rejected(client, kind):
    for recording_id in (0, -1, 1 << 62):
        assert client.request(kind, recording_id=recording_id) == Err(5)


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:ipc?alias=" + "x" * 2000])
def test_a_channel_is_updated_in_place(tmp_path, monkeypatch, channel):
    create_catalog(tmp_path, 3)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        assert client.request(UpdateChannelRequest, recording_id=1, channel=channel) == Ok(0)
        listing(client, ListRecordingsRequest, from_recording_id=0, record_count=3)
        found = [
            each.original_channel for each in client.received if hasattr(each, "source_identity")
        ]
        assert found == ["aeron:ipc?alias=even", channel, "aeron:ipc?alias=even"]
        unknown = listing(client, UpdateChannelRequest, recording_id=3, channel=channel)
        assert unknown == [(UNKNOWN, 3)]
        assert listing(client, UpdateChannelRequest, recording_id=1, channel="rubbish") == []


def test_a_purged_recording_is_not_listed(env, client):
    client.stopped_recording()
    client.request(PurgeRecordingRequest, recording_id=0)
    values = {"from_recording_id": 0, "record_count": 9}
    assert listing(client, ListRecordingsRequest, **values) == [(UNKNOWN, 0)]
    assert client.stopped_recording().recording_id == 1
