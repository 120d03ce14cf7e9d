"""The image reconstructed from a capture matches the driver's own counters."""

import numpy as np
import pytest

from tests.sim.simulated import run, shortened
from windtunnel.harness.artifact.host.counter_sample import read_counters, read_samples
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.reports.analysis.analyze import analyze

RECEIVER_HWM, RECEIVER_POSITION = 3, 4
"""Counter types of Aeron: rcv-hwm and rcv-pos."""
pytestmark = pytest.mark.timeout(400)


def counter_values(run: RunDir, type_id: int, stream_id: int):
    """Return (times, values) of a receiver's counter."""
    counters = read_counters(run.host("b").counters)
    samples = read_samples(run.host("b").counter_samples)
    for each in counters:
        stream = int.from_bytes(bytes.fromhex(each.key_hex)[12:16], "little")
        if each.type_id == type_id and stream == stream_id:
            own = samples[samples["registration_id"] == each.registration_id]
            own = own[(own["counter_id"] == each.counter_id) & (own["type_id"] == type_id)]
            return own["time_ns"], own["value"]
    raise AssertionError(f"no counter of type {type_id} and stream {stream_id}")


def test_rcv_hwm_and_rcv_pos_are_rebuilt_over_time(tmp_path):
    result = run(shortened("loss/reliable-2pct", tmp_path, "2MiB"), tmp_path)
    run_dir = RunDir(result.run_dir)
    analysis = analyze([str(run_dir.capture("b"))])
    for flow in analysis.flows.to_pylist():
        stream = flow["stream_id"]
        rows = [each for each in analysis.positions.to_pylist() if each["stream_id"] == stream]
        times = np.array([each["time_ns"] for each in rows])
        assert len(rows) > 1_000
        for type_id, column, last in (
            (RECEIVER_HWM, "high_position", flow["high_position"]),
            (RECEIVER_POSITION, "rebuilt_position", flow["rebuilt_position"]),
        ):
            sampled_ns, values = counter_values(run_dir, type_id, stream)
            assert len(values) >= 2
            assert values[-1] == last
            rebuilt = np.array([each[column] for each in rows])
            then = np.searchsorted(times, sampled_ns, side="right") - 1
            seen = then >= 0
            # The driver cannot have more than had arrived; it lags by the duration of its turn.
            assert (values[seen] <= rebuilt[then[seen]]).all()
            before = np.maximum(np.searchsorted(times, sampled_ns[seen] - 1_000_000) - 1, 0)
            assert (values[seen] >= rebuilt[before]).all()
