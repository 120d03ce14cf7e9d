"""Recordings are started, stopped and extended. Cases R1 to R16 and E1 to E8."""

import errno
import os
import struct
import zlib

import pytest

from tests.unit.driver.archive.server.own_archive import SEGMENT, Err, Ok, own_archive
from tests.unit.driver.archive.server.own_stream import (
    FRAME,
    IPC,
    STREAM,
    Reader,
    continuing,
    message,
)
from windtunnel.driver.archive.protocol.codes import BooleanType, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ListRecordingSubscriptionsRequest,
    PurgeRecordingRequest,
    StopPositionRequest,
    StopRecordingByIdentityRequest,
    StopRecordingRequest,
    StopRecordingSubscriptionRequest,
    TruncateRecordingRequest,
)
from windtunnel.driver.archive.storage import sync
from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.archive.storage.segment_file import segments_of

UDP = "aeron:udp?endpoint=10.0.0.1:20121|term-length=64k"


def descriptor(env, recording_id=0):
    with Catalog(env.directory) as catalog:
        return catalog.descriptor(recording_id)


def is_listed(client, subscription_id):
    correlation_id = client.send(
        ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=100,
        apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
    )  # fmt: skip
    client.env.until(lambda: client.response_to(correlation_id))
    return any(
        getattr(each, "subscription_id", None) == subscription_id
        for each in client.received if each.correlation_id == correlation_id
    )  # fmt: skip


def test_no_recording_starts_without_a_publisher(env, client):
    response = client.start()
    assert response == Ok(response.relevant_id)
    env.run_for(200_000_000)
    assert client.signals() == []
    assert not list(env.directory.glob("*.rec"))
    assert descriptor(env) is None


def test_a_publisher_starts_a_recording(env, client):
    live = client.live_recording()
    assert client.summaries(live.response.correlation_id) == [
        ("OK", live.response.relevant_id), ("START", 0, 0)
    ]  # fmt: skip
    assert (env.directory / "0-0.rec").stat().st_size == SEGMENT
    (counter,) = [each for each in client.aeron.counters if each.type_id == 100]
    assert struct.unpack_from("<qi", counter.key) == (0, live.publication.session_id)
    assert counter.label.endswith("aeron:ipc - archiveId=77")
    found = descriptor(env)
    assert (found.start_position, found.stop_position, found.stop_timestamp) == (0, -1, -1)
    assert (found.original_channel, found.stripped_channel) == (IPC, "aeron:ipc")


def test_a_channel_that_differs_only_by_its_alias_is_recorded_once(client):
    client.start()
    assert client.start(IPC + "|alias=other") == Err(3)
    assert client.start(IPC + "|session-id=9").error_message == ""


def test_each_publisher_has_its_own_recording(env, client):
    response = client.start()
    for _ in range(2):
        client.aeron.add_exclusive_publication(IPC, STREAM)
    env.until(lambda: len(client.signals()) == 2)
    assert client.signals() == [("START", 0, 0), ("START", 1, 0)]
    client.request(StopRecordingSubscriptionRequest, subscription_id=response.relevant_id)
    env.until(lambda: len(client.signals()) == 4)
    assert sorted(client.signals()[2:]) == [("STOP", 0, 0), ("STOP", 1, 0)]


@pytest.mark.parametrize(
    ("location", "identity"),
    [(SourceLocation.LOCAL, "aeron:ipc"), (SourceLocation.REMOTE, "10.0.0.1:")],
)
def test_a_udp_stream_is_recorded_at_the_sender_or_receiver(env, client, location, identity):
    response = client.start(UDP + "|ssc=true", location=location)
    if location == SourceLocation.LOCAL:
        client.aeron.add_subscription(UDP, STREAM)
    publication = client.aeron.add_exclusive_publication(UDP, STREAM)
    env.until(client.signals)
    end = client.publish(publication, 20)
    client.recorded(0, end)
    found = descriptor(env)
    assert found.source_identity.startswith(identity)
    assert found.stripped_channel == "aeron:udp?endpoint=10.0.0.1:20121"
    correlation_id = client.send(
        ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=1,
        apply_stream_id=BooleanType.TRUE, stream_id=STREAM, channel="20121",
    )  # fmt: skip
    listed = env.until(
        lambda: [each for each in client.received if each.correlation_id == correlation_id]
    )
    spy = "aeron-spy:" if location == SourceLocation.LOCAL else ""
    assert listed[0].stripped_channel == spy + found.stripped_channel
    assert listed[0].subscription_id == response.relevant_id


def test_a_recording_subscription_can_be_stopped_only_once(env, client):
    live = client.live_recording(3)
    wanted = live.response.relevant_id
    assert client.request(StopRecordingSubscriptionRequest, subscription_id=wanted) == Ok(0)
    env.until(lambda: ("STOP", 0, live.end) in client.summaries(live.response.correlation_id))
    assert client.request(StopRecordingSubscriptionRequest, subscription_id=wanted) == Err(4)
    assert descriptor(env).stop_position == live.end
    assert not [each for each in client.aeron.counters if each.type_id == 100]


def test_a_request_right_after_a_stop_finds_the_recording_stopped(client):
    live = client.live_recording(3)
    wanted = live.response.relevant_id
    assert client.request(StopRecordingSubscriptionRequest, subscription_id=wanted) == Ok(0)
    assert client.request(StopPositionRequest, recording_id=0) == Ok(live.end)
    assert client.request(PurgeRecordingRequest, recording_id=0) == Ok(1)


def test_only_a_channel_that_was_started_can_be_stopped(client):
    assert client.request(StopRecordingRequest, stream_id=STREAM, channel=IPC) == Err(4)
    assert client.request(StopRecordingRequest, stream_id=STREAM, channel="rubbish") == Err(0)
    client.start()
    assert client.request(StopRecordingRequest, stream_id=STREAM, channel=IPC) == Ok(0)


def test_a_recording_is_stopped_by_its_id(env, client):
    live = client.live_recording(3)
    assert client.request(StopRecordingByIdentityRequest, recording_id=0) == Ok(1)
    env.until(lambda: ("STOP", 0, live.end) in client.signals())
    assert client.request(StopRecordingByIdentityRequest, recording_id=0) == Ok(0)
    assert client.request(StopRecordingByIdentityRequest, recording_id=1) == Err(5)
    assert not is_listed(client, live.response.relevant_id)


@pytest.mark.parametrize("is_first_by_id", [False, True])
def test_a_recording_that_is_stopping_is_not_stopped_again(env, client, is_first_by_id):
    live = client.live_recording(3)
    # The archive runs no duty cycle between the two requests: the recording is still active.
    if is_first_by_id:
        first = client.send(StopRecordingByIdentityRequest, recording_id=0)
    else:
        subscription_id = live.response.relevant_id
        first = client.send(StopRecordingSubscriptionRequest, subscription_id=subscription_id)
    second = client.send(StopRecordingByIdentityRequest, recording_id=0)
    assert not client.responses_to(first)
    env.until(lambda: client.responses_to(second))
    assert client.responses_to(first) == [Ok(int(is_first_by_id))]
    assert client.responses_to(second) == [Ok(0)]
    env.until(lambda: ("STOP", 0, live.end) in client.signals())


@pytest.mark.parametrize("auto_stop", [False, True])
def test_closing_a_publication_stops_its_recording(env, client, auto_stop):
    live = client.live_recording(auto_stop=auto_stop)
    # The test does not wait here: the archive records the last messages before it stops.
    end = client.publish(live.publication, 5)
    live.publication.close()
    env.until(lambda: ("STOP", 0, end) in client.signals())
    assert is_listed(client, live.response.relevant_id) != auto_stop


def test_concurrent_recordings_are_limited_and_a_stop_frees_a_slot(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, max_concurrent_recordings=2) as env:
        client = env.connect_client()
        for _ in range(3):
            first = client.start(stream=1)
            second = client.start(stream=2)
            assert client.start(stream=3) == Err(8)
            for each in (first, second):
                client.request(StopRecordingSubscriptionRequest, subscription_id=each.relevant_id)


def test_no_recording_starts_on_a_disk_with_little_space(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, low_storage_space_threshold=1 << 62) as env:
        assert env.connect_client().start() == Err(11)


@pytest.mark.parametrize("channel", ["", "rubbish", "aeron:udp", "aeron:udp?endpoint=nowhere"])
def test_a_malformed_channel_is_rejected(env, channel):
    assert env.connect_client().start(channel) == Err(0)


def test_a_recording_that_fills_its_segment_file_has_an_empty_next_one(env, client):
    live = client.live_recording()
    for _ in range(SEGMENT // 1024):
        env.until(lambda: live.publication.offer(bytes(1024 - 32)) > 0)
    client.recorded(0, SEGMENT)
    client.stop(live, SEGMENT)
    assert not any((env.directory / f"0-{SEGMENT}.rec").read_bytes())


def test_frames_are_recorded_with_their_checksums(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, record_checksum="CRC-32") as env:
        client = env.connect_client()
        client.stopped_recording(3)
        content = (env.directory / "0-0.rec").read_bytes()
        for number in range(3):
            frame = content[number * FRAME : (number + 1) * FRAME]
            assert int.from_bytes(frame[12:16], "little") == zlib.crc32(frame[32:])


def test_an_existing_segment_file_ends_the_recording_with_an_error(env, client):
    live = client.live_recording()
    (env.directory / f"0-{SEGMENT}.rec").write_bytes(b"mine")
    client.publish(live.publication, 130)
    env.until(lambda: len(client.summaries(live.response.correlation_id)) == 4)
    summaries = client.summaries(live.response.correlation_id)
    assert summaries[2:] == [("ERROR", 0), ("STOP", 0, SEGMENT)]
    assert (env.directory / f"0-{SEGMENT}.rec").read_bytes() == b"mine"


class FullDisk:
    """Fails writes to segment files while it is full."""

    def __init__(self, monkeypatch):
        self.is_full = False
        self._pwrite = os.pwrite
        monkeypatch.setattr(sync.os, "pwrite", self.pwrite)

    def pwrite(self, file, content, at):
        if self.is_full and os.readlink(f"/proc/self/fd/{file}").endswith(".rec"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._pwrite(file, content, at)


def test_a_full_disk_ends_one_recording_and_no_other(tmp_path, monkeypatch):
    disk = FullDisk(monkeypatch)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        full, other = client.start(), client.start(stream=STREAM + 1)
        publications = [
            client.aeron.add_exclusive_publication(IPC, stream) for stream in (STREAM, STREAM + 1)
        ]
        env.until(lambda: len(client.signals()) == 2)
        written = client.publish(publications[0], 10)
        client.recorded(0, written)
        disk.is_full = True
        client.publish(publications[0], 10, first=10)
        env.until(lambda: len(client.summaries(full.correlation_id)) == 4)
        assert client.summaries(full.correlation_id)[2:] == [("ERROR", 11), ("STOP", 0, written)]
        disk.is_full = False
        end = client.publish(publications[1], 10)
        client.recorded(1, end)
        assert len(client.summaries(other.correlation_id)) == 2
        reader = Reader(client)
        client.request_replay(0)
        assert reader.until_end() == [message(number) for number in range(10)]


# --- extend ------------------------------------------------------------------------------------


def test_an_invalid_extension_is_rejected(env, client):
    assert client.extend(7, IPC) == Err(5)
    client.stopped_recording()
    assert client.extend(0, IPC, stream=STREAM + 1) == Err(5)
    client.start(stream=STREAM + 1)
    client.aeron.add_exclusive_publication(IPC, STREAM + 1)
    env.until(lambda: client.signals()[-1][:2] == ("START", 1))
    assert client.extend(1, IPC + "|session-id=3", stream=STREAM + 1) == Err(2)


@pytest.mark.parametrize("change", ["position", "mtu", "term", "initial"])
def test_an_image_that_does_not_continue_the_recording_sends_a_second_response(env, client, change):
    end = client.stopped_recording().end
    initial = descriptor(env).initial_term_id
    response = client.extend(0, IPC)
    channel = {
        "position": continuing(end + 64, initial),
        "mtu": continuing(end, initial, mtu=2048),
        "term": continuing(end, initial, term=131_072),
        "initial": continuing(end, initial + 1),
    }[change]
    client.aeron.add_exclusive_publication(channel, STREAM)
    env.until(lambda: len(client.summaries(response.correlation_id)) == 2)
    assert client.summaries(response.correlation_id)[1] == ("ERROR", 9)
    error = client.responses_to(response.correlation_id)[1].error_message
    assert any(error in each for each in env.errors)
    assert is_listed(client, response.relevant_id)
    assert descriptor(env).stop_position == end


def test_requests_are_processed_before_an_image_that_arrives_with_them(env, client):
    live = client.live_recording(300)
    wanted = live.response.relevant_id
    assert client.request(StopRecordingSubscriptionRequest, subscription_id=wanted) == Ok(0)
    response = client.extend(0, IPC)
    assert client.request(TruncateRecordingRequest, recording_id=0, position=0) == Ok(3)
    env.until(lambda: len(client.summaries(response.correlation_id)) == 2)
    assert client.summaries(response.correlation_id)[1] == ("ERROR", 0)
    assert "are being deleted" in client.responses_to(response.correlation_id)[1].error_message


def test_an_extended_recording_is_replayed_as_one_stream(env, client):
    first = client.stopped_recording(100)
    before = descriptor(env)
    response = client.extend(0, IPC)
    assert response == Ok(response.relevant_id)
    channel = continuing(first.end, before.initial_term_id)
    publication = client.aeron.add_exclusive_publication(channel, STREAM)
    env.until(lambda: ("EXTEND", 0, first.end) in client.summaries(response.correlation_id))
    found = descriptor(env)
    assert (found.stop_position, found.stop_timestamp) == (-1, -1)
    assert found.session_id == publication.session_id != first.publication.session_id
    assert found.original_channel == before.original_channel
    assert found.correlation_id == response.correlation_id
    last = client.publish(publication, 100, first=100)
    client.recorded(0, last)
    client.request(StopRecordingSubscriptionRequest, subscription_id=response.relevant_id)
    env.until(lambda: ("STOP", 0, last) in client.signals())
    reader = Reader(client)
    client.request_replay(0)
    assert reader.until_end() == [message(number) for number in range(200)]
    assert len(segments_of(env.directory, 0)) == 2


def test_a_recording_is_extended_from_where_it_was_truncated(env, client):
    client.stopped_recording(20)
    cut = 10 * FRAME
    assert client.request(TruncateRecordingRequest, recording_id=0, position=cut) == Ok(0)
    response = client.extend(0, IPC)
    channel = continuing(cut, descriptor(env).initial_term_id)
    client.aeron.add_exclusive_publication(channel, STREAM)
    env.until(lambda: ("EXTEND", 0, cut) in client.summaries(response.correlation_id))
