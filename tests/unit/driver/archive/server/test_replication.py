"""Replication between two archives that use one driver. Cases C1 to C13."""

import pytest

from tests.unit.driver.archive.server.own_archive import Err, Ok, short
from tests.unit.driver.archive.server.own_copy import (
    LINGERED,
    SOURCE_ID,
    UDP,
    replicate,
    told,
    until_end,
)
from tests.unit.driver.archive.server.own_stream import FRAME, IPC, STREAM, Reader, message
from windtunnel.driver.archive.protocol.replication import StopReplicationRequest
from windtunnel.driver.archive.protocol.requests import (
    StopRecordingByIdentityRequest,
    TruncateRecordingRequest,
)
from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.archive.storage.segment_file import segments_of
from windtunnel.driver.base.arith import I64_MIN

SECOND = 1_000_000_000
LIVE = "aeron:udp?control-mode=dynamic|control=10.0.0.1:20800|term-length=64k"


def entry(folder, recording_id=0):
    with Catalog(folder) as catalog:
        return catalog.descriptor(recording_id)


def content(folder, recording_id=0):
    return [each.path.read_bytes() for each in segments_of(folder, recording_id)]


@pytest.mark.parametrize("channel", [UDP, "aeron:ipc"])
def test_a_stopped_recording_is_copied_byte_by_byte(two, tmp_path, channel):
    own, talker, source = two
    end = source.stopped_recording(300, archive_id=SOURCE_ID).end
    own.run_for(LINGERED)
    answer = replicate(talker, replication_channel=channel)
    assert until_end(own, talker, answer.relevant_id, "STOP") == [
        ("REPLICATE", 0, 0), ("OK",), ("EXTEND", 0, 0), ("SYNC", 0, end),
        ("REPLICATE_END", 0, -1), ("STOP", 0, end),
    ]  # fmt: skip
    assert content(tmp_path / "archive") == content(tmp_path / "source")
    copy, original = entry(tmp_path / "archive"), entry(tmp_path / "source")
    assert copy.stop_position == original.stop_position
    assert copy.session_id == original.session_id
    reader = Reader(talker)
    talker.ask_replay(0)
    assert reader.until_end() == [message(number) for number in range(300)]
    again = replicate(talker, dst_recording_id=0)
    assert until_end(own, talker, again.relevant_id) == [
        ("SYNC", 0, end), ("REPLICATE_END", 0, -1)
    ]  # fmt: skip


def test_the_source_knows_the_archive_that_replicates(two):
    own, talker, source = two
    source.live_recording(10, archive_id=SOURCE_ID)
    answer = replicate(talker)
    expected = f"name=archive archiveId=77 replicationSessionId={answer.relevant_id} version="
    own.until(
        lambda: [
            each for each in talker.client.counters
            if each.type_id == 113 and expected in each.label
        ]
    )  # fmt: skip


def test_a_copy_does_not_go_into_a_file_that_is_there(two, tmp_path):
    own, talker, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    path = tmp_path / "archive" / "0-0.rec"
    path.write_bytes(b"precious")
    answer = replicate(talker)
    said = until_end(own, talker, answer.relevant_id)
    assert ("ERROR", 0) in said
    assert path.read_bytes() == b"precious"
    assert entry(tmp_path / "archive") is None


def test_a_copy_goes_on_where_it_was(two, tmp_path):
    own, talker, source = two
    end = source.stopped_recording(300, archive_id=SOURCE_ID).end
    first = replicate(talker, stop_position=10 * FRAME)
    assert until_end(own, talker, first.relevant_id, "STOP") == [
        ("REPLICATE", 0, 0), ("OK",), ("EXTEND", 0, 0), ("REPLICATE_END", 0, -1),
        ("STOP", 0, 10 * FRAME),
    ]  # fmt: skip
    own.run_for(LINGERED)
    second = replicate(talker, dst_recording_id=0)
    assert until_end(own, talker, second.relevant_id, "STOP") == [
        ("OK",), ("EXTEND", 0, 10 * FRAME), ("SYNC", 0, end), ("REPLICATE_END", 0, -1),
        ("STOP", 0, end),
    ]  # fmt: skip
    assert content(tmp_path / "archive") == content(tmp_path / "source")


def test_a_stop_position_far_before_the_copys_beginning_ends_it(two):
    """The length to replay wraps, as in Aeron; the source then decides."""
    own, talker, source = two
    source.stopped_recording(300, archive_id=SOURCE_ID)
    first = replicate(talker, stop_position=I64_MIN)
    assert until_end(own, talker, first.relevant_id) == [
        ("REPLICATE", 0, 0), ("OK",), ("ERROR", 0), ("REPLICATE_END", 0, -1)
    ]  # fmt: skip
    second = replicate(talker, stop_position=10 * FRAME)
    until_end(own, talker, second.relevant_id, "STOP")
    own.run_for(LINGERED)
    third = replicate(talker, dst_recording_id=1, stop_position=I64_MIN)
    assert until_end(own, talker, third.relevant_id, "STOP")[:2] == [
        ("OK",), ("EXTEND", 1, 10 * FRAME)
    ]  # fmt: skip
    found = told(talker, third.relevant_id)
    assert [each[0] for each in found[2:]] == ["REPLICATE_END", "STOP"]


def test_an_empty_destination_becomes_the_copy(two, tmp_path):
    own, talker, source = two
    end = source.stopped_recording(10, channel=IPC + "|alias=theirs", archive_id=SOURCE_ID).end
    talker.stopped_recording(10)
    talker.ask(TruncateRecordingRequest, recording_id=0, position=0)
    answer = replicate(talker, dst_recording_id=0)
    assert until_end(own, talker, answer.relevant_id, "STOP")[-1] == ("STOP", 0, end)
    assert "alias=theirs" in entry(tmp_path / "archive").original_channel


def test_the_copys_session_is_chosen(two, tmp_path):
    own, talker, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    answer = replicate(talker, replication_session_id=777)
    until_end(own, talker, answer.relevant_id, "STOP")
    assert entry(tmp_path / "archive").session_id == 777


def test_an_unknown_source_is_told_with_the_replications_id(two):
    own, talker, _ = two
    answer = replicate(talker, source_id=9)
    assert answer == Ok(answer.relevant_id)
    assert until_end(own, talker, answer.relevant_id) == [
        ("ERROR", 5), ("REPLICATE_END", -1, -1)
    ]  # fmt: skip


def test_what_cannot_be_a_destination_is_refused(two):
    _, talker, _ = two
    assert replicate(talker, dst_recording_id=3) == Err(5)
    talker.live_recording()
    assert replicate(talker, dst_recording_id=0) == Err(2)


@pytest.mark.parametrize(
    "values",
    [
        {"replication_channel": "rubbish"},
        {"src_control_channel": "rubbish"},
        {"src_response_channel": "rubbish"},
        {"live_destination": "rubbish"},
        {"live_destination": UDP, "replication_channel": "aeron:udp?control-mode=response"},
        {"channel_tag_id": 5, "replication_channel": "aeron:udp?control-mode=response"},
    ],
)
def test_channels_that_cannot_be_are_refused(two, values):
    _, talker, _ = two
    assert replicate(talker, **values) == Err(0)


def test_a_source_that_is_not_there_is_given_up(two):
    own, talker, _ = two
    answer = replicate(talker, src_control_stream_id=999)
    own.run_for(9 * SECOND)
    assert told(talker, answer.relevant_id) == []
    own.run_for(2 * SECOND)
    assert told(talker, answer.relevant_id) == [("ERROR", 14), ("REPLICATE_END", -1, -1)]


def test_blocks_must_hold_a_frame(two):
    own, talker, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    answer = replicate(talker, file_io_max_length=1024)
    assert until_end(own, talker, answer.relevant_id) == [
        ("ERROR", 0), ("REPLICATE_END", -1, -1)
    ]  # fmt: skip


def test_a_live_source_is_followed_until_it_stops(two, tmp_path):
    own, talker, source = two
    live = source.live_recording(10, archive_id=SOURCE_ID)
    answer = replicate(talker)
    talker.recorded(0, 10 * FRAME)
    end = source.publish(live.publication, 10, first=10)
    talker.recorded(0, end)
    source.stop(live, end)
    found = until_end(own, talker, answer.relevant_id, "STOP")
    assert found[-2:] == [("REPLICATE_END", 0, -1), ("STOP", 0, end)]
    assert "SYNC" not in [each[0] for each in found]
    assert content(tmp_path / "archive") == content(tmp_path / "source")


def test_a_replication_is_stopped(two):
    own, talker, source = two
    source.live_recording(10, archive_id=SOURCE_ID)
    answer = replicate(talker)
    own.until(lambda: ("EXTEND", 0, 0) in talker.about(answer.relevant_id))
    own.run_for(SECOND)
    assert talker.ask(StopReplicationRequest, replication_id=answer.relevant_id) == Ok(0)
    found = until_end(own, talker, answer.relevant_id, "STOP")
    assert [each[0] for each in found[-2:]] == ["REPLICATE_END", "STOP"]
    assert talker.ask(StopReplicationRequest, replication_id=answer.relevant_id) == Err(12)


@pytest.mark.parametrize("live", ["", "aeron:udp?endpoint=10.0.0.1:20801"])
def test_a_replication_whose_recording_is_stopped_ends_after_it(two, live):
    own, talker, source = two
    end = source.live_recording(10, archive_id=SOURCE_ID).end
    answer = replicate(talker, live_destination=live)
    talker.recorded(0, end)
    assert talker.ask(StopRecordingByIdentityRequest, recording_id=0) == Ok(1)
    found = until_end(own, talker, answer.relevant_id)
    assert found[-2:] == [("STOP", 0, end), ("REPLICATE_END", 0, -1)]


def test_a_replication_is_stopped_once(two):
    own, talker, source = two
    source.live_recording(10, archive_id=SOURCE_ID)
    answer = replicate(talker)
    stops = [
        talker.send(StopReplicationRequest, replication_id=answer.relevant_id) for _ in range(2)
    ]
    own.until(lambda: all(talker.about(each) for each in stops))
    assert [talker.about(each) for each in stops] == [[("OK", 0)], [("ERROR", 12)]]


def test_an_error_of_the_source_is_generic_and_in_the_log(two):
    own, talker, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    source.stopped_recording(20, archive_id=SOURCE_ID)
    longer = replicate(talker, source_id=1)
    until_end(own, talker, longer.relevant_id, "STOP")
    answer = replicate(talker, source_id=0, dst_recording_id=0)
    found = until_end(own, talker, answer.relevant_id)
    assert [each for each in found if each[0] == "ERROR"] == [("ERROR", 0)]
    (told_error,) = [each for each in talker.answers(answer.relevant_id) if each.error_message]
    assert "stop position" in told_error.error_message
    assert any(told_error.error_message in each for each in own.errors)


def test_equal_stop_positions_are_in_sync_whatever_the_streams(two):
    own, talker, source = two
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    source.stopped_recording(10, stream=STREAM + 1, archive_id=SOURCE_ID)
    source.stopped_recording(11, stream=STREAM + 1, archive_id=SOURCE_ID)
    until_end(own, talker, replicate(talker).relevant_id, "STOP")
    same = replicate(talker, source_id=1, dst_recording_id=0)
    assert until_end(own, talker, same.relevant_id) == [("SYNC", 0, end), ("REPLICATE_END", 0, -1)]
    longer = replicate(talker, source_id=2, dst_recording_id=0)
    assert until_end(own, talker, longer.relevant_id) == [("ERROR", 5), ("REPLICATE_END", 0, -1)]


def test_a_stopped_source_cannot_be_merged(two):
    own, talker, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    answer = replicate(talker, live_destination="aeron:udp?endpoint=10.0.0.1:20801")
    found = until_end(own, talker, answer.relevant_id)
    assert found == [("REPLICATE", 0, 0), ("ERROR", 0), ("REPLICATE_END", 0, -1)]


def test_a_copy_merges_with_the_live_stream_and_goes_on(two, tmp_path):
    own, talker, source = two
    publication = source.client.add_exclusive_publication(LIVE, STREAM)
    session = publication.session_id
    remote = f"aeron:udp?control-mode=dynamic|control=10.0.0.1:20800|session-id={session}"
    source.start(LIVE + f"|session-id={session}|ssc=true")
    own.until(source.signals)
    Reader(source, remote + "|endpoint=10.0.0.1:20802", STREAM)
    own.until(lambda: publication.is_connected)
    source.recorded(0, source.publish(publication, 50), SOURCE_ID)
    answer = replicate(
        talker,
        live_destination="aeron:udp?control=10.0.0.1:20800|endpoint=10.0.0.1:20801",
        replication_channel="aeron:udp?endpoint=10.0.0.1:20701",
    )
    sent = [50]

    def is_merged():
        if publication.offer(message(sent[0])) > 0:
            sent[0] += 1
        return any(each[0] == "REPLICATE_END" for each in talker.about(answer.relevant_id))

    own.until(is_merged, turns=5_000)
    found = [each[0] for each in talker.about(answer.relevant_id)]
    assert found == ["REPLICATE", "OK", "EXTEND", "MERGE", "REPLICATE_END"]
    end = source.publish(publication, 20, first=sent[0])
    talker.recorded(0, end)
    source.recorded(0, end, SOURCE_ID)
    length = end - end % FRAME
    assert content(tmp_path / "archive")[0][:length] == content(tmp_path / "source")[0][:length]
    assert short(talker.said[-1])[0] != "STOP"
