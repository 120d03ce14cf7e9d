"""Recording: responses, signals and files. Cases R1 to R16."""

import zlib

import pytest

from tests.archive.archives import SEGMENT, until
from tests.archive.conversation import Conversation, shape
from tests.archive.streams import FRAME, IPC, Recorded, new_stream_id
from tests.peer.ports import free_port
from windtunnel.driver.archive.protocol.codes import ErrorCode, RecordingSignal, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ListRecordingRequest,
    ListRecordingSubscriptionsRequest,
    StartRecordingRequest,
    StopRecordingByIdentityRequest,
    StopRecordingRequest,
    StopRecordingSubscriptionRequest,
)
from windtunnel.driver.archive.protocol.responses import RecordingSubscriptionDescriptor

REC_POS_TYPE_ID = 100


def start(stream_id, channel=IPC, location=SourceLocation.LOCAL):
    return {"stream_id": stream_id, "source_location": location, "channel": channel}


def described(talk, recording_id):
    return talk.ask(ListRecordingRequest, recording_id=recording_id)


def subscribed(talk, fragment, stream_id):
    """Return the recording subscriptions of a stream."""
    asked = talk.send(
        ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=1,
        apply_stream_id=1, stream_id=stream_id, channel=fragment,
    )  # fmt: skip
    answer = talk.answer(asked)
    return answer if isinstance(answer, RecordingSubscriptionDescriptor) else None


def files_of(archive, recording_id):
    return sorted(path.name for path in archive.directory.glob(f"{recording_id}-*.rec"))


def test_r1_and_r2_nothing_is_recorded_until_there_is_a_publisher(archive, talk):
    stream_id = new_stream_id()
    before = sorted(archive.directory.glob("*.rec"))
    request = talk.send(StartRecordingRequest, **start(stream_id))
    subscription_id = talk.answer(request).relevant_id
    assert subscription_id > 0
    assert shape(talk.heard(request)) == ["OK"]
    assert sorted(archive.directory.glob("*.rec")) == before
    publication = talk.aeron.add_exclusive_publication(IPC, stream_id)
    started = talk.signal(RecordingSignal.START, request)
    assert (started.subscription_id, started.position) == (subscription_id, 0)
    file = archive.directory / f"{started.recording_id}-0.rec"
    until(lambda: file.exists() and file.stat().st_size == SEGMENT, "the first segment")
    (counter,) = [
        each
        for each in archive.aeron.counters
        if each.type_id == REC_POS_TYPE_ID
        and each.key[:8] == started.recording_id.to_bytes(8, "little")
    ]
    assert counter.label.startswith(f"rec-pos: {started.recording_id} {publication.session_id} ")
    publication.close()
    talk.signal(RecordingSignal.STOP, request)


def test_r3_another_alias_is_the_same_stream(talk):
    stream_id = new_stream_id()
    talk.ok(StartRecordingRequest, **start(stream_id))
    again = start(stream_id, IPC + "|alias=other")
    assert talk.refused(StartRecordingRequest, **again) == ErrorCode.ACTIVE_SUBSCRIPTION
    talk.ok(StopRecordingRequest, stream_id=stream_id, channel=IPC)


def test_r4_each_publisher_has_a_recording_of_its_own(talk):
    stream_id = new_stream_id()
    request = talk.send(StartRecordingRequest, **start(stream_id))
    talk.answer(request)
    publications = [talk.aeron.add_exclusive_publication(IPC, stream_id) for _ in range(2)]
    until(lambda: len(talk.heard(request)) == 3, "both recordings")
    assert shape(talk.heard(request)) == ["OK", "START", "START"]
    first, second = talk.heard(request)[1:]
    assert first.recording_id != second.recording_id
    for each in publications:
        each.close()


def test_r5_a_local_udp_stream_is_heard_by_a_spy(talk):
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
    recorded = Recorded(talk, channel)
    endpoint = channel.split("|")[0]
    listed = subscribed(talk, "spy", recorded.stream_id)
    assert listed.stripped_channel == f"aeron-spy:{endpoint}"
    descriptor = described(talk, recorded.recording_id)
    assert descriptor.stripped_channel == endpoint
    assert descriptor.original_channel == channel
    assert descriptor.source_identity == "aeron:ipc"
    recorded.stop()


def test_r6_a_remote_udp_stream_has_its_senders_address(talk):
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
    recorded = Recorded(talk, channel, location=SourceLocation.REMOTE)
    descriptor = described(talk, recorded.recording_id)
    host, _, port = descriptor.source_identity.partition(":")
    assert host == "127.0.0.1"
    assert int(port) > 0
    recorded.send(3)
    assert recorded.stop().position == 3 * FRAME


def test_r7_a_subscription_is_stopped_once(talk):
    recorded = Recorded(talk).send(10)
    asked = {"subscription_id": recorded.subscription_id}
    request = talk.send(StopRecordingSubscriptionRequest, **asked)
    assert talk.answer(request).relevant_id == 0
    stopped = talk.signal(RecordingSignal.STOP, recorded.request)
    assert stopped.position == 10 * FRAME == recorded.position
    assert (stopped.recording_id, stopped.subscription_id) == (
        recorded.recording_id, recorded.subscription_id,
    )  # fmt: skip
    order = [each.message for each in talk.all]
    assert order.index(talk.heard(request)[0]) < order.index(stopped)
    refusal = talk.refused(StopRecordingSubscriptionRequest, **asked)
    assert refusal == ErrorCode.UNKNOWN_SUBSCRIPTION


def test_r8_what_was_never_started_cannot_be_stopped(talk):
    refusal = talk.refused(StopRecordingRequest, stream_id=new_stream_id(), channel=IPC)
    assert refusal == ErrorCode.UNKNOWN_SUBSCRIPTION


def test_r9_by_identity_one_recording_is_stopped(talk):
    recorded = Recorded(talk).send(1)
    own = {"recording_id": recorded.recording_id}
    assert talk.ok(StopRecordingByIdentityRequest, **own) == 1
    assert talk.signal(RecordingSignal.STOP, recorded.request).position == FRAME
    assert talk.ok(StopRecordingByIdentityRequest, **own) == 0
    refusal = talk.refused(StopRecordingByIdentityRequest, recording_id=1 << 40)
    assert refusal == ErrorCode.UNKNOWN_RECORDING


@pytest.mark.parametrize("auto_stop", [False, True], ids=["r10", "r11-auto-stop"])
def test_r10_and_r11_a_publishers_end_is_a_recordings_end(talk, auto_stop):
    recorded = Recorded(talk, auto_stop=auto_stop).send(4)
    assert subscribed(talk, "ipc", recorded.stream_id) is not None
    recorded.publication.close()
    assert talk.signal(RecordingSignal.STOP, recorded.request).position == 4 * FRAME
    listed = subscribed(talk, "ipc", recorded.stream_id)
    assert (listed is None) == auto_stop


def test_r12_there_is_a_limit_to_recordings(own_archive):
    limited = own_archive({"aeron.archive.max.concurrent.recordings": 2}).start()
    talk = Conversation(limited)
    for _ in range(2):
        talk.ok(StartRecordingRequest, **start(new_stream_id()))
    refusal = talk.refused(StartRecordingRequest, **start(new_stream_id()))
    assert refusal == ErrorCode.MAX_RECORDINGS


@pytest.mark.full
def test_r13_without_room_nothing_is_recorded(own_archive):
    more_than_any_disk = 1 << 60
    full = own_archive({"aeron.archive.low.storage.space.threshold": more_than_any_disk}).start()
    talk = Conversation(full)
    refusal = talk.refused(StartRecordingRequest, **start(new_stream_id()))
    assert refusal == ErrorCode.STORAGE_SPACE


@pytest.mark.parametrize("channel", ["aeron:carrier-pigeon", "ipc", "aeron:udp?endpoint"])
def test_r14_a_channel_that_cannot_be_read_is_refused(talk, channel):
    refusal = talk.refused(StartRecordingRequest, **start(new_stream_id(), channel))
    assert refusal == ErrorCode.GENERIC


def test_r15_a_full_segment_has_an_empty_one_behind_it(archive, talk):
    recorded = Recorded(talk).send(SEGMENT // 1_024, length=1_024 - 32)
    assert recorded.stop().position == SEGMENT
    names = [f"{recorded.recording_id}-{base}.rec" for base in (0, SEGMENT)]
    assert files_of(archive, recorded.recording_id) == names
    behind = (archive.directory / names[1]).read_bytes()
    assert len(behind) == SEGMENT
    assert not any(behind)


@pytest.mark.full
def test_r16_a_checksum_takes_the_session_ids_place(own_archive):
    checked = own_archive({"aeron.archive.record.checksum": "CRC-32"}).start()
    talk = Conversation(checked)
    recorded = Recorded(talk).send(63)
    session_id = recorded.publication.session_id
    recorded.stop()
    content = (checked.directory / f"{recorded.recording_id}-0.rec").read_bytes()
    at, seen = 0, {0: 0, 1: 0}
    while length := int.from_bytes(content[at : at + 4], "little"):
        end = at + (length + 31) // 32 * 32
        kind = int.from_bytes(content[at + 6 : at + 8], "little")
        field = content[at + 12 : at + 16]
        if kind == 1:
            assert int.from_bytes(field, "little") == zlib.crc32(content[at + 32 : end])
        else:
            assert int.from_bytes(field, "little", signed=True) == session_id
        seen[kind] += 1
        at = end
    assert seen == {0: 1, 1: 63}
