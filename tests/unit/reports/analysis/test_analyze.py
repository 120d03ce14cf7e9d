"""The analysis of golden captures agrees with Aeron's counters, loss reports and applications."""

import re

import pyarrow.parquet as pq
import pytest

from tests.golden.reader import GOLDEN, seen_by
from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel import reports
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.summary import summary_lines
from windtunnel.reports.analysis.output.tables import write_tables
from windtunnel.reports.analysis.reading.capture_files import CapturePathError

SETS = {
    "clean": ("cnc-clean", "clean"),
    "loss-reliable": ("loss-reliable", "reliable"),
    "loss-concurrent-mtu8k": ("cnc-loss-concurrent-mtu8k", "concurrent"),
    "mdc-dynamic": ("mdc-dynamic", "mdc-dynamic"),
    "one-message": ("cnc-one-message", "one-message"),
    "loss-unreliable": ("cnc-loss-unreliable", None),
    "java-cubic-loss": ("java-cubic-loss", "java"),
}
"""By set: the folder of its counters, and its loss report, which lists what receivers requested. An
unreliable receiver requests nothing, so the wire shows nothing of its losses."""
NAKS_RECEIVED, RETRANSMITTED_BYTES = 6, 36


def counter(folder: str, counter_id: int) -> int:
    text = (GOLDEN / folder / "aeron-stat.txt").read_text()
    found = re.search(rf"^\s*{counter_id}:\s+([\d,]+) - ", text, re.M)
    return int(found[1].replace(",", ""))


def reported_losses(name: str | None) -> tuple[int, int]:
    """Return (observations, bytes) of a loss report with one entry."""
    text = "" if name is None else (GOLDEN / "loss-report" / f"{name}.txt").read_text()
    found = re.search(r"^(\d+),(\d+),", text, re.M)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def golden(golden_set, name="capture.pcap"):
    return analyze([f"x={GOLDEN / golden_set / name}.xz"])


@pytest.mark.parametrize("golden_set", SETS)
def test_streams_gaps_and_retransmits_equal_those_of_aeron(golden_set):
    counters, report = SETS[golden_set]
    result, publisher = golden(golden_set), seen_by(golden_set, "pub.txt")
    assert result.problems == []
    (stream,), (flow,) = result.streams.to_pylist(), result.flows.to_pylist()
    assert stream["session_id"] == publisher["session"]
    assert stream["initial_term_id"] == publisher["initialTermId"]
    assert (stream["term_length"], stream["mtu"]) == (publisher["termLength"], publisher["mtu"])
    assert stream["end_position"] == flow["high_position"] == publisher["position"]
    assert flow["first_bytes"] == publisher["position"]
    assert stream["term_rotations"] == (publisher["position"] - 1) // publisher["termLength"]
    assert flow["naks"] == stream["naks"] == counter(counters, NAKS_RECEIVED)
    assert flow["resent_bytes"] == counter(counters, RETRANSMITTED_BYTES)
    assert flow["duplicate_frames"] == flow["reordered_frames"] == flow["unmatched_control"] == 0
    gaps = result.gaps.to_pylist()
    assert (len(gaps), sum(gap["length"] for gap in gaps)) == reported_losses(report)
    assert {gap["outcome"] for gap in gaps} <= {"repaired"}
    assert {gap["cause"] for gap in gaps} <= {"behind capture"}
    # Only the receiver, behind this point, knows when a gap was repaired.
    assert all(gap["time_to_repair_ns"] is None for gap in gaps)
    assert all(0 <= gap["time_to_resend_ns"] < 10**9 for gap in gaps)


@pytest.mark.parametrize("golden_set", [each for each in SETS if each != "loss-unreliable"])
def test_messages_equal_those_that_the_subscriber_received(golden_set):
    (flow,) = golden(golden_set).flows.to_pylist()
    assert flow["messages"] == seen_by(golden_set, "sub.txt")["messages"]


def test_without_setup_positions_are_derived_from_full_terms():
    publisher = seen_by("java-cubic-loss", "pub.txt")
    result = golden("java-cubic-loss", "data.pcap")
    (stream,), (flow,) = result.streams.to_pylist(), result.flows.to_pylist()
    assert (stream["position_basis"], stream["term_length"]) == ("terms", publisher["termLength"])
    assert flow["high_position"] == publisher["position"]
    assert flow["messages"] == seen_by("java-cubic-loss", "sub.txt")["messages"]
    # This capture has no NAK: the numbers of the packets show that they are retransmissions.
    assert flow["resent_bytes"] == counter("java-cubic-loss", RETRANSMITTED_BYTES)
    assert flow["duplicate_bytes"] == flow["naks"] == 0
    assert result.problems == []


def made_tables(tmp_path, *payloads, **settings):
    path = tmp_path / "made.pcap"
    packets = [
        each if isinstance(each, made.Packet) else packet(START_NS + index * 1000, each)
        for index, each in enumerate(payloads)
    ]
    path.write_bytes(made.pcap(packets))
    return analyze([str(path)], **settings)


def to_sender(time_ns, payload):
    return packet(time_ns, payload, source=made.B, destination=made.A, ports=(24_325, 40_000))


def test_interleaved_sessions_are_distinguished_across_the_wrap_of_term_ids(tmp_path):
    last = 2**31 - 1
    payloads = []
    for session in (1, 2):
        payloads.append(made.setup(65_504, session=session, initial=last, term=last))
    for offset in range(0, 320, 32):
        for session, first in ((1, last), (2, last)):
            term = first if offset == 0 else -(2**31)
            at = 65_504 if offset == 0 else offset - 32
            payloads.append(made.data(at, b"", session=session, term=term))
    result = made_tables(tmp_path, *payloads)
    assert [row["session_id"] for row in result.streams.to_pylist()] == [1, 2]
    for row in result.streams.to_pylist():
        assert (row["first_position"], row["end_position"]) == (65_504, 65_536 + 288)
        assert (row["term_count"], row["term_rotations"], row["data_frames"]) == (2, 1, 10)
    assert result.gaps.num_rows == 0


def test_a_late_frame_of_the_previous_term_does_not_change_later_positions(tmp_path):
    frames = [made.data(65_472, b"", term=5), made.data(0, b"", term=6), made.data(32, b"", term=6)]
    late = made.data(65_504, b"", term=5)
    result = made_tables(tmp_path, made.setup(), *frames, late, made.data(64, b"", term=6))
    (flow,) = result.flows.to_pylist()
    assert (flow["reordered_frames"], flow["first_frames"], flow["duplicate_frames"]) == (1, 4, 0)
    assert flow["high_position"] == 65_536 + 96
    (gap,) = result.gaps.to_pylist()
    assert (gap["position"], gap["length"], gap["outcome"]) == (65_504, 32, "reordered")
    assert gap["time_to_repair_ns"] == flow["reordered_ns_max"] == 2_000


def test_loss_before_and_behind_the_capture_are_distinguished(tmp_path):
    at = START_NS
    result = made_tables(
        tmp_path,
        made.setup(),
        made.data(0, b""),
        made.data(64, b""),
        to_sender(at + 10_000, made.nak(32, 32)),
        packet(at + 15_000, made.data(32, b"")),
        to_sender(at + 20_000, made.nak(0, 32)),
        packet(at + 30_000, made.data(0, b"")),
    )
    before, behind = result.gaps.to_pylist()
    assert (before["position"], before["cause"], before["nak_count"]) == (32, "before capture", 1)
    assert before["time_to_repair_ns"] == 15_000 - 2_000
    assert (behind["position"], behind["cause"], behind["nak_count"]) == (0, "behind capture", 1)
    assert (behind["time_to_repair_ns"], behind["time_to_resend_ns"]) == (None, 10_000)
    (flow,) = result.flows.to_pylist()
    assert (flow["resent_frames"], flow["messages"]) == (2, 3)


def test_gaps_that_a_receiver_skipped_and_gaps_that_stay_open(tmp_path):
    result = made_tables(
        tmp_path,
        made.setup(),
        made.data(0, b""),
        made.data(64, b""),
        to_sender(START_NS + 9_000, made.sm(96, 4096)),
        packet(START_NS + 10_000, made.data(128, b"")),
    )
    assert [gap["outcome"] for gap in result.gaps.to_pylist()] == ["passed", "open"]
    assert [gap["time_to_repair_ns"] for gap in result.gaps.to_pylist()] == [None, None]
    text = "\n".join(summary_lines(result))
    assert "1 gap skipped by the receiver (32 bytes)" in text
    assert "1 gap not repaired (32 bytes)" in text


def test_copies_to_two_destinations_are_no_retransmissions(tmp_path):
    payloads = [
        packet(START_NS + index, made.data(index * 32, b""), destination=f"10.0.1.{end}")
        for index in range(5)
        for end in (1, 2)
    ]
    result = made_tables(tmp_path, made.setup(), *payloads)
    flows = result.flows.to_pylist()
    assert [flow["first_frames"] for flow in flows if flow["first_frames"]] == [5, 5]
    assert sum(flow["duplicate_frames"] for flow in flows) == 0
    (stream,) = result.streams.to_pylist()
    assert stream["data_frames"] == 10


def test_frame_sizes_padding_heartbeats_and_the_end_are_counted(tmp_path):
    result = made_tables(
        tmp_path,
        made.data(0, bytes(32)) + made.data(64, bytes(33)) + made.pad(160, 352),
        made.heartbeat(512),
        made.heartbeat(512, flags=0xE0),
    )
    (stream,) = result.streams.to_pylist()
    assert stream["frame_sizes"] == [
        {"at_most_bytes": 64, "frames": 1}, {"at_most_bytes": 128, "frames": 1},
    ]  # fmt: skip
    assert (stream["pad_frames"], stream["padding_bytes"]) == (1, 352)
    assert stream["padding_share"] == pytest.approx(352 / 512)
    assert (stream["heartbeats"], stream["has_ended"], stream["is_revoked"]) == (2, True, False)
    assert stream["position_basis"] == "one term"


def test_the_result_is_partial_if_the_term_length_is_guessed(tmp_path):
    result = made_tables(tmp_path, made.data(70_016, b"", term=5), made.data(0, b"", term=6))
    assert result.is_partial
    assert "the term length is a guess" in result.problems[0]
    result = made_tables(tmp_path, made.setup(), made.setup(initial=4), made.data(0, b""))
    assert "contradict each other" in result.problems[0]


def test_writing_the_tables_again_replaces_them(tmp_path):
    result = golden("loss-reliable")
    folder = tmp_path / "tables"
    for _ in range(2):
        write_tables(result, folder)
        stored = pq.read_table(folder / "gaps")
        assert stored.num_rows == result.gaps.num_rows
    write_tables(golden("one-message"), folder)
    assert pq.read_table(folder / "streams").num_rows == 1
    assert sorted(each.name for each in folder.iterdir()) == [
        "captures", "flows", "gaps", "images", "links", "messages", "positions", "stalls",
        "streams", "windows",
    ]  # fmt: skip


def test_the_package_offers_the_analysis(tmp_path):
    result = reports.analyze([str(GOLDEN / "one-message" / "capture.pcap.xz")], ports=[24_332])
    assert result.streams.num_rows == 1
    with pytest.raises(CapturePathError, match="no such file"):
        reports.analyze([str(tmp_path / "gone.pcap")])


def test_summary_lines_of_a_golden_capture():
    line, total = summary_lines(golden("loss-reliable"))
    assert line.startswith(
        "stream 1001 session 77 at x to 127.0.0.1 port 24326: 600 messages to position "
        "1,286,176; 1,205 frames in order; no gap seen here; the receiver requested 74,848 bytes "
        "in 57 gaps, which had been captured here, up to 11,584 of them refused beyond the "
        "receiver window; 57 gaps retransmitted, "
    )
    assert line.endswith(
        " (76,256 bytes) retransmitted; 2 flow control stalls, up to 12.2 ms, 1 of them behind a "
        "gap"
    )
    assert total == "1,474 frames in 1,379 packets"


def test_names_of_captures_may_have_any_bytes(tmp_path):
    folder = tmp_path / "run\udcff"
    folder.mkdir()
    (folder / "a\udcfe.pcap.xz").symlink_to(GOLDEN / "one-message" / "capture.pcap.xz")
    result = analyze([str(folder)])
    assert result.captures.column("vantage_point").to_pylist() == [r"a\udcfe"]
    assert result.captures.column("file").to_pylist()[0].endswith(r"run\udcff/a\udcfe.pcap.xz")
    assert summary_lines(result)
