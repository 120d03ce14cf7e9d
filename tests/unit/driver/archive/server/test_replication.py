"""Replication between two archives that use one driver. Cases C1 to C13."""

import pytest

from tests.unit.driver.archive.server.own_archive import Err, Ok, short
from tests.unit.driver.archive.server.own_copy import (
    LINGERED,
    SOURCE_ID,
    UDP,
    replicate,
    replication_messages,
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
def test_a_stopped_recording_is_replicated_byte_by_byte(two, tmp_path, channel):
    env, client, source = two
    end = source.stopped_recording(300, archive_id=SOURCE_ID).end
    env.run_for(LINGERED)
    response = replicate(client, replication_channel=channel)
    assert until_end(env, client, response.relevant_id, "STOP") == [
        ("REPLICATE", 0, 0), ("OK",), ("EXTEND", 0, 0), ("SYNC", 0, end),
        ("REPLICATE_END", 0, -1), ("STOP", 0, end),
    ]  # fmt: skip
    assert content(tmp_path / "archive") == content(tmp_path / "source")
    copy, original = entry(tmp_path / "archive"), entry(tmp_path / "source")
    assert copy.stop_position == original.stop_position
    assert copy.session_id == original.session_id
    reader = Reader(client)
    client.request_replay(0)
    assert reader.until_end() == [message(number) for number in range(300)]
    again = replicate(client, dst_recording_id=0)
    assert until_end(env, client, again.relevant_id) == [
        ("SYNC", 0, end), ("REPLICATE_END", 0, -1)
    ]  # fmt: skip


def test_the_session_counter_of_the_source_names_the_replicating_archive(two):
    env, client, source = two
    source.live_recording(10, archive_id=SOURCE_ID)
    response = replicate(client)
    expected = f"name=archive archiveId=77 replicationSessionId={response.relevant_id} version="
    env.until(
        lambda: [
            each for each in client.aeron.counters
            if each.type_id == 113 and expected in each.label
        ]
    )  # fmt: skip


def test_a_replication_does_not_overwrite_an_existing_file(two, tmp_path):
    env, client, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    path = tmp_path / "archive" / "0-0.rec"
    path.write_bytes(b"precious")
    response = replicate(client)
    found = until_end(env, client, response.relevant_id)
    assert ("ERROR", 0) in found
    assert path.read_bytes() == b"precious"
    assert entry(tmp_path / "archive") is None


def test_a_replication_resumes_where_the_previous_one_stopped(two, tmp_path):
    env, client, source = two
    end = source.stopped_recording(300, archive_id=SOURCE_ID).end
    first = replicate(client, stop_position=10 * FRAME)
    assert until_end(env, client, first.relevant_id, "STOP") == [
        ("REPLICATE", 0, 0), ("OK",), ("EXTEND", 0, 0), ("REPLICATE_END", 0, -1),
        ("STOP", 0, 10 * FRAME),
    ]  # fmt: skip
    env.run_for(LINGERED)
    second = replicate(client, dst_recording_id=0)
    assert until_end(env, client, second.relevant_id, "STOP") == [
        ("OK",), ("EXTEND", 0, 10 * FRAME), ("SYNC", 0, end), ("REPLICATE_END", 0, -1),
        ("STOP", 0, end),
    ]  # fmt: skip
    assert content(tmp_path / "archive") == content(tmp_path / "source")


def test_a_stop_position_far_before_the_copys_start_ends_the_replication(two):
    """The length to replay overflows, as in Aeron; the source archive then decides."""
    env, client, source = two
    source.stopped_recording(300, archive_id=SOURCE_ID)
    first = replicate(client, stop_position=I64_MIN)
    assert until_end(env, client, first.relevant_id) == [
        ("REPLICATE", 0, 0), ("OK",), ("ERROR", 0), ("REPLICATE_END", 0, -1)
    ]  # fmt: skip
    second = replicate(client, stop_position=10 * FRAME)
    until_end(env, client, second.relevant_id, "STOP")
    env.run_for(LINGERED)
    third = replicate(client, dst_recording_id=1, stop_position=I64_MIN)
    assert until_end(env, client, third.relevant_id, "STOP")[:2] == [
        ("OK",), ("EXTEND", 1, 10 * FRAME)
    ]  # fmt: skip
    found = replication_messages(client, third.relevant_id)
    assert [each[0] for each in found[2:]] == ["REPLICATE_END", "STOP"]


def test_an_empty_destination_takes_over_the_sources_channel(two, tmp_path):
    env, client, source = two
    end = source.stopped_recording(10, channel=IPC + "|alias=theirs", archive_id=SOURCE_ID).end
    client.stopped_recording(10)
    client.request(TruncateRecordingRequest, recording_id=0, position=0)
    response = replicate(client, dst_recording_id=0)
    assert until_end(env, client, response.relevant_id, "STOP")[-1] == ("STOP", 0, end)
    assert "alias=theirs" in entry(tmp_path / "archive").original_channel


def test_the_request_may_choose_the_session_id_of_the_copy(two, tmp_path):
    env, client, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    response = replicate(client, replication_session_id=777)
    until_end(env, client, response.relevant_id, "STOP")
    assert entry(tmp_path / "archive").session_id == 777


def test_an_error_about_an_unknown_source_has_the_replication_id(two):
    env, client, _ = two
    response = replicate(client, source_id=9)
    assert response == Ok(response.relevant_id)
    assert until_end(env, client, response.relevant_id) == [
        ("ERROR", 5), ("REPLICATE_END", -1, -1)
    ]  # fmt: skip


def test_an_invalid_destination_recording_is_rejected(two):
    _, client, _ = two
    assert replicate(client, dst_recording_id=3) == Err(5)
    client.live_recording()
    assert replicate(client, dst_recording_id=0) == Err(2)


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
def test_invalid_channels_are_rejected(two, values):
    _, client, _ = two
    assert replicate(client, **values) == Err(0)


def test_a_replication_from_an_absent_source_times_out(two):
    env, client, _ = two
    response = replicate(client, src_control_stream_id=999)
    env.run_for(9 * SECOND)
    assert replication_messages(client, response.relevant_id) == []
    env.run_for(2 * SECOND)
    assert replication_messages(client, response.relevant_id) == [
        ("ERROR", 14),
        ("REPLICATE_END", -1, -1),
    ]


def test_a_replication_whose_block_is_shorter_than_a_frame_fails(two):
    env, client, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    response = replicate(client, file_io_max_length=1024)
    assert until_end(env, client, response.relevant_id) == [
        ("ERROR", 0), ("REPLICATE_END", -1, -1)
    ]  # fmt: skip


def test_a_replication_follows_a_live_source_until_it_stops(two, tmp_path):
    env, client, source = two
    live = source.live_recording(10, archive_id=SOURCE_ID)
    response = replicate(client)
    client.recorded(0, 10 * FRAME)
    end = source.publish(live.publication, 10, first=10)
    client.recorded(0, end)
    source.stop(live, end)
    found = until_end(env, client, response.relevant_id, "STOP")
    assert found[-2:] == [("REPLICATE_END", 0, -1), ("STOP", 0, end)]
    assert "SYNC" not in [each[0] for each in found]
    assert content(tmp_path / "archive") == content(tmp_path / "source")


def test_a_stop_request_ends_a_replication(two):
    env, client, source = two
    source.live_recording(10, archive_id=SOURCE_ID)
    response = replicate(client)
    env.until(lambda: ("EXTEND", 0, 0) in client.summaries(response.relevant_id))
    env.run_for(SECOND)
    assert client.request(StopReplicationRequest, replication_id=response.relevant_id) == Ok(0)
    found = until_end(env, client, response.relevant_id, "STOP")
    assert [each[0] for each in found[-2:]] == ["REPLICATE_END", "STOP"]
    assert client.request(StopReplicationRequest, replication_id=response.relevant_id) == Err(12)


@pytest.mark.parametrize("live", ["", "aeron:udp?endpoint=10.0.0.1:20801"])
def test_a_replication_ends_after_its_recording_is_stopped(two, live):
    env, client, source = two
    end = source.live_recording(10, archive_id=SOURCE_ID).end
    response = replicate(client, live_destination=live)
    client.recorded(0, end)
    assert client.request(StopRecordingByIdentityRequest, recording_id=0) == Ok(1)
    found = until_end(env, client, response.relevant_id)
    assert found[-2:] == [("STOP", 0, end), ("REPLICATE_END", 0, -1)]


def test_a_replication_can_be_stopped_only_once(two):
    env, client, source = two
    source.live_recording(10, archive_id=SOURCE_ID)
    response = replicate(client)
    stops = [
        client.send(StopReplicationRequest, replication_id=response.relevant_id) for _ in range(2)
    ]
    env.until(lambda: all(client.summaries(each) for each in stops))
    assert [client.summaries(each) for each in stops] == [[("OK", 0)], [("ERROR", 12)]]


def test_an_error_of_the_source_is_reported_as_generic_and_logged(two):
    env, client, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    source.stopped_recording(20, archive_id=SOURCE_ID)
    longer = replicate(client, source_id=1)
    until_end(env, client, longer.relevant_id, "STOP")
    response = replicate(client, source_id=0, dst_recording_id=0)
    found = until_end(env, client, response.relevant_id)
    assert [each for each in found if each[0] == "ERROR"] == [("ERROR", 0)]
    (error,) = [each for each in client.responses_to(response.relevant_id) if each.error_message]
    assert "stop position" in error.error_message
    assert any(error.error_message in each for each in env.errors)


def test_recordings_with_equal_stop_positions_are_in_sync_for_any_stream(two):
    env, client, source = two
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    source.stopped_recording(10, stream=STREAM + 1, archive_id=SOURCE_ID)
    source.stopped_recording(11, stream=STREAM + 1, archive_id=SOURCE_ID)
    until_end(env, client, replicate(client).relevant_id, "STOP")
    same = replicate(client, source_id=1, dst_recording_id=0)
    assert until_end(env, client, same.relevant_id) == [("SYNC", 0, end), ("REPLICATE_END", 0, -1)]
    longer = replicate(client, source_id=2, dst_recording_id=0)
    assert until_end(env, client, longer.relevant_id) == [("ERROR", 5), ("REPLICATE_END", 0, -1)]


def test_a_replication_of_a_stopped_source_cannot_merge(two):
    env, client, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    response = replicate(client, live_destination="aeron:udp?endpoint=10.0.0.1:20801")
    found = until_end(env, client, response.relevant_id)
    assert found == [("REPLICATE", 0, 0), ("ERROR", 0), ("REPLICATE_END", 0, -1)]


def test_a_replication_merges_with_the_live_stream(two, tmp_path):
    env, client, source = two
    publication = source.aeron.add_exclusive_publication(LIVE, STREAM)
    session = publication.session_id
    remote = f"aeron:udp?control-mode=dynamic|control=10.0.0.1:20800|session-id={session}"
    source.start(LIVE + f"|session-id={session}|ssc=true")
    env.until(source.signals)
    Reader(source, remote + "|endpoint=10.0.0.1:20802", STREAM)
    env.until(lambda: publication.is_connected)
    source.recorded(0, source.publish(publication, 50), SOURCE_ID)
    response = replicate(
        client,
        live_destination="aeron:udp?control=10.0.0.1:20800|endpoint=10.0.0.1:20801",
        replication_channel="aeron:udp?endpoint=10.0.0.1:20701",
    )
    sent = [50]

    def is_merged():
        if publication.offer(message(sent[0])) > 0:
            sent[0] += 1
        return any(each[0] == "REPLICATE_END" for each in client.summaries(response.relevant_id))

    env.until(is_merged, turns=5_000)
    found = [each[0] for each in client.summaries(response.relevant_id)]
    assert found == ["REPLICATE", "OK", "EXTEND", "MERGE", "REPLICATE_END"]
    end = source.publish(publication, 20, first=sent[0])
    client.recorded(0, end)
    source.recorded(0, end, SOURCE_ID)
    length = end - end % FRAME
    assert content(tmp_path / "archive")[0][:length] == content(tmp_path / "source")[0][:length]
    assert short(client.received[-1])[0] != "STOP"
