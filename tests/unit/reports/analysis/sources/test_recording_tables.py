"""Recordings of Aeron's archive and of ours as tables."""

import re
import zlib

import pyarrow as pa
import pytest

from tests.golden.archive_files import unpack
from tests.golden.reader import GOLDEN, message
from tests.unit.driver.archive.recording import own_image
from tests.unit.driver.archive.storage import own_recording as own
from tests.unit.driver.client.own_stream import OwnStream
from windtunnel.driver.archive.recording.segment_writer import WriteOptions
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.driver.archive.storage.checksum import CRC_32C
from windtunnel.reports.analysis.engines.local.local_engine import local_frames
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.parts import ReadSettings
from windtunnel.reports.analysis.sources import segment_reader
from windtunnel.reports.analysis.sources.recording_source import (
    TABLES,
    AeronRecordingReader,
    read_options,
)
from windtunnel.reports.analysis.sources.recording_tables import (
    recordings,
    segment_parts,
)
from windtunnel.reports.analysis.sources.run_tables import RunTableError
from windtunnel.reports.analysis.sources.segment_reader import SegmentReader

EXTENSION_FROM, EXTENSION_LENGTH_MAX = 200, 2_000
DETACHED = 2


def read(archive, table, **options):
    """Return the rows of a table, partition by partition."""
    given = {"path": str(archive), "table": table, **options}
    reader = AeronRecordingReader(read_options(given))
    batches = [batch for each in reader.partitions() for batch in reader.read(each)]
    return pa.Table.from_batches(batches, schema=TABLES[table]).to_pylist()


def application_records():
    """Return what the application recorded per id: start, stop, messages, maximum length."""
    found = {}
    for line in (GOLDEN / "archive" / "recordings.txt").read_text().splitlines():
        fields = {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)", line)}
        found.setdefault(fields["recording"], {}).update(fields)
    return found


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("archive"))


def test_golden_recordings_have_the_messages_that_were_published(golden):
    rows = read(golden, "messages", payload="true")
    for recording, seen in application_records().items():
        own_rows = [row for row in rows if row["recording_id"] == recording]
        count = seen["messages"]
        sent = [message(index, seen["maxLen"]).tobytes() for index in range(count)]
        # Detached segments no longer belong to the recording.
        sent = sent[-len(own_rows) :] if recording == DETACHED else sent
        assert [row["payload"] for row in own_rows] == sent
        assert [row["crc32"] for row in own_rows] == [zlib.crc32(each) for each in sent]
        assert [row["length"] for row in own_rows] == [len(each) for each in sent]
    assert len([row for row in rows if row["recording_id"] == DETACHED]) > 200


def test_golden_recordings_end_where_the_application_stopped(golden):
    segments = read(golden, "segments")
    for recording, seen in application_records().items():
        of_it = [row for row in segments if row["recording_id"] == recording]
        assert of_it[0]["start_position"] == seen["start"]
        assert max(row["end_position"] for row in of_it) == seen["stop"]
    assert {row["problem"] for row in segments} == {""}
    assert {row["broken_messages"] for row in segments} == {0}
    (batch,) = [recordings(golden)]
    assert [row["segment_files"] for row in batch.to_pylist()] == [3, 4, 5]
    assert [row["problem"] for row in batch.to_pylist()] == [""] * 3


def test_golden_frames_equal_those_on_the_wire(golden):
    """The recording of the network stream has the frames of the capture."""
    capture = find_captures([f"x={GOLDEN / 'archive' / 'control.pcap'}.xz"])
    names = ("term_id", "term_offset", "session_id", "flags", "frame_length", "reserved_value",
             "payload_crc32", "frame_type")  # fmt: skip
    passed = set()
    for batch in local_frames(capture, ReadSettings(keeps_crc32=True)).batches():
        for row in batch.to_pylist():
            if row["stream_id"] == 2002 and row["frame_type"] in ("DATA", "PAD"):
                passed.add(tuple(row[name] for name in names))
    recorded = read(golden, "frames", recordings="1")
    assert {tuple(row[name] for name in names) for row in recorded} == passed
    assert len(recorded) == len(passed) > 400
    positions = [row["position"] for row in recorded]
    assert positions == sorted(positions)


@pytest.fixture
def archive(tmp_path):
    (tmp_path / "archive").mkdir()
    return tmp_path / "archive"


def own_archive(archive, lengths=(100,) * 40, start=0, stop=None, **changed):
    """Write an archive of one recording; return its frames and the end of its data."""
    frames = own.stream(lengths, start, checksummed=changed.pop("checksummed", False))
    end = own.write(archive, 0, frames, start)
    with CatalogWriter.create(archive) as catalog:
        catalog.add(own.descriptor(0, start, end if stop is None else stop, **changed))
    return frames, end


@pytest.mark.parametrize("checksum", [None, CRC_32C])
def test_reads_recordings_of_our_archive(tmp_path, archive, checksum):
    stream = OwnStream(tmp_path)
    recording = own_image.session(stream, archive, WriteOptions(checksum=checksum))
    sent = own_image.messages(60)
    stream.write(*sent)
    own_image.record(recording)
    recording.stop()
    with CatalogWriter.create(archive) as catalog:
        catalog.add(own_image.described(stop=recording.position))
    rows = read(archive, "messages", payload="true")
    assert [row["payload"] for row in rows] == [bytes(each) for each in sent]
    frames = [row for row in read(archive, "frames") if row["frame_type"] == "DATA"]
    assert {row["checksum"] for row in frames} == {checksum.name if checksum else None}
    sessions = {row["session_id"] for row in frames}
    assert sessions == ({None} if checksum else {own_image.SESSION_ID})


def test_fragments_that_are_separated_by_padding_are_no_message(archive):
    parts = [(own.payload(index, 96), flags) for index, flags in enumerate((0x80, 0, 0x40, 0xC0))]
    frames = []
    for payload, flags in parts:
        whole = bytearray(own.frame(len(frames) * 128, payload))
        whole[5] = flags
        frames.append((len(frames) * 128, bytes(whole)))
    frames[1] = (128, own.frame(128, bytes(96), is_pad=True))
    end = own.write(archive, 0, frames)
    with CatalogWriter.create(archive) as catalog:
        catalog.add(own.descriptor(0, 0, end))
    rows = read(archive, "messages")
    assert [(row["position"], row["payload"]) for row in rows] == [(384, None)]
    (segment,) = read(archive, "segments")
    assert (segment["messages"], segment["broken_messages"]) == (1, 1)
    assert (segment["data_frames"], segment["pad_frames"]) == (3, 1)


def test_an_active_recording_ends_without_a_problem(archive):
    frames, end = own_archive(archive, stop=-1)
    (row,) = recordings(archive).to_pylist()
    assert (row["stop_position"], row["stop_timestamp_ms"], row["problem"]) == (None, None, "")
    (segment,) = read(archive, "segments")
    assert (segment["end_position"], segment["problem"]) == (end, "")
    assert segment["messages"] == len(frames)


def test_missing_and_damaged_segments_are_reported_and_the_rest_is_read(archive):
    frames, end = own_archive(archive, (1000,) * 200)
    first, second = sorted(archive.glob("0-*.rec"), key=lambda path: len(path.name))
    content = bytearray(first.read_bytes())
    content[frames[7][0] + 6] = 9
    first.write_bytes(content)
    rows = read(archive, "segments")
    assert rows[0]["problem"] == (f"at {frames[7][0]} a frame is neither DATA nor PAD")
    assert (rows[0]["messages"], rows[1]["problem"]) == (7, "")
    assert len(read(archive, "frames")) == 7 + rows[1]["data_frames"] + rows[1]["pad_frames"]
    content[frames[7][0] + 6] = 1
    first.write_bytes(content[: frames[9][0] + 40])
    assert read(archive, "segments")[0]["problem"] == (
        f"the file ends at {frames[9][0]}, before {own.SEGMENT}"
    )
    content[frames[5][0] : frames[6][0]] = bytes(frames[6][0] - frames[5][0])
    first.write_bytes(content)
    assert read(archive, "segments")[0]["problem"] == (
        f"there are no more frames at {frames[5][0]}, before {own.SEGMENT}"
    )
    parts = segment_parts(archive)
    second.unlink()
    assert SegmentReader(parts[1]).summary().to_pylist()[0]["problem"] == (
        "cannot be read: No such file or directory"
    )
    problem = recordings(archive).to_pylist()[0]["problem"]
    assert problem == f"no segment file for position {own.SEGMENT}"
    assert end > own.SEGMENT


def test_a_stop_position_within_a_frame_is_reported(archive):
    frames, _ = own_archive(archive, stop=64)
    (segment,) = read(archive, "segments")
    end = frames[1][0]
    assert segment["problem"] == f"the last frame extends beyond the stop position, to {end}"


def test_a_damaged_catalog_has_a_row_for_the_damage(archive):
    own_archive(archive)
    path = archive / "archive.catalog"
    content = bytearray(path.read_bytes())
    content += bytes(-len(content) % 64) + b"\x01\x00\x00\x00" + bytes(60)
    length = int.from_bytes(content[32:36], "little")
    content[64 + length : 68 + length] = b"\x01\x00\x00\x00"
    path.write_bytes(content)
    first, second = recordings(archive).to_pylist()
    assert (first["recording_id"], first["problem"]) == (0, "")
    assert second["recording_id"] is None
    assert "has the invalid length 1" in second["problem"]
    assert len(read(archive, "messages")) == 40


def test_small_windows_and_batches_give_the_same_rows(golden, monkeypatch):
    tables = ("frames", "messages", "segments")
    expected = [read(golden, table, payload="true") for table in tables]
    monkeypatch.setattr(segment_reader, "WINDOW_LENGTH", 2_048)
    monkeypatch.setattr(segment_reader, "ROWS_PER_WINDOW", 3)
    monkeypatch.setattr(segment_reader, "PAYLOAD_BYTES_PER_BATCH", 1)
    assert [read(golden, table, payload="true") for table in tables] == expected


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "expected a path"),
        ({"path": "gone"}, "gone: no such file or folder"),
        ({"path": ".", "table": "x"}, "table 'x'"),
        ({"path": ".", "ports": "1"}, "option 'ports'"),
        ({"path": ".", "recordings": "1,-2"}, "'-2': expected a recording id"),
        ({"path": ".", "payload": "yes"}, "'yes': expected true or false"),
    ],
)
def test_an_invalid_option_is_explained(options, text):
    with pytest.raises(RunTableError, match=text):
        read_options(options)


def test_a_folder_without_a_catalog_is_refused(tmp_path):
    for table in TABLES:
        with pytest.raises(RunTableError, match=r"archive\.catalog: No such file"):
            read(tmp_path, table)
