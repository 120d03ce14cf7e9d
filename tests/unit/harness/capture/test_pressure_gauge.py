"""The gauge reads counts of the kernel, and keeps its figures when the process has ended."""

import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.host.pressure import COLUMNS, UNKNOWN, Pressure
from windtunnel.harness.capture import pressure_gauge
from windtunnel.harness.capture.pressure_gauge import PressureGauge, parse_throttled, thread_times


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """A synthetic /proc with process 7 of two threads, in a control group of each version."""
    monkeypatch.setattr(pressure_gauge, "PROC", tmp_path / "proc")
    monkeypatch.setattr(pressure_gauge, "GROUPS", tmp_path / "cgroup")
    for thread, times in ((7, "1000 200 3\n"), (8, "50 900 1\n")):
        folder = tmp_path / f"proc/7/task/{thread}"
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(times)
    return tmp_path


def group(folder, lines: str, path: str, text: str) -> None:
    (folder / "proc/7/cgroup").write_text(lines)
    stat = folder / "cgroup" / path / "cpu.stat"
    stat.parent.mkdir(parents=True)
    stat.write_text(text)


def test_a_row_has_the_total_run_time_and_the_longest_wait_of_a_thread(proc):
    gauge = PressureGauge(7, 5_000_000)
    gauge.poll(123)
    (row,) = gauge.pressure().rows.tolist()
    assert dict(zip(COLUMNS, row, strict=True)) == {
        "time_ns": 123,
        "run_ns": 1050,
        "wait_ns": 900,
        "throttled_ns": UNKNOWN,
        "longest_gap_ns": 0,
        "stolen_ns": UNKNOWN,
    }


def test_stolen_time_is_that_of_the_most_affected_processor_since_the_last_row(proc):
    line = "cpu{} 0 0 0 0 0 0 0 {} 0 0\n"
    gauge = None
    for now, (one, two) in enumerate([(5, 40), (6, 40), (6, 43), (7, 49)]):
        every = (("", one + two), (0, one), (1, two))
        (proc / "proc/stat").write_text("".join(line.format(*each) for each in every))
        gauge = gauge or PressureGauge(7, 5_000_000)
        gauge.poll(now)
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    assert gauge.pressure().column("stolen_ns").tolist() == [0, tick_ns, 4 * tick_ns, 10 * tick_ns]


def test_an_earlier_long_wait_of_a_thread_hides_no_other(proc):
    """A driver's main thread waits while it loads; its agent's thread starts later, at zero."""
    gauge = PressureGauge(7, 5_000_000)
    for now, waited in enumerate((0, 600, 600)):
        (proc / "proc/7/task/7/schedstat").write_text("1000 900 3\n")
        (proc / "proc/7/task/8/schedstat").write_text(f"50 {waited} 1\n")
        gauge.poll(now)
    assert gauge.pressure().column("wait_ns").tolist() == [900, 1500, 1500]


def test_a_process_that_has_ended_keeps_its_last_figures(proc):
    gauge = PressureGauge(7, 5_000_000)
    gauge.poll(1)
    (proc / "proc/7/task/7/schedstat").unlink()
    (proc / "proc/7").rename(proc / "proc/9")
    gauge.poll(2)
    first, second = gauge.pressure().rows.tolist()
    assert first[1:3] == second[1:3] == [1050, 900]


def test_the_longest_gap_between_ticks_is_counted_from_row_to_row(proc):
    gauge = PressureGauge(7, 5_000_000)
    time.sleep(0.02)
    gauge.tick()
    gauge.tick()
    gauge.poll(1)
    gauge.poll(2)
    first, second = gauge.pressure().column("longest_gap_ns").tolist()
    assert first >= 20_000_000
    assert second == 0


@pytest.mark.parametrize(
    ("lines", "path", "text", "throttled_ns"),
    [
        ("0::/a/b\n", "a/b", "usage_usec 5\nthrottled_usec 12\n", 12_000),
        ("0::/lost\n", "", "throttled_usec 3\n", 3_000),
        ("3:cpu,cpuacct:/a\n1:name=x:/\n", "cpu,cpuacct/a", "throttled_time 7\n", 7),
        ("3:cpu,cpuacct:/a\n", "cpu", "throttled_time 8\n", 8),
        ("3:cpuset:/a\n", "cpuset/a", "throttled_time 8\n", UNKNOWN),
    ],
)
def test_a_quota_is_read_of_either_version(proc, lines, path, text, throttled_ns):
    group(proc, lines, path, text)
    gauge = PressureGauge(7, 5_000_000)
    gauge.poll(1)
    assert gauge.pressure().column("throttled_ns").tolist() == [throttled_ns]


def test_a_file_without_a_quota_is_unknown():
    assert parse_throttled("") == UNKNOWN
    assert parse_throttled("throttled_usec many\n") == UNKNOWN


def test_a_living_process_has_run_time():
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        deadline_s = time.monotonic() + 20
        while not sum(run_ns for run_ns, _ in thread_times(process.pid).values()) > 50_000_000:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert thread_times(process.pid) == {}
    assert thread_times(os.getpid())


def test_a_document_of_an_earlier_version_does_not_know_what_was_stolen(tmp_path):
    path = tmp_path / "pressure.json"
    Pressure(5, np.array([[1, 2, 3, 4, 5, 6]])).write(path)
    path.write_text(re.sub(r',\s*"stolen_ns"', "", re.sub(r",\s*6\b", "", path.read_text())))
    assert Pressure.read(path).rows.tolist() == [[1, 2, 3, 4, 5, UNKNOWN]]


def test_a_damaged_document_is_refused(tmp_path):
    path = tmp_path / "pressure.json"
    assert Pressure.read(path) is None
    PressureGauge(1, 5).pressure().write(path)
    assert Pressure.read(path).rows.shape == (0, len(COLUMNS))
    path.write_text(path.read_text().replace("wait_ns", "wait"))
    with pytest.raises(DocumentError, match="columns"):
        Pressure.read(path)
