"""A step of a host's realtime clock affects only its driver and clients."""

import numpy as np
import pytest

from tests.sim.real_runs import real_runs
from tests.sim.simulated import SCENARIOS
from windtunnel.harness.artifact.host.counter_sample import read_samples
from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.dissect.driver_files import counter_key

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

MS = 1_000_000
KEEPALIVE_MS = 500
SLACK_MS = 50


@pytest.mark.parametrize("driver", ["ours", "pyaeron"])
def test_heartbeats_of_clients_have_the_time_of_their_own_host(tmp_path, driver):
    if driver == "pyaeron":
        pytest.importorskip("pyaeron")
    with real_runs(tmp_path) as run:
        result, folder = run(SCENARIOS / "host" / "stepped-clocks.yaml", driver, driver)
    assert result.outcome == "PASS", result.reason
    events = read_applied_events(folder.host_events)
    assert events is not None
    began_ms = {each.id: each.began_ns // MS for each in events}
    steps_ms = {"a-forward": 8_000, "b-back": -5_000, "b-forward": 9_000, "a-back": -3_600_000}
    assert began_ms.keys() == steps_ms.keys()
    for host in "ab":
        own = [each for each in steps_ms if each.startswith(f"{host}-")]
        samples = read_samples(folder.host(host).counter_samples)
        heartbeats = samples[
            (samples["type_id"] == counter_key.CLIENT_HEARTBEAT) & (samples["value"] > 0)
        ]
        times_ms = heartbeats["time_ns"].astype(np.int64) // MS
        expected_ms = times_ms + sum(
            np.where(times_ms >= began_ms[each], steps_ms[each], 0) for each in own
        )
        ages_ms = expected_ms - heartbeats["value"]
        settled = np.ones(len(heartbeats), dtype=bool)
        for each in own:
            since_ms = times_ms - began_ms[each]
            settled &= (since_ms < 0) | (since_ms > KEEPALIVE_MS + SLACK_MS)
        assert settled.sum() > 4
        assert ages_ms[settled].min() >= -1
        assert ages_ms[settled].max() <= KEEPALIVE_MS + SLACK_MS
