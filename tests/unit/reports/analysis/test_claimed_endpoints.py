"""A capture may have a new destination or receiver in each datagram. Both are limited."""

import os
import subprocess
import sys

import pytest

from tests.stand_ins import synthetic_capture as made
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions
from windtunnel.reports.analysis.streams.stream_limit import DESTINATIONS_MAX

LIMITED = AnalysisOptions(max_streams=5, max_destinations=2)
SESSIONS = (77, 78, 79)
FRAMES_TO = {"10.0.0.2": 3, "10.0.0.3": 4, "10.0.0.4": 2, "10.0.0.5": 1}
KEPT = {"10.0.0.2 24325", "10.0.0.3 24325"}
GROUP = "224.0.1.1"
FEWER = "analyse fewer files at a time, or only the UDP ports of interest"
RAISE = f"raise the limits with --max-destinations and --max-streams, {FEWER}"
FEW, MANY = DESTINATIONS_MAX + 1, 4_000
ENVIRONMENT = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Arrow's own pool keeps memory that it no longer needs, and how much depends on the machine."""
MEASURE = """
import sys, time
from windtunnel.reports.analysis.analyze import analyze
analyze([sys.argv[1]])
began_s = time.process_time()
tables = analyze([sys.argv[1]])
used_s = time.process_time() - began_s
assert tables.flows.num_rows == int(sys.argv[2]), tables.flows.num_rows
peak, = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak.split()[1], round(1_000 * used_s))
"""


class Capture:
    """Packets of one capture, a microsecond apart."""

    def __init__(self):
        self.packets = []

    def add(self, payload, source=made.A, destination=made.B, ports=(40_000, 24_325)):
        time_ns = made.START_NS + 1_000 * len(self.packets)
        ends = {"source": source, "destination": destination, "ports": ports}
        self.packets.append(made.packet(time_ns, payload, **ends))

    def send(self, destination, frames, session=77):
        for number in range(frames):
            self.add(made.data(32 * number, session=session), destination=destination)

    def report(self, receiver, session=77, reports=1, position=0):
        for _ in range(reports):
            payload = made.sm(position, 4_096, session=session)
            self.add(payload, receiver, made.A, (24_325, 40_000))

    def write(self, path):
        path.write_bytes(made.pcap(self.packets))
        return path


def write_endpoints(folder):
    """Write captures of two vantage points: streams with four destinations each, whose receivers
    report, and a group with receivers.
    """
    for name in ("near", "far"):
        capture = Capture()
        for session in SESSIONS:
            for destination, frames in FRAMES_TO.items():
                capture.send(destination, frames, session)
                capture.report(destination, session)
        capture.send(GROUP, 5, session=80)
        for number in range(4):
            capture.report(f"10.0.1.{number}", 80, reports=1 + number, position=32 * number)
        yield capture.write(folder / f"{name}.pcap")


def test_destinations_beyond_the_limit_are_left_out_and_reported(tmp_path):
    capture = Capture()
    for destination, frames in FRAMES_TO.items():
        capture.send(destination, frames)
        capture.report(destination)
    path = capture.write(tmp_path / "claims.pcap")
    tables = analyze([str(path)], options=AnalysisOptions(max_destinations=2))
    assert {row["destination"]: row["first_frames"] for row in tables.flows.to_pylist()} == {
        "10.0.0.2 24325": 3, "10.0.0.3 24325": 4,
    }  # fmt: skip
    # A status message of a receiver at another destination belongs to no flow, and is expected.
    assert tables.flows["status_messages"].to_pylist() == [1, 1]
    assert tables.flows["unmatched_control"].to_pylist() == [0, 0]
    (stream,) = tables.streams.to_pylist()
    assert set(stream["destinations"]) == KEPT
    assert (stream["data_frames"], stream["status_messages"]) == (7, 2)
    assert tables.problems == [
        "found 4 destinations of streams, expected at most 2 of one stream and 16,384 in total: "
        f"the 2 destinations with the fewest frames were left out, with 3 frames in total; {RAISE}"
    ]


def test_a_status_message_of_a_destination_that_was_left_out_is_not_counted_for_another(tmp_path):
    capture = Capture()
    for destination in ("10.0.0.2", "10.0.0.3"):
        capture.send(destination, 3 if destination == "10.0.0.2" else 1)
        capture.report(destination)
    path = capture.write(tmp_path / "claims.pcap")
    tables = analyze([str(path)], options=AnalysisOptions(max_destinations=1))
    assert tables.flows["status_messages"].to_pylist() == [1]


def test_receivers_beyond_the_limit_are_left_out_and_reported(tmp_path):
    capture = Capture()
    capture.send(GROUP, 5)
    for number in range(4):
        capture.report(f"10.0.1.{number}", reports=1 + number, position=32 * number)
    path = capture.write(tmp_path / "claims.pcap")
    tables = analyze([str(path)], options=AnalysisOptions(max_destinations=2))
    assert tables.flows["status_messages"].to_pylist() == [3 + 4]
    assert tables.streams["status_messages"].to_pylist() == [3 + 4]
    assert tables.problems == [
        "found 4 receivers of streams, expected at most 2 of one stream and 16,384 in total: "
        f"the 2 receivers with the fewest frames were left out, with 3 frames in total; {RAISE}"
    ]


def test_each_stream_keeps_its_first_destination(tmp_path):
    write = list(write_endpoints(tmp_path))
    tables = analyze([str(write[0])], options=LIMITED)
    assert {(row["session_id"], row["destination"]) for row in tables.flows.to_pylist()} == {
        (77, "10.0.0.2 24325"),
        (80, f"{GROUP} 24325"),
    } | {(session, "10.0.0.3 24325") for session in SESSIONS}
    assert [problem.partition(":")[0] for problem in tables.problems] == [
        f"found {count} {name} of streams, expected at most 2 of one stream and 5 in total"
        for count, name in ((13, "destinations"), (8, "receivers"))
    ]


def test_as_many_endpoints_as_expected_are_no_problem(tmp_path):
    options = AnalysisOptions(max_streams=16, max_destinations=4)
    paths = [str(path) for path in write_endpoints(tmp_path)]
    tables = analyze(paths, options=options)
    assert tables.problems == []
    assert tables.flows.num_rows == 2 * 13


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_claimed_destination_takes_little_memory_and_time(tmp_path):
    """Each has a gap that its receiver skips, which is searched for at every other destination."""
    few, many = Capture(), Capture()
    for capture, count in ((few, FEW), (many, MANY)):
        for number in range(count):
            destination = f"10.1.{number >> 8}.{number & 255}"
            capture.add(made.data(0), destination=destination)
            capture.add(made.data(64), destination=destination)
            capture.report(destination, position=96)
    peaks = []
    for name, capture in (("few", few), ("many", many)):
        path = capture.write(tmp_path / f"{name}.pcap")
        command = [sys.executable, "-c", MEASURE, str(path), str(DESTINATIONS_MAX)]
        completed = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=240, env=ENVIRONMENT
        )
        peaks.append(list(map(int, completed.stdout.split())))
    (few_kib, few_ms), (many_kib, many_ms) = peaks
    assert (many_kib - few_kib) / (MANY - FEW) < 4
    assert (many_ms - few_ms) / (MANY - FEW) < 0.5
