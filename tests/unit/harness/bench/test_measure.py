"""Figures of two samples, and the causes of void readings."""

import os

import numpy as np
import pytest

from windtunnel.harness.bench import measure
from windtunnel.harness.bench.loads import MeasurementError
from windtunnel.harness.bench.measure import Sample
from windtunnel.harness.bench.plan import CASES, BenchSettings
from windtunnel.harness.bench.subject import OURS
from windtunnel.harness.capture.process_facts import Memory

BY_NAME = {case.name: case for case in CASES}


class FakeHost:
    """A driver that started in 250 ms and is alive as long as given."""

    def __init__(self, tmp_path, is_alive=True):
        self.subject, self.directory, self.is_alive = OURS, tmp_path, is_alive
        self.start_up_ns = 250_000_000

    def memory(self):
        return Memory(64_000_000, 1)


def test_rates_are_differences_of_two_samples():
    first = Sample(now_ns=5_000_000_000, wall_ns=0, count=1_000, processor_ns=7_000)
    second = Sample(now_ns=7_000_000_000, wall_ns=0, count=5_000, processor_ns=15_000)
    values = measure.stream_values(first, second, message_length=500)
    assert values == {"messages": 2_000.0, "megabytes": 1.0, "processor": 2.0}


def test_a_stream_that_stood_still_has_no_rate():
    sample = Sample(0, 0, 10, 0)
    with pytest.raises(MeasurementError, match="no message"):
        measure.stream_values(sample, Sample(1, 1, 10, 0), 32)


def test_rates_of_calls_are_of_the_time_in_calls():
    first = Sample(0, 0, 1_000, processor_ns=0, busy_ns=5_000, busy_processor_ns=100)
    second = Sample(9, 0, 1_500, processor_ns=7, busy_ns=25_000, busy_processor_ns=15_100)
    assert measure.call_values(first, second) == {"messages": 25e6, "processor": 30.0}


@pytest.mark.parametrize(("count", "busy_ns"), [(10, 9), (11, 5), (9, 9)])
def test_calls_without_an_ended_burst_have_no_rate(count, busy_ns):
    sample = Sample(0, 0, 10, 0, busy_ns=5)
    with pytest.raises(MeasurementError, match="no burst"):
        measure.call_values(sample, Sample(1, 1, count, 0, busy_ns))


def test_percentiles_are_times_that_were_measured():
    latencies_ns = np.arange(1_000, 1_001_000, 1_000)
    np.random.default_rng(1).shuffle(latencies_ns)
    values = measure.echo_values(latencies_ns)
    assert values == {
        **{"p0": 1.0, "p10": 101.0, "p25": 251.0, "p50": 501.0, "p75": 751.0, "p90": 901.0},
        **{"p95": 951.0, "p99": 991.0, "p99.5": 996.0, "p99.9": 1_000.0, "p99.95": 1_000.0},
        **{"p99.99": 1_000.0, "max": 1_000.0},
    }
    assert set(measure.PERCENTILES) < set(values)


def test_one_round_trip_is_all_percentiles():
    assert set(measure.echo_values(np.array([4_000])).values()) == {4.0}


def test_without_round_trips_there_is_no_figure():
    with pytest.raises(MeasurementError, match="no round trip completed"):
        measure.echo_values(np.array([], dtype=np.int64))


@pytest.mark.parametrize(("at_ns", "seen"), [(99, False), (100, True), (200, True), (201, False)])
def test_detects_a_kernel_that_was_compiled_meanwhile(tmp_path, at_ns, seen):
    build = tmp_path / "module-digest" / "file_1" / "kernel.image"
    build.parent.mkdir(parents=True)
    build.write_bytes(b"")
    os.utime(build, ns=(at_ns, at_ns))
    assert measure.compiled_between(tmp_path, 100, 200) is seen


def test_no_cache_has_no_compiled_kernels(tmp_path):
    assert not measure.compiled_between(tmp_path / "none", 0, 1 << 62)


def test_start_up_is_what_the_driver_took(tmp_path):
    host = FakeHost(tmp_path)
    made = measure.measure(BY_NAME["startup"], host, BenchSettings(), tmp_path, 2)
    assert made.values == {"startup": 250.0, "rss": 64.0}
    assert (made.driver, made.case, made.round_index, made.void) == ("ours", "startup", 2, "")


def test_a_driver_that_ended_makes_its_reading_void(tmp_path):
    host = FakeHost(tmp_path, is_alive=False)
    made = measure.measure(BY_NAME["startup"], host, BenchSettings(), tmp_path, 0)
    assert made.void == "the driver exited"
    assert made.values == {}


def test_an_error_of_the_loads_makes_a_reading_void(tmp_path, monkeypatch):
    def fail(*_):
        raise MeasurementError("sink: lost")

    monkeypatch.setattr(measure, "_under_load", fail)
    made = measure.measure(BY_NAME["udp-32"], FakeHost(tmp_path), BenchSettings(), tmp_path, 0)
    assert made.void == "sink: lost"
