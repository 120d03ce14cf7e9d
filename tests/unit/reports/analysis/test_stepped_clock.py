"""An analysis says where the times of a capture go back, and leaves out the figures of time."""

import re

import pyarrow.parquet as pq
import pytest

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel.harness.dissect.capture.capture_clock import CLOCK_STEP_NS
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions
from windtunnel.reports.analysis.output.page import capture_page
from windtunnel.reports.analysis.output.summary import summary_lines
from windtunnel.reports.analysis.streams.frame_outcomes import FRAME_OUTCOMES

MS = 1_000_000
FILLED_AT = 6
"""Number of the packet that fills the gap."""


def to_sender(time_ns, payload):
    return packet(time_ns, payload, source=made.B, destination=made.A, ports=(24_325, 40_000))


def lossy_packets(step_ns=0, start_ns=START_NS):
    """Return a stream with a gap on either side of the capture and a late frame. From the packet
    that fills the first gap on, the clock is behind by `step_ns`.
    """
    sent = [
        packet(start_ns, made.setup()),
        packet(start_ns + 1 * MS, made.data(0, b"")),
        packet(start_ns + 2 * MS, made.data(64, b"")),
        to_sender(start_ns + 3 * MS, made.nak(32, 32)),
        to_sender(start_ns + 4 * MS, made.nak(0, 32)),
        packet(start_ns + 5 * MS, made.data(32, b"")),
        packet(start_ns + 6 * MS, made.data(0, b"")),
        packet(start_ns + 7 * MS, made.data(128, b"")),
        packet(start_ns + 8 * MS, made.data(96, b"")),
        to_sender(start_ns + 9 * MS, made.sm(160, 65_536)),
    ]
    behind = sent[FILLED_AT - 1 :]
    return sent[: FILLED_AT - 1] + [
        each._replace(time_ns=each.time_ns - step_ns) for each in behind
    ]


def write(folder, name, packets):
    path = folder / f"{name}.pcap"
    path.write_bytes(made.pcap(packets, nanos=True))
    return path


def analyzed(folder, step_ns):
    return analyze([str(write(folder, "pub", lossy_packets(step_ns)))])


def test_durations_are_left_out_if_the_clock_steps_back(tmp_path):
    steady, stepped = (analyzed(tmp_path, step_ns) for step_ns in (0, 3_600_000 * MS))
    assert steady.problems == []
    (problem,) = stepped.problems
    assert "1 packet is earlier than the one before, by up to 3,600 s, first packet 6:" in problem
    assert summary_lines(stepped)[-1] == f"PARTIAL: {problem}"
    (line,) = (each for each in summary_lines(stepped) if each.startswith("stream "))
    assert not re.search("-| median|late by|without a retransmit", line)
    assert "1 gap repaired;" in line
    (line,) = (each for each in summary_lines(steady) if each.startswith("stream "))
    assert re.search("1 gap repaired in 3 ms median.* 2 ms median", line)
    for name in ("time_to_repair_ns", "time_to_resend_ns"):
        assert stepped.gaps[name].null_count == stepped.gaps.num_rows == 3
        assert steady.gaps[name].null_count < 3
    assert stepped.flows["reordered_ns_max"].to_pylist() == [None]
    assert stepped.streams["frames_per_s"].to_pylist() == [None]
    assert stepped.windows["status_interval_max_ns"].to_pylist() == [None]
    # What does not follow from times is the same.
    for name in ("outcome", "cause", "position", "length"):
        assert stepped.gaps[name].equals(steady.gaps[name])
    assert "late by" not in capture_page(stepped)


@pytest.mark.parametrize("back_ns", [CLOCK_STEP_NS - 1, CLOCK_STEP_NS])
def test_times_in_the_order_of_receive_queues_are_no_step(tmp_path, back_ns):
    result = analyzed(tmp_path, back_ns + MS)
    assert bool(result.problems) == (back_ns == CLOCK_STEP_NS)
    assert all((each or 0) >= 0 for each in result.gaps["time_to_repair_ns"].to_pylist())


def test_a_step_between_two_files_of_a_vantage_point_is_one(tmp_path):
    packets = lossy_packets(1_000 * MS)
    for number, part in enumerate((packets[: FILLED_AT - 1], packets[FILLED_AT - 1 :])):
        write(tmp_path, f"pub{number}", part)
    result = analyze([f"pub={tmp_path}/pub*.pcap"])
    (problem,) = result.problems
    assert problem.startswith(
        f"{tmp_path}/pub1.pcap: 1 packet is earlier than the one before, by up to 999 ms, "
    )
    assert "first packet 1:" in problem
    other = analyze([f"pub={tmp_path}/pub0.pcap", f"sub={tmp_path}/pub1.pcap"])
    assert other.problems == []


def test_a_vantage_point_with_a_stepped_clock_has_no_links(tmp_path):
    write(tmp_path, "sub", lossy_packets(start_ns=START_NS + MS))
    write(tmp_path, "pub", lossy_packets())
    options = AnalysisOptions(outcomes_dir=tmp_path / "outcomes")
    assert analyze([str(tmp_path)], options=options).links.num_rows == 1
    write(tmp_path, "pub", lossy_packets(1_000 * MS))
    result = analyze([str(tmp_path)], options=options)
    assert result.links.num_rows == 0
    late = pq.read_table(tmp_path / "outcomes", schema=FRAME_OUTCOMES).to_pylist()
    assert {each["late_ns"] is None for each in late if each["vantage_point"] == "pub"} == {True}
    assert {each["late_ns"] is None for each in late if each["vantage_point"] == "sub"} == {False}
    by_point = dict(zip(*(result.gaps[name].to_pylist() for name in NAMES), strict=True))
    assert by_point == {"pub": None, "sub": by_point["sub"]}
    assert by_point["sub"] is not None


NAMES = ("vantage_point", "time_to_repair_ns")
