"""Replication from another archive, with and without a live merge. Cases C1 to C13."""

import pytest

from tests.archive.archives import until
from tests.archive.conversation import Conversation, shape
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
def original(source_talk):
    """A stopped recording of 150 messages in the source archive."""
    recorded = Recorded(source_talk).send(150)
    recorded.stop()
    return recorded


def replication(source, recording_id, **fields):
    """A request in which only the source is set."""
    return {
        "src_recording_id": recording_id, "dst_recording_id": -1, "stop_position": -1,
        "channel_tag_id": -1, "subscription_tag_id": -1, "src_control_stream_id": 10,
        "src_control_channel": source.control_channel, "live_destination": "",
        "replication_channel": "",
    } | fields  # fmt: skip


class Copy:
    """A replication, and the messages with its id."""

    def __init__(self, talk, source, recording_id, **fields):
        self.talk = talk
        self.request = talk.send(ReplicateRequest2, **replication(source, recording_id, **fields))
        answer = talk.answer(self.request)
        assert answer.code == ControlResponseCode.OK, answer
        self.replication_id = answer.relevant_id

    @property
    def story(self):
        return self.talk.heard(self.replication_id)

    def ends_as(self, *expected):
        """Check that the replication has sent exactly these messages."""
        until(lambda: len(self.story) >= len(expected), f"{expected} instead of {self.story}")
        assert shape(self.story) == list(expected)
        return True

    @property
    def recording_id(self):
        signals = (each for each in self.story if isinstance(each, RecordingSignalEvent))
        return next(each.recording_id for each in signals)


WHOLE = ("REPLICATE", "OK", "EXTEND", "SYNC", "REPLICATE_END", "STOP")


def test_c1_a_stopped_recording_is_copied(archive, source, talk, original):
    copy = Copy(talk, source, original.recording_id)
    assert copy.ends_as(*WHOLE)
    by_name = {each.signal.name: each for each in talk.heard(copy.replication_id)
               if isinstance(each, RecordingSignalEvent)}  # fmt: skip
    assert by_name["SYNC"].position == by_name["STOP"].position == original.stop_position
    assert by_name["REPLICATE"].position == by_name["EXTEND"].position == 0
    ids = {each.recording_id for each in by_name.values()}
    assert ids == {copy.recording_id}
    theirs = sorted(source.directory.glob(f"{original.recording_id}-*.rec"))
    for file in theirs:
        name = f"{copy.recording_id}-{file.stem.partition('-')[2]}.rec"
        assert (archive.directory / name).read_bytes() == file.read_bytes()
    assert replayed(talk, copy.recording_id) == original.sent


def test_c1_by_the_oldest_kind_of_request(source, talk, original):
    fields = replication(source, original.recording_id)
    kept = ("src_recording_id", "dst_recording_id", "src_control_stream_id",
            "src_control_channel", "live_destination")  # fmt: skip
    asked = talk.send(ReplicateRequest, **{name: fields[name] for name in kept})
    replication_id = talk.answer(asked).relevant_id
    talk.signal(RecordingSignal.STOP, replication_id)
    assert shape(talk.heard(replication_id)) == list(WHOLE)


def test_c2_once_more_there_is_nothing_to_copy(source, talk, original):
    first = Copy(talk, source, original.recording_id)
    assert first.ends_as(*WHOLE)
    again = Copy(talk, source, original.recording_id, dst_recording_id=first.recording_id)
    assert again.ends_as("SYNC", "REPLICATE_END")
    assert again.recording_id == first.recording_id


def test_c3_an_unknown_source(source, talk):
    copy = Copy(talk, source, 1_000_005)
    assert copy.ends_as("UNKNOWN_RECORDING", "REPLICATE_END")
    assert copy.recording_id == -1


def test_c4_an_unknown_destination(source, talk, original):
    fields = replication(source, original.recording_id, dst_recording_id=1_000_006)
    assert talk.refused(ReplicateRequest2, **fields) == ErrorCode.UNKNOWN_RECORDING


def test_c5_an_active_destination(source, talk, original):
    active = Recorded(talk)
    fields = replication(source, original.recording_id, dst_recording_id=active.recording_id)
    assert talk.refused(ReplicateRequest2, **fields) == ErrorCode.ACTIVE_RECORDING
    active.stop()


def test_c6_up_to_a_position_and_then_the_rest(source, talk, original):
    copy = Copy(talk, source, original.recording_id, stop_position=10 * FRAME)
    assert copy.ends_as("REPLICATE", "OK", "EXTEND", "REPLICATE_END", "STOP")
    assert talk.ok(StopPositionRequest, recording_id=copy.recording_id) == 10 * FRAME
    assert replayed(talk, copy.recording_id) == original.sent[:10]
    rest = Copy(talk, source, original.recording_id, dst_recording_id=copy.recording_id)
    assert rest.ends_as("OK", "EXTEND", "SYNC", "REPLICATE_END", "STOP")
    assert replayed(talk, copy.recording_id) == original.sent


def test_c7_with_a_session_id_of_its_own(source, talk, original):
    copy = Copy(talk, source, original.recording_id, replication_session_id=777)
    assert copy.ends_as(*WHOLE)
    found = talk.ask(ListRecordingRequest, recording_id=copy.recording_id)
    assert found.session_id == 777
    assert replayed(talk, copy.recording_id) == original.sent


@pytest.mark.full
def test_c8_a_source_that_is_not_there(impatient):
    talk = Conversation(impatient)
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    copy = Copy(talk, impatient, 0, src_control_channel=channel)
    assert copy.ends_as("REPLICATION_CONNECTION_FAILURE", "REPLICATE_END")
    talk.close()


def test_c9_there_is_nothing_live_of_a_stopped_recording(source, talk, original):
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    copy = Copy(talk, source, original.recording_id, live_destination=channel)
    assert copy.ends_as("REPLICATE", "GENERIC", "REPLICATE_END")
    found = talk.ask(ListRecordingRequest, recording_id=copy.recording_id)
    assert (found.start_position, found.stop_position) == (0, 0)


def test_c10_the_copy_goes_on_live(source, source_talk, talk):
    control = f"127.0.0.1:{free_port()}"
    channel = f"aeron:udp?control-mode=dynamic|control={control}|term-length=64k|fc=max"
    live = Recorded(source_talk, channel).send(20)
    destination = f"aeron:udp?endpoint=127.0.0.1:0|control={control}"
    copy = Copy(talk, source, live.recording_id, live_destination=destination)

    def is_merged():
        if live.publication.position < 2_000_000:
            live.send(1)
        return "REPLICATE_END" in shape(copy.story)

    until(is_merged, "the merge")
    assert copy.ends_as("REPLICATE", "OK", "EXTEND", "MERGE", "REPLICATE_END")
    live.send(20)
    own = {"recording_id": copy.recording_id}
    reached = live.publication.position
    until(lambda: talk.ok(RecordingPositionRequest, **own) == reached, "the live stream's end")
    assert talk.ok(StopRecordingByIdentityRequest, **own) == 1
    talk.signal(RecordingSignal.STOP, copy.replication_id)
    assert replayed(talk, copy.recording_id) == live.sent
    live.stop()


RESPONSE = "aeron:udp?control-mode=response|control=127.0.0.1:0"


@pytest.mark.parametrize(
    "fields",
    [{"live_destination": "aeron:udp?endpoint=127.0.0.1:0"}, {"channel_tag_id": 5}],
    ids=["live", "tagged"],
)
def test_c11_a_response_channel_is_for_whole_copies_only(source, talk, original, fields):
    asked = replication(source, original.recording_id, replication_channel=RESPONSE, **fields)
    assert talk.refused(ReplicateRequest2, **asked) == ErrorCode.GENERIC


def test_c12_an_unknown_replication(talk):
    refusal = talk.refused(StopReplicationRequest, replication_id=1_000_007)
    assert refusal == ErrorCode.UNKNOWN_REPLICATION


def test_c13_a_block_shorter_than_a_datagram(source, talk, original):
    copy = Copy(talk, source, original.recording_id, file_io_max_length=1_024)
    assert copy.ends_as("GENERIC", "REPLICATE_END")


def test_a_replication_is_stopped(source, source_talk, talk):
    """A live source without a live destination is followed until the replication is stopped."""
    live = Recorded(source_talk).send(10)
    copy = Copy(talk, source, live.recording_id)
    talk.signal(RecordingSignal.EXTEND, copy.replication_id)
    own = {"recording_id": copy.recording_id}
    until(lambda: talk.ok(RecordingPositionRequest, **own) == 10 * FRAME, "the copy")
    assert talk.ok(StopReplicationRequest, replication_id=copy.replication_id) == 0
    assert copy.ends_as("REPLICATE", "OK", "EXTEND", "REPLICATE_END", "STOP")
    live.stop()


def test_a_source_that_stops_ends_its_copy(source, source_talk, talk):
    """Without SYNC: the stop position was not known before."""
    live = Recorded(source_talk).send(10)
    copy = Copy(talk, source, live.recording_id)
    talk.signal(RecordingSignal.EXTEND, copy.replication_id)
    live.stop()
    assert copy.ends_as("REPLICATE", "OK", "EXTEND", "REPLICATE_END", "STOP")
    assert replayed(talk, copy.recording_id) == live.sent
