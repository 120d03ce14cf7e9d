"""Recording: responses, signals and files. Cases R1 to R16."""

import zlib

import pytest

from tests.archive.archives import SEGMENT, until
from tests.archive.conversation import ControlSession, summary
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


def described(session, recording_id):
    return session.request(ListRecordingRequest, recording_id=recording_id)


def subscribed(session, fragment, stream_id):
    """Return the recording subscriptions of a stream."""
    request = session.send(
        ListRecordingSubscriptionsRequest, pseudo_index=0, subscription_count=1,
        apply_stream_id=1, stream_id=stream_id, channel=fragment,
    )  # fmt: skip
    response = session.response(request)
    return response if isinstance(response, RecordingSubscriptionDescriptor) else None


def files_of(archive, recording_id):
    return sorted(path.name for path in archive.directory.glob(f"{recording_id}-*.rec"))


def test_r1_and_r2_recording_starts_with_a_publisher(archive, session):
    stream_id = new_stream_id()
    before = sorted(archive.directory.glob("*.rec"))
    request = session.send(StartRecordingRequest, **start(stream_id))
    subscription_id = session.response(request).relevant_id
    assert subscription_id > 0
    assert summary(session.received(request)) == ["OK"]
    assert sorted(archive.directory.glob("*.rec")) == before
    publication = session.aeron.add_exclusive_publication(IPC, stream_id)
    started = session.signal(RecordingSignal.START, request)
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
    session.signal(RecordingSignal.STOP, request)


def test_r3_another_alias_is_the_same_stream(session):
    stream_id = new_stream_id()
    session.ok(StartRecordingRequest, **start(stream_id))
    again = start(stream_id, IPC + "|alias=other")
    assert session.refused(StartRecordingRequest, **again) == ErrorCode.ACTIVE_SUBSCRIPTION
    session.ok(StopRecordingRequest, stream_id=stream_id, channel=IPC)


def test_r4_each_publisher_has_its_own_recording(session):
    stream_id = new_stream_id()
    request = session.send(StartRecordingRequest, **start(stream_id))
    session.response(request)
    publications = [session.aeron.add_exclusive_publication(IPC, stream_id) for _ in range(2)]
    until(lambda: len(session.received(request)) == 3, "both recordings")
    assert summary(session.received(request)) == ["OK", "START", "START"]
    first, second = session.received(request)[1:]
    assert first.recording_id != second.recording_id
    for each in publications:
        each.close()


def test_r5_a_local_udp_stream_is_recorded_by_a_spy(session):
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
    recorded = Recorded(session, channel)
    endpoint = channel.split("|")[0]
    listed = subscribed(session, "spy", recorded.stream_id)
    assert listed.stripped_channel == f"aeron-spy:{endpoint}"
    descriptor = described(session, recorded.recording_id)
    assert descriptor.stripped_channel == endpoint
    assert descriptor.original_channel == channel
    assert descriptor.source_identity == "aeron:ipc"
    recorded.stop()


def test_r6_the_source_identity_of_a_remote_stream_is_an_address(session):
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
    recorded = Recorded(session, channel, location=SourceLocation.REMOTE)
    descriptor = described(session, recorded.recording_id)
    host, _, port = descriptor.source_identity.partition(":")
    assert host == "127.0.0.1"
    assert int(port) > 0
    recorded.send(3)
    assert recorded.stop().position == 3 * FRAME


def test_r7_a_subscription_is_stopped_once(session):
    recorded = Recorded(session).send(10)
    arguments = {"subscription_id": recorded.subscription_id}
    request = session.send(StopRecordingSubscriptionRequest, **arguments)
    assert session.response(request).relevant_id == 0
    stopped = session.signal(RecordingSignal.STOP, recorded.request)
    assert stopped.position == 10 * FRAME == recorded.position
    assert (stopped.recording_id, stopped.subscription_id) == (
        recorded.recording_id, recorded.subscription_id,
    )  # fmt: skip
    order = [each.message for each in session.all]
    assert order.index(session.received(request)[0]) < order.index(stopped)
    error = session.refused(StopRecordingSubscriptionRequest, **arguments)
    assert error == ErrorCode.UNKNOWN_SUBSCRIPTION


def test_r8_a_recording_that_was_not_started_cannot_be_stopped(session):
    error = session.refused(StopRecordingRequest, stream_id=new_stream_id(), channel=IPC)
    assert error == ErrorCode.UNKNOWN_SUBSCRIPTION


def test_r9_stopping_by_identity_stops_one_recording(session):
    recorded = Recorded(session).send(1)
    own = {"recording_id": recorded.recording_id}
    assert session.ok(StopRecordingByIdentityRequest, **own) == 1
    assert session.signal(RecordingSignal.STOP, recorded.request).position == FRAME
    assert session.ok(StopRecordingByIdentityRequest, **own) == 0
    error = session.refused(StopRecordingByIdentityRequest, recording_id=1 << 40)
    assert error == ErrorCode.UNKNOWN_RECORDING


@pytest.mark.parametrize("auto_stop", [False, True], ids=["r10", "r11-auto-stop"])
def test_r10_and_r11_a_recording_stops_with_its_publisher(session, auto_stop):
    recorded = Recorded(session, auto_stop=auto_stop).send(4)
    assert subscribed(session, "ipc", recorded.stream_id) is not None
    recorded.publication.close()
    assert session.signal(RecordingSignal.STOP, recorded.request).position == 4 * FRAME
    listed = subscribed(session, "ipc", recorded.stream_id)
    assert (listed is None) == auto_stop


def test_r12_the_number_of_recordings_is_limited(own_archive):
    limited = own_archive({"aeron.archive.max.concurrent.recordings": 2}).start()
    session = ControlSession(limited)
    for _ in range(2):
        session.ok(StartRecordingRequest, **start(new_stream_id()))
    error = session.refused(StartRecordingRequest, **start(new_stream_id()))
    assert error == ErrorCode.MAX_RECORDINGS


@pytest.mark.full
def test_r13_without_disk_space_nothing_is_recorded(own_archive):
    more_than_any_disk = 1 << 60
    full = own_archive({"aeron.archive.low.storage.space.threshold": more_than_any_disk}).start()
    session = ControlSession(full)
    error = session.refused(StartRecordingRequest, **start(new_stream_id()))
    assert error == ErrorCode.STORAGE_SPACE


@pytest.mark.parametrize("channel", ["aeron:carrier-pigeon", "ipc", "aeron:udp?endpoint"])
def test_r14_an_invalid_channel_is_rejected(session, channel):
    error = session.refused(StartRecordingRequest, **start(new_stream_id(), channel))
    assert error == ErrorCode.GENERIC


def test_r15_a_full_segment_is_followed_by_an_empty_one(archive, session):
    recorded = Recorded(session).send(SEGMENT // 1_024, length=1_024 - 32)
    assert recorded.stop().position == SEGMENT
    names = [f"{recorded.recording_id}-{base}.rec" for base in (0, SEGMENT)]
    assert files_of(archive, recorded.recording_id) == names
    behind = (archive.directory / names[1]).read_bytes()
    assert len(behind) == SEGMENT
    assert not any(behind)


@pytest.mark.full
def test_r16_a_checksum_replaces_the_session_id(own_archive):
    checked = own_archive({"aeron.archive.record.checksum": "CRC-32"}).start()
    session = ControlSession(checked)
    recorded = Recorded(session).send(63)
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
