"""Quantiles of the lag, and the writing of the decision log."""

import numpy as np

from tests.unit.harness.middlebox.synthetic_case import ByteEngine, case, data, fault, setup
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.middlebox.relay.relay_state import LAG_BUCKETS
from windtunnel.harness.middlebox.relay.report import DecisionLog, lag_quantiles


def test_lag_quantiles_are_the_ends_of_their_buckets():
    buckets = np.zeros(LAG_BUCKETS, dtype=np.int64)
    buckets[3], buckets[10], buckets[500] = 60, 38, 2
    assert lag_quantiles(buckets, 500_123) == {"p50": 4_000, "p99": 500_123, "max": 500_123}
    buckets[500], buckets[-1] = 0, 900
    assert lag_quantiles(buckets, 10**9) == {"p50": 10**9, "p99": 10**9, "max": 10**9}
    buckets[-1] = 0
    assert lag_quantiles(buckets, 10_999) == {"p50": 4_000, "p99": 10_999, "max": 10_999}


def test_nothing_forwarded_has_no_lag():
    assert lag_quantiles(np.zeros(LAG_BUCKETS, dtype=np.int64), 0) == {}


def test_decisions_are_appended_and_the_buffer_emptied(tmp_path):
    driven = ByteEngine(case(fault("drop")))
    log = DecisionLog(tmp_path / "decisions.bin")
    driven.offer(setup())
    for at in (0, 64, 128):
        driven.offer(data(at))
        log.drain(driven.engine)
        assert len(driven.decisions) == 0
    log.drain(driven.engine)
    log.close()
    assert read_decisions(tmp_path / "decisions.bin")["position"].tolist() == [0, 64, 128]


def test_decision_times_are_written_as_epoch_times(tmp_path):
    """A simulated engine counts from the start of its world; every file has epoch times."""
    driven = ByteEngine(case(fault("drop")))
    driven.offer(setup())
    driven.offer(data(0))
    engine_ns = driven.engine.decisions["time_ns"][:1].tolist()
    log = DecisionLog(tmp_path / "decisions.bin", 1_600_000_000_000_000_000)
    log.drain(driven.engine)
    log.close()
    written_ns = read_decisions(tmp_path / "decisions.bin")["time_ns"].tolist()
    assert written_ns == [each + 1_600_000_000_000_000_000 for each in engine_ns]
