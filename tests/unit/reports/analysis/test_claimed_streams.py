"""A capture may have a new stream in each datagram. Streams are limited, and take little memory."""

import struct
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions
from windtunnel.reports.analysis.output.summary import summary_lines
from windtunnel.reports.analysis.reading.stream_events import trim

FEW, MANY = 200, 1_200
RESIDENT_PER_STREAM_MAX_KIB, VIRTUAL_PER_STREAM_MAX_KIB = 48, 96
MEASURE = """
import sys
from windtunnel.reports.analysis.analyze import analyze
assert analyze([sys.argv[1]]).flows.num_rows == int(sys.argv[2])
text = open("/proc/self/status").read()
print(*(line.split()[1] for line in text.splitlines() if line[:6] in ("VmHWM:", "VmPeak")))
"""


def write_claims(path, frames_of):
    """Write a capture with a number of consecutive DATA frames for each session."""
    records = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)]
    for session, frames in frames_of.items():
        for number in range(frames):
            frame = struct.pack("<iBBH4iq", 32, 0, 0xC0, 1, number * 32, session, 1001, 5, 0)
            udp = struct.pack(">4H", 40_000, 24_325, 8 + len(frame), 0)
            ends = bytes([10, 0, 0, 1, 10, 0, 0, 2])
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(frame), 0, 0, 64, 17, 0) + ends
            packet = bytes(12) + b"\x08\x00" + ip + udp + frame
            times = 1_760_000_000, abs(session) * 1_000 + number
            records.append(struct.pack("<4I", *times, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(records))


def peaks_kib(path, streams):
    """Return the peak of virtual and of resident memory of an analysis."""
    write_claims(path, dict.fromkeys(range(streams), 1))
    command = [sys.executable, "-c", MEASURE, str(path), str(streams)]
    completed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    virtual, resident = map(int, completed.stdout.split())
    return virtual, resident


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_claimed_stream_takes_little_memory(tmp_path):
    few = peaks_kib(tmp_path / "few.pcap", FEW)
    many = peaks_kib(tmp_path / "many.pcap", MANY)
    virtual, resident = (
        (large - small) / (MANY - FEW) for small, large in zip(few, many, strict=True)
    )
    assert resident < RESIDENT_PER_STREAM_MAX_KIB
    assert virtual < VIRTUAL_PER_STREAM_MAX_KIB


FRAMES_OF = {1: 3, 2: 1, 3: 5, 4: 1, 5: 2}
KEPT = {1, 3, 5}
LEFT_OUT = (
    "found 5 streams, expected at most 3: the 2 streams with the fewest frames were left out, with "
    "2 frames in total; raise the limit with --max-streams, analyse fewer files at a time, or only "
    "the UDP ports of interest"
)


def assert_is_limited(tables):
    """Assert that exactly the three streams with the most frames were analysed."""
    assert set(tables.streams["session_id"].to_pylist()) == KEPT
    assert set(tables.flows["session_id"].to_pylist()) == KEPT
    frames = Counter()
    for row in tables.flows.to_pylist():
        frames[row["session_id"]] += row["first_frames"]
    assert dict(frames) == {session: FRAMES_OF[session] for session in KEPT}
    assert tables.problems == [LEFT_OUT]
    assert tables.is_partial
    assert summary_lines(tables)[-1] == f"PARTIAL: {LEFT_OUT}"


def test_streams_beyond_the_limit_are_left_out_and_reported(tmp_path):
    write_claims(tmp_path / "claims.pcap", FRAMES_OF)
    assert_is_limited(
        analyze([str(tmp_path / "claims.pcap")], options=AnalysisOptions(max_streams=3))
    )


def test_of_streams_with_equal_frames_the_lowest_ids_are_kept(tmp_path):
    write_claims(tmp_path / "claims.pcap", {5: 1, -3: 1, 4: 1})
    tables = analyze([str(tmp_path / "claims.pcap")], options=AnalysisOptions(max_streams=2))
    assert set(tables.flows["session_id"].to_pylist()) == {-3, 4}


def test_as_many_streams_as_expected_are_no_problem(tmp_path):
    write_claims(tmp_path / "claims.pcap", FRAMES_OF)
    options = AnalysisOptions(max_streams=len(FRAMES_OF))
    tables = analyze([str(tmp_path / "claims.pcap")], options=options)
    assert tables.problems == []
    assert set(tables.flows["session_id"].to_pylist()) == set(FRAMES_OF)


def test_an_array_with_few_used_entries_is_replaced_by_a_copy():
    array = np.arange(1_000)
    kept = trim(array, 3)
    assert kept.tolist() == [0, 1, 2]
    assert kept.base is None
    assert trim(array, 600) is array
