"""The memory of an analysis does not grow with the length of the capture."""

import json
import subprocess
import sys

import pytest

from windtunnel.reports.analysis.synthetic_traffic import write_capture

MEASURE = """
import json, resource, sys
from windtunnel.reports.analysis.engines.local import local_engine
from windtunnel.reports.analysis.analyze import analyze
local_engine.KEPT_BYTES_MAX = 1 << 20
tables = analyze([sys.argv[1]])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([peak, tables.flows["high_position"].to_pylist()]))
"""
SMALL, LARGE, FRAME_LENGTH = 150_000, 750_000, 64
GROWTH_MAX_KIB = 48 << 10
"""Of a capture that is 600,000 frames longer: 80 bytes each, far less than a row."""


def peak_kib(path, frames):
    write_capture(path, frames, FRAME_LENGTH)
    command = [sys.executable, "-c", MEASURE, str(path)]
    completed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    path.unlink()
    peak, positions = json.loads(completed.stdout)
    assert positions[0] > 0.99 * frames * FRAME_LENGTH
    return peak


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_capture_five_times_as_long_takes_no_more_memory(tmp_path):
    small = peak_kib(tmp_path / "small.pcap", SMALL)
    large = peak_kib(tmp_path / "large.pcap", LARGE)
    assert large - small < GROWTH_MAX_KIB
