"""Replication from another archive, with and without a live merge. Cases C1 to C13."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import ControlSession, summary
from tests.archive.streams import FRAME, Recorded, replayed
from tests.peer.ports import free_port
from windtunnel.driver.archive.protocol.codes import ControlResponseCode, ErrorCode, RecordingSignal
from windtunnel.driver.archive.protocol.replication import (
    ReplicateRequest,
    ReplicateRequest2,
    StopReplicationRequest,
)
from windtunnel.driver.archive.protocol.requests import (
    ListRecordingRequest,
    RecordingPositionRequest,
    StopPositionRequest,
    StopRecordingByIdentityRequest,
)
from windtunnel.driver.archive.protocol.responses import RecordingSignalEvent


@pytest.fixture
def original(source_session):
    """A stopped recording of 150 messages in the source archive."""
    recorded = Recorded(source_session).send(150)
    recorded.stop()
    return recorded


def replication(source, recording_id, **fields):
    """Return the fields of a request in which only the source is set."""
    return {
        "src_recording_id": recording_id, "dst_recording_id": -1, "stop_position": -1,
        "channel_tag_id": -1, "subscription_tag_id": -1, "src_control_stream_id": 10,
        "src_control_channel": source.control_channel, "live_destination": "",
        "replication_channel": "",
    } | fields  # fmt: skip


class Copy:
    """A replication, and the messages with its id."""

    def __init__(self, session, source, recording_id, **fields):
        self.session = session
        self.request = session.send(
            ReplicateRequest2, **replication(source, recording_id, **fields)
        )
        response = session.response(self.request)
        assert response.code == ControlResponseCode.OK, response
        self.replication_id = response.relevant_id

    @property
    def messages(self):
        return self.session.received(self.replication_id)

    def has_sent(self, *expected):
        """Check that the replication has sent exactly these messages."""
        until(lambda: len(self.messages) >= len(expected), f"{expected} instead of {self.messages}")
        assert summary(self.messages) == list(expected)
        return True

    @property
    def recording_id(self):
        signals = (each for each in self.messages if isinstance(each, RecordingSignalEvent))
        return next(each.recording_id for each in signals)


WHOLE = ("REPLICATE", "OK", "EXTEND", "SYNC", "REPLICATE_END", "STOP")


def test_c1_a_stopped_recording(archive, source, session, original):
    copy = Copy(session, source, original.recording_id)
    assert copy.has_sent(*WHOLE)
    by_name = {each.signal.name: each for each in session.received(copy.replication_id)
               if isinstance(each, RecordingSignalEvent)}  # fmt: skip
    assert by_name["SYNC"].position == by_name["STOP"].position == original.stop_position
    assert by_name["REPLICATE"].position == by_name["EXTEND"].position == 0
    ids = {each.recording_id for each in by_name.values()}
    assert ids == {copy.recording_id}
    theirs = sorted(source.directory.glob(f"{original.recording_id}-*.rec"))
    for file in theirs:
        name = f"{copy.recording_id}-{file.stem.partition('-')[2]}.rec"
        assert (archive.directory / name).read_bytes() == file.read_bytes()
    assert replayed(session, copy.recording_id) == original.sent


def test_c1_with_the_oldest_request(source, session, original):
    fields = replication(source, original.recording_id)
    kept = ("src_recording_id", "dst_recording_id", "src_control_stream_id",
            "src_control_channel", "live_destination")  # fmt: skip
    request = session.send(ReplicateRequest, **{name: fields[name] for name in kept})
    replication_id = session.response(request).relevant_id
    session.signal(RecordingSignal.STOP, replication_id)
    assert summary(session.received(replication_id)) == list(WHOLE)


def test_c2_a_complete_copy_is_only_synchronised(source, session, original):
    first = Copy(session, source, original.recording_id)
    assert first.has_sent(*WHOLE)
    second = Copy(session, source, original.recording_id, dst_recording_id=first.recording_id)
    assert second.has_sent("SYNC", "REPLICATE_END")
    assert second.recording_id == first.recording_id


def test_c3_an_unknown_source(source, session):
    copy = Copy(session, source, 1_000_005)
    assert copy.has_sent("UNKNOWN_RECORDING", "REPLICATE_END")
    assert copy.recording_id == -1


def test_c4_an_unknown_destination(source, session, original):
    fields = replication(source, original.recording_id, dst_recording_id=1_000_006)
    assert session.refused(ReplicateRequest2, **fields) == ErrorCode.UNKNOWN_RECORDING


def test_c5_an_active_destination(source, session, original):
    active = Recorded(session)
    fields = replication(source, original.recording_id, dst_recording_id=active.recording_id)
    assert session.refused(ReplicateRequest2, **fields) == ErrorCode.ACTIVE_RECORDING
    active.stop()


def test_c6_up_to_a_position_and_then_to_the_end(source, session, original):
    copy = Copy(session, source, original.recording_id, stop_position=10 * FRAME)
    assert copy.has_sent("REPLICATE", "OK", "EXTEND", "REPLICATE_END", "STOP")
    assert session.ok(StopPositionRequest, recording_id=copy.recording_id) == 10 * FRAME
    assert replayed(session, copy.recording_id) == original.sent[:10]
    rest = Copy(session, source, original.recording_id, dst_recording_id=copy.recording_id)
    assert rest.has_sent("OK", "EXTEND", "SYNC", "REPLICATE_END", "STOP")
    assert replayed(session, copy.recording_id) == original.sent


def test_c7_with_another_session_id(source, session, original):
    copy = Copy(session, source, original.recording_id, replication_session_id=777)
    assert copy.has_sent(*WHOLE)
    found = session.request(ListRecordingRequest, recording_id=copy.recording_id)
    assert found.session_id == 777
    assert replayed(session, copy.recording_id) == original.sent


@pytest.mark.full
def test_c8_an_unreachable_source(short_timeout_archive):
    session = ControlSession(short_timeout_archive)
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    copy = Copy(session, short_timeout_archive, 0, src_control_channel=channel)
    assert copy.has_sent("REPLICATION_CONNECTION_FAILURE", "REPLICATE_END")
    session.close()


def test_c9_a_live_merge_of_a_stopped_recording(source, session, original):
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    copy = Copy(session, source, original.recording_id, live_destination=channel)
    assert copy.has_sent("REPLICATE", "GENERIC", "REPLICATE_END")
    found = session.request(ListRecordingRequest, recording_id=copy.recording_id)
    assert (found.start_position, found.stop_position) == (0, 0)


def test_c10_a_copy_merges_with_the_live_stream(source, source_session, session):
    control = f"127.0.0.1:{free_port()}"
    channel = f"aeron:udp?control-mode=dynamic|control={control}|term-length=64k|fc=max"
    live = Recorded(source_session, channel).send(20)
    destination = f"aeron:udp?endpoint=127.0.0.1:0|control={control}"
    copy = Copy(session, source, live.recording_id, live_destination=destination)

    def is_merged():
        if live.publication.position < 2_000_000:
            live.send(1)
        return "REPLICATE_END" in summary(copy.messages)

    until(is_merged, "the merge")
    assert copy.has_sent("REPLICATE", "OK", "EXTEND", "MERGE", "REPLICATE_END")
    live.send(20)
    own = {"recording_id": copy.recording_id}
    reached = live.publication.position
    until(lambda: session.ok(RecordingPositionRequest, **own) == reached, "the live stream's end")
    assert session.ok(StopRecordingByIdentityRequest, **own) == 1
    session.signal(RecordingSignal.STOP, copy.replication_id)
    assert replayed(session, copy.recording_id) == live.sent
    live.stop()


RESPONSE = "aeron:udp?control-mode=response|control=127.0.0.1:0"


@pytest.mark.parametrize(
    "fields",
    [{"live_destination": "aeron:udp?endpoint=127.0.0.1:0"}, {"channel_tag_id": 5}],
    ids=["live", "tagged"],
)
def test_c11_a_response_channel_with_a_live_merge_or_tags(source, session, original, fields):
    arguments = replication(source, original.recording_id, replication_channel=RESPONSE, **fields)
    assert session.refused(ReplicateRequest2, **arguments) == ErrorCode.GENERIC


def test_c12_an_unknown_replication(session):
    error = session.refused(StopReplicationRequest, replication_id=1_000_007)
    assert error == ErrorCode.UNKNOWN_REPLICATION


def test_c13_a_block_shorter_than_a_datagram(source, session, original):
    copy = Copy(session, source, original.recording_id, file_io_max_length=1_024)
    assert copy.has_sent("GENERIC", "REPLICATE_END")


def test_a_replication_is_stopped(source, source_session, session):
    """A live source without a live destination is followed until the replication is stopped."""
    live = Recorded(source_session).send(10)
    copy = Copy(session, source, live.recording_id)
    session.signal(RecordingSignal.EXTEND, copy.replication_id)
    own = {"recording_id": copy.recording_id}
    until(lambda: session.ok(RecordingPositionRequest, **own) == 10 * FRAME, "the copy")
    assert session.ok(StopReplicationRequest, replication_id=copy.replication_id) == 0
    assert copy.has_sent("REPLICATE", "OK", "EXTEND", "REPLICATE_END", "STOP")
    live.stop()


def test_a_source_that_stops_ends_its_copy(source, source_session, session):
    """There is no SYNC signal, because the stop position was not known before."""
    live = Recorded(source_session).send(10)
    copy = Copy(session, source, live.recording_id)
    session.signal(RecordingSignal.EXTEND, copy.replication_id)
    live.stop()
    assert copy.has_sent("REPLICATE", "OK", "EXTEND", "REPLICATE_END", "STOP")
    assert replayed(session, copy.recording_id) == live.sent
