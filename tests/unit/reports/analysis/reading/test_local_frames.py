"""The local engine reads every frame of the golden captures as a naive parser does."""

import gzip
import lzma
import struct

import pyarrow as pa
import pytest

from tests.golden.reader import GOLDEN, datagrams, load
from tests.naive.wire_frames import frames as naive_frames
from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel.reports.analysis.engines.local.local_engine import local_frames
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.frame_table import address_text
from windtunnel.reports.analysis.reading.parts import ReadSettings
from windtunnel.reports.analysis.reading.schema import FRAME_COLUMNS, FRAMES

CAPTURES = [
    (path.parent.name, path.name.removesuffix(".xz")) for path in GOLDEN.glob("*/*.pcap.xz")
]
CELL = 1 << 17


def frames_of(path, **settings) -> pa.Table:
    return local_frames(find_captures([str(path)]), ReadSettings(**settings)).table()


def rows_of(tmp_path, *packets, **settings):
    path = tmp_path / "made.pcap"
    path.write_bytes(made.pcap(packets))
    return frames_of(path, **settings).to_pylist()


def test_there_are_golden_captures():
    assert len(CAPTURES) == 10


@pytest.mark.full(keep=5)
@pytest.mark.parametrize(("golden_set", "name"), CAPTURES)
def test_golden_frames_equal_those_of_a_naive_parser(golden_set, name):
    table = frames_of(GOLDEN / golden_set / f"{name}.xz")
    expected = [
        {
            "source_port": datagram.source_port,
            "destination_port": datagram.destination_port,
            "datagram_length": len(datagram.payload),
            "ip_identification": datagram.identification,
            **frame,
        }
        for datagram in datagrams(golden_set, name)
        for frame in naive_frames(datagram.payload)
    ]
    excluded = {
        "vantage_point", "file_index", "record_at", "interface", "time_ns", "source_address",
        "destination_address",
    }  # fmt: skip
    frames = [
        {key: value for key, value in row.items() if value is not None and key not in excluded}
        for row in table.to_pylist()
    ]
    assert frames == expected
    assert set(table["source_address"].to_pylist()) == {"127.0.0.1"}
    assert set(table["vantage_point"].to_pylist()) == {name.removesuffix(".pcap")}


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("golden_set", "name"), CAPTURES)
def test_any_number_of_parts_gives_the_same_table(golden_set, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(load(golden_set, name))
    whole = frames_of(path)
    packed = frames_of(GOLDEN / golden_set / f"{name}.xz")
    assert whole.equals(packed)
    for parts in (1, 3, 50):
        assert frames_of(path, parts=parts, cell_length=CELL).equals(whole)


def test_every_column_has_the_documented_type_and_a_description(tmp_path):
    path = tmp_path / "made.pcap"
    path.write_bytes(made.pcap([packet(START_NS, made.setup())]))
    table = frames_of(path)
    assert table.schema == FRAMES
    assert [column.name for column in FRAME_COLUMNS] == FRAMES.names
    assert all(column.description for column in FRAME_COLUMNS)


def test_reads_the_fields_of_rare_frames(tmp_path):
    self_v4 = bytes.fromhex((GOLDEN / "resolution" / "names-v4.hex").read_text())
    rows = rows_of(
        tmp_path,
        packet(START_NS, made.sm(64, 4096, tag=-5)),
        packet(START_NS, made.rttm(11, delta=3)),
        packet(START_NS, made.error("not wanted é")),
        packet(START_NS, made.response_setup(-9)),
        packet(START_NS, self_v4),
    )
    status, rtt, refused, response, names = rows
    assert (status["group_tag"], status["receiver_id"], status["window_bytes"]) == (-5, 9, 4096)
    assert (rtt["echo_timestamp_ns"], rtt["reception_delta_ns"], rtt["term_id"]) == (11, 3, None)
    assert (refused["error_text"], refused["error_code"]) == ("not wanted é", 13)
    assert refused["group_tag"] is None
    assert response["response_session_id"] == -9
    assert names["session_id"] is None
    assert [(each["name"], each["address"], each["port"]) for each in names["resolutions"]] == [
        ("tester", "127.0.0.1", 40654),
        ("other", "fd00::9", 7),
    ]


def test_truncated_frames_have_no_payload_hash_and_no_error_text(tmp_path):
    rows = rows_of(
        tmp_path,
        packet(START_NS, made.data(0, bytes(200)), snap=96),
        packet(START_NS, made.error("a long text of a refusal"), snap=86),
        packet(START_NS, made.data(0, bytes(200))),
    )
    assert [row["payload_hash"] is None for row in rows] == [True, True, False]
    assert rows[1]["error_text"] is None
    assert (
        rows_of(tmp_path, packet(START_NS, made.data(0, b"x")), keeps_hash=False)[0]["payload_hash"]
        is None
    )


def test_reads_more_addresses_than_a_batch_holds(tmp_path):
    rows = rows_of(
        tmp_path,
        *(
            packet(START_NS, made.nak(0, 32), source=f"10.1.{i >> 8}.{i & 255}")
            for i in range(5_000)
        ),
    )
    assert [row["source_address"] for row in rows] == [
        f"10.1.{i >> 8}.{i & 255}" for i in range(5_000)
    ]


def test_address_texts():
    assert address_text(0, 0xFFFF << 32 | 0x0A000001) == "10.0.0.1"
    assert address_text(-(3 << 56), 2) == "fd00::2"


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_reads_compressed_files_and_the_intact_part_of_truncated_ones(kind, tmp_path):
    plain = made.pcap(made.stream_packets(3_000, payload=bytes(range(256)) * 4))
    packed = {"gz": gzip.compress, "xz": lzma.compress, "zst": _zstd}[kind](plain)
    path = tmp_path / f"made.pcap.{kind}"
    path.write_bytes(packed)
    assert len(frames_of(path)) == 3_000
    path.write_bytes(packed[: len(packed) // 2])
    reading = local_frames(find_captures([str(path)]), ReadSettings())
    count = len(reading.table())
    assert count < 3_000
    assert "cannot be read after byte" in reading.captures["problem"][0].as_py()


def test_reads_a_zstd_file_that_begins_with_a_skippable_frame(tmp_path):
    plain = made.pcap(made.stream_packets(10))
    path = tmp_path / "made.pcap.zst"
    for magic in (0x184D2A50, 0x184D2A5F):
        path.write_bytes(struct.pack("<II", magic, 4) + bytes(4) + _zstd(plain))
        assert len(frames_of(path)) == 10


def _zstd(plain: bytes) -> bytes:
    return pa.Codec("zstd").compress(plain, asbytes=True)


def test_reports_the_problem_of_each_file(tmp_path):
    names = {
        "empty.pcap": b"",
        "text.pcap": b"no capture at all, sorry",
        "good.pcap": made.pcap([]),
    }
    for name, content in names.items():
        (tmp_path / name).write_bytes(content)
    reading = local_frames(find_captures([str(tmp_path)]), ReadSettings())
    assert reading.table().num_rows == 0
    problems = {row["vantage_point"]: row["problem"] for row in reading.captures.to_pylist()}
    assert "is empty" in problems["empty"]
    assert "begins with 6e6f2063" in problems["text"]
    assert problems["good"] == ""
