"""Start, stop, extend. Cases R1 to R16 and E1 to E8."""

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


def descriptor(own, recording_id=0):
    with Catalog(own.directory) as catalog:
        return catalog.descriptor(recording_id)


def is_listed(talker, subscription_id):
    asked = talker.send(
        ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=100,
        apply_stream_id=BooleanType.FALSE, stream_id=0, channel="",
    )  # fmt: skip
    talker.own.until(lambda: talker.answer(asked))
    return any(
        getattr(each, "subscription_id", None) == subscription_id
        for each in talker.said if each.correlation_id == asked
    )  # fmt: skip


def test_nothing_is_recorded_without_a_publisher(own, talker):
    answer = talker.start()
    assert answer == Ok(answer.relevant_id)
    own.run_for(200_000_000)
    assert talker.signals() == []
    assert not list(own.directory.glob("*.rec"))
    assert descriptor(own) is None


def test_a_publisher_begins_a_recording(own, talker):
    live = talker.live_recording()
    assert talker.about(live.answer.correlation_id) == [
        ("OK", live.answer.relevant_id), ("START", 0, 0)
    ]  # fmt: skip
    assert (own.directory / "0-0.rec").stat().st_size == SEGMENT
    (counter,) = [each for each in talker.client.counters if each.type_id == 100]
    assert struct.unpack_from("<qi", counter.key) == (0, live.publication.session_id)
    assert counter.label.endswith("aeron:ipc - archiveId=77")
    found = descriptor(own)
    assert (found.start_position, found.stop_position, found.stop_timestamp) == (0, -1, -1)
    assert (found.original_channel, found.stripped_channel) == (IPC, "aeron:ipc")


def test_an_alias_does_not_make_another_recording(talker):
    talker.start()
    assert talker.start(IPC + "|alias=other") == Err(3)
    assert talker.start(IPC + "|session-id=9").error_message == ""


def test_two_publishers_make_two_recordings(own, talker):
    answer = talker.start()
    for _ in range(2):
        talker.client.add_exclusive_publication(IPC, STREAM)
    own.until(lambda: len(talker.signals()) == 2)
    assert talker.signals() == [("START", 0, 0), ("START", 1, 0)]
    talker.ask(StopRecordingSubscriptionRequest, subscription_id=answer.relevant_id)
    own.until(lambda: len(talker.signals()) == 4)
    assert sorted(talker.signals()[2:]) == [("STOP", 0, 0), ("STOP", 1, 0)]


@pytest.mark.parametrize(
    ("location", "identity"),
    [(SourceLocation.LOCAL, "aeron:ipc"), (SourceLocation.REMOTE, "10.0.0.1:")],
)
def test_a_network_stream_is_recorded_at_either_end(own, talker, location, identity):
    answer = talker.start(UDP + "|ssc=true", location=location)
    if location == SourceLocation.LOCAL:
        talker.client.add_subscription(UDP, STREAM)
    publication = talker.client.add_exclusive_publication(UDP, STREAM)
    own.until(talker.signals)
    end = talker.publish(publication, 20)
    talker.recorded(0, end)
    found = descriptor(own)
    assert found.source_identity.startswith(identity)
    assert found.stripped_channel == "aeron:udp?endpoint=10.0.0.1:20121"
    asked = talker.send(
        ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=1,
        apply_stream_id=BooleanType.TRUE, stream_id=STREAM, channel="20121",
    )  # fmt: skip
    told = own.until(lambda: [each for each in talker.said if each.correlation_id == asked])
    spy = "aeron-spy:" if location == SourceLocation.LOCAL else ""
    assert told[0].stripped_channel == spy + found.stripped_channel
    assert told[0].subscription_id == answer.relevant_id


def test_a_subscription_is_stopped_once(own, talker):
    live = talker.live_recording(3)
    wanted = live.answer.relevant_id
    assert talker.ask(StopRecordingSubscriptionRequest, subscription_id=wanted) == Ok(0)
    own.until(lambda: ("STOP", 0, live.end) in talker.about(live.answer.correlation_id))
    assert talker.ask(StopRecordingSubscriptionRequest, subscription_id=wanted) == Err(4)
    assert descriptor(own).stop_position == live.end
    assert not [each for each in talker.client.counters if each.type_id == 100]


def test_the_next_question_after_a_stop_finds_it_stopped(talker):
    live = talker.live_recording(3)
    wanted = live.answer.relevant_id
    assert talker.ask(StopRecordingSubscriptionRequest, subscription_id=wanted) == Ok(0)
    assert talker.ask(StopPositionRequest, recording_id=0) == Ok(live.end)
    assert talker.ask(PurgeRecordingRequest, recording_id=0) == Ok(1)


def test_a_channel_is_stopped_if_it_was_started(talker):
    assert talker.ask(StopRecordingRequest, stream_id=STREAM, channel=IPC) == Err(4)
    assert talker.ask(StopRecordingRequest, stream_id=STREAM, channel="rubbish") == Err(0)
    talker.start()
    assert talker.ask(StopRecordingRequest, stream_id=STREAM, channel=IPC) == Ok(0)


def test_one_recording_is_stopped_by_its_id(own, talker):
    live = talker.live_recording(3)
    assert talker.ask(StopRecordingByIdentityRequest, recording_id=0) == Ok(1)
    own.until(lambda: ("STOP", 0, live.end) in talker.signals())
    assert talker.ask(StopRecordingByIdentityRequest, recording_id=0) == Ok(0)
    assert talker.ask(StopRecordingByIdentityRequest, recording_id=1) == Err(5)
    assert not is_listed(talker, live.answer.relevant_id)


@pytest.mark.parametrize("is_first_by_id", [False, True])
def test_a_recording_that_is_about_to_end_is_not_stopped_again(own, talker, is_first_by_id):
    live = talker.live_recording(3)
    # The archive has no turn between two requests, so the recording is still active.
    if is_first_by_id:
        first = talker.send(StopRecordingByIdentityRequest, recording_id=0)
    else:
        subscription_id = live.answer.relevant_id
        first = talker.send(StopRecordingSubscriptionRequest, subscription_id=subscription_id)
    second = talker.send(StopRecordingByIdentityRequest, recording_id=0)
    assert not talker.answers(first)
    own.until(lambda: talker.answers(second))
    assert talker.answers(first) == [Ok(int(is_first_by_id))]
    assert talker.answers(second) == [Ok(0)]
    own.until(lambda: ("STOP", 0, live.end) in talker.signals())


@pytest.mark.parametrize("auto_stop", [False, True])
def test_a_publisher_that_closes_ends_its_recording(own, talker, auto_stop):
    live = talker.live_recording(auto_stop=auto_stop)
    # Not waited for: what it said last is recorded before its end is.
    end = talker.publish(live.publication, 5)
    live.publication.close()
    own.until(lambda: ("STOP", 0, end) in talker.signals())
    assert is_listed(talker, live.answer.relevant_id) != auto_stop


def test_the_number_of_recordings_is_limited_and_slots_come_back(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, max_concurrent_recordings=2) as own:
        talker = own.talk()
        for _ in range(3):
            first = talker.start(stream=1)
            second = talker.start(stream=2)
            assert talker.start(stream=3) == Err(8)
            for each in (first, second):
                talker.ask(StopRecordingSubscriptionRequest, subscription_id=each.relevant_id)


def test_a_disk_with_little_space_takes_no_recording(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, low_storage_space_threshold=1 << 62) as own:
        assert own.talk().start() == Err(11)


@pytest.mark.parametrize("channel", ["", "rubbish", "aeron:udp", "aeron:udp?endpoint=nowhere"])
def test_a_malformed_channel_is_refused(own, channel):
    assert own.talk().start(channel) == Err(0)


def test_a_recording_that_fills_its_file_has_an_empty_next_one(own, talker):
    live = talker.live_recording()
    for _ in range(SEGMENT // 1024):
        own.until(lambda: live.publication.offer(bytes(1024 - 32)) > 0)
    talker.recorded(0, SEGMENT)
    talker.stop(live, SEGMENT)
    assert not any((own.directory / f"0-{SEGMENT}.rec").read_bytes())


def test_frames_are_recorded_with_their_checksums(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch, record_checksum="CRC-32") as own:
        talker = own.talk()
        talker.stopped_recording(3)
        content = (own.directory / "0-0.rec").read_bytes()
        for number in range(3):
            frame = content[number * FRAME : (number + 1) * FRAME]
            assert int.from_bytes(frame[12:16], "little") == zlib.crc32(frame[32:])


def test_a_file_in_the_way_ends_the_recording_with_an_answer(own, talker):
    live = talker.live_recording()
    (own.directory / f"0-{SEGMENT}.rec").write_bytes(b"mine")
    talker.publish(live.publication, 130)
    own.until(lambda: len(talker.about(live.answer.correlation_id)) == 4)
    told = talker.about(live.answer.correlation_id)
    assert told[2:] == [("ERROR", 0), ("STOP", 0, SEGMENT)]
    assert (own.directory / f"0-{SEGMENT}.rec").read_bytes() == b"mine"


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


def test_a_full_disk_ends_a_recording_and_harms_no_other(tmp_path, monkeypatch):
    disk = FullDisk(monkeypatch)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        full, other = talker.start(), talker.start(stream=STREAM + 1)
        publications = [
            talker.client.add_exclusive_publication(IPC, stream) for stream in (STREAM, STREAM + 1)
        ]
        own.until(lambda: len(talker.signals()) == 2)
        written = talker.publish(publications[0], 10)
        talker.recorded(0, written)
        disk.is_full = True
        talker.publish(publications[0], 10, first=10)
        own.until(lambda: len(talker.about(full.correlation_id)) == 4)
        assert talker.about(full.correlation_id)[2:] == [("ERROR", 11), ("STOP", 0, written)]
        disk.is_full = False
        end = talker.publish(publications[1], 10)
        talker.recorded(1, end)
        assert len(talker.about(other.correlation_id)) == 2
        reader = Reader(talker)
        talker.ask_replay(0)
        assert reader.until_end() == [message(number) for number in range(10)]


# --- extend ------------------------------------------------------------------------------------


def test_what_cannot_be_extended_is_refused(own, talker):
    assert talker.extend(7, IPC) == Err(5)
    talker.stopped_recording()
    assert talker.extend(0, IPC, stream=STREAM + 1) == Err(5)
    talker.start(stream=STREAM + 1)
    talker.client.add_exclusive_publication(IPC, STREAM + 1)
    own.until(lambda: talker.signals()[-1][:2] == ("START", 1))
    assert talker.extend(1, IPC + "|session-id=3", stream=STREAM + 1) == Err(2)


@pytest.mark.parametrize("change", ["position", "mtu", "term", "initial"])
def test_an_image_that_does_not_continue_is_a_second_answer(own, talker, change):
    end = talker.stopped_recording().end
    initial = descriptor(own).initial_term_id
    answer = talker.extend(0, IPC)
    channel = {
        "position": continuing(end + 64, initial),
        "mtu": continuing(end, initial, mtu=2048),
        "term": continuing(end, initial, term=131_072),
        "initial": continuing(end, initial + 1),
    }[change]
    talker.client.add_exclusive_publication(channel, STREAM)
    own.until(lambda: len(talker.about(answer.correlation_id)) == 2)
    assert talker.about(answer.correlation_id)[1] == ("ERROR", 9)
    told = talker.answers(answer.correlation_id)[1].error_message
    assert any(told in each for each in own.errors)
    assert is_listed(talker, answer.relevant_id)
    assert descriptor(own).stop_position == end


def test_requests_go_before_an_image_that_came_with_them(own, talker):
    live = talker.live_recording(300)
    wanted = live.answer.relevant_id
    assert talker.ask(StopRecordingSubscriptionRequest, subscription_id=wanted) == Ok(0)
    answer = talker.extend(0, IPC)
    assert talker.ask(TruncateRecordingRequest, recording_id=0, position=0) == Ok(3)
    own.until(lambda: len(talker.about(answer.correlation_id)) == 2)
    assert talker.about(answer.correlation_id)[1] == ("ERROR", 0)
    assert "are being deleted" in talker.answers(answer.correlation_id)[1].error_message


def test_an_extended_recording_is_one_stream(own, talker):
    first = talker.stopped_recording(100)
    before = descriptor(own)
    answer = talker.extend(0, IPC)
    assert answer == Ok(answer.relevant_id)
    channel = continuing(first.end, before.initial_term_id)
    publication = talker.client.add_exclusive_publication(channel, STREAM)
    own.until(lambda: ("EXTEND", 0, first.end) in talker.about(answer.correlation_id))
    found = descriptor(own)
    assert (found.stop_position, found.stop_timestamp) == (-1, -1)
    assert found.session_id == publication.session_id != first.publication.session_id
    assert found.original_channel == before.original_channel
    assert found.correlation_id == answer.correlation_id
    last = talker.publish(publication, 100, first=100)
    talker.recorded(0, last)
    talker.ask(StopRecordingSubscriptionRequest, subscription_id=answer.relevant_id)
    own.until(lambda: ("STOP", 0, last) in talker.signals())
    reader = Reader(talker)
    talker.ask_replay(0)
    assert reader.until_end() == [message(number) for number in range(200)]
    assert len(segments_of(own.directory, 0)) == 2


def test_a_recording_goes_on_where_it_was_truncated(own, talker):
    talker.stopped_recording(20)
    cut = 10 * FRAME
    assert talker.ask(TruncateRecordingRequest, recording_id=0, position=cut) == Ok(0)
    answer = talker.extend(0, IPC)
    channel = continuing(cut, descriptor(own).initial_term_id)
    talker.client.add_exclusive_publication(channel, STREAM)
    own.until(lambda: ("EXTEND", 0, cut) in talker.about(answer.correlation_id))
