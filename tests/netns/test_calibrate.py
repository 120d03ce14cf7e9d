"""A calibration in a real lab: the relay drops the configured share of frames."""

import pytest

from windtunnel.harness.calibration import throughput
from windtunnel.harness.calibration.plan import impairments
from windtunnel.harness.calibration.rounds import calibrate
from windtunnel.harness.orchestrate.labs import privileges

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
]
SEED = 5
"""Of the losses: in a given order of packets they are always the same."""


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_relay_drops_the_configured_share():
    expected = ("baseline", "loss, independent", "duplicate")
    rounds = [each for each in impairments(0.05) if each.name in expected]
    reported = []
    found = calibrate(rounds, "relay", 5_000, SEED, reported.append)
    rows = {(each.impairment, each.quantity): each for each in found.measures}
    assert len(reported) == len(expected)
    assert rows["baseline", "loss rate"].delivered == 0.0
    loss = rows["loss, independent", "loss rate"]
    assert loss.samples == 3_000
    assert 0.0 < loss.delivered < 10.0
    assert loss.holds
    assert rows["duplicate", "duplicated"].holds


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_relay_forwards_a_fast_stream_completely(monkeypatch):
    monkeypatch.setattr(throughput, "STEPS_PER_S", (5_000,))
    reported = []
    (step,) = throughput.relay_steps(0.5, reported.append)
    assert step.packets == 2_500 == step.account.datagrams_in == step.account.datagrams_out
    assert step.account.frames["DATA"].sent == 2_500
    assert step.account.unaccounted == 0
    assert reported == [f"relay: 5,000 datagrams/s: {step.trouble or 'no loss'}"]
