"""The long-run figures of a loss model, compared with a simulation of each packet."""

import numpy as np
import pytest

from tests.naive.loss import losses_of
from windtunnel.harness.scenario.resolved.impairment_case import LossCase
from windtunnel.harness.scenario.schema.units import BILLION

PACKETS = 200_000
MODELS = [
    LossCase(model="iid", shares_ppb=(20_000_000,)),
    LossCase(model="gilbert-elliott", shares_ppb=(10_000_000, 200_000_000, BILLION, 0)),
    LossCase(model="gilbert-elliott", shares_ppb=(50_000_000, BILLION // 2, 700_000_000, 10**6)),
    LossCase(
        model="four-state",
        shares_ppb=(20_000_000, 400_000_000, 300_000_000, 500_000_000, 5_000_000),
    ),
]


def runs_of(lost):
    edges = np.flatnonzero(np.diff(np.concatenate([[0], lost, [0]])))
    return edges[1::2] - edges[::2]


@pytest.mark.parametrize("loss", MODELS, ids=lambda loss: f"{loss.model}-{loss.shares_ppb[0]}")
def test_rate_burst_and_variance_are_those_of_a_simulation(loss):
    chance = np.random.default_rng(7).random((2, PACKETS))
    lost = losses_of(loss, chance)
    deviation = (loss.chain.variance / PACKETS) ** 0.5
    assert abs(lost.mean() - loss.rate) < 4 * deviation
    assert runs_of(lost).mean() == pytest.approx(loss.burst_length, rel=0.06)
    counts = lost.reshape(400, -1).sum(axis=1)
    assert counts.var() / 500 == pytest.approx(loss.chain.variance, rel=0.25)


def test_independent_losses_have_the_variance_of_a_binomial():
    loss = MODELS[0]
    assert loss.rate == pytest.approx(0.02)
    assert loss.chain.variance == pytest.approx(0.02 * 0.98)
    assert loss.burst_length == pytest.approx(1 / 0.98)


def test_a_bad_state_that_loses_all_packets_has_bursts_as_long_as_its_duration():
    assert MODELS[1].burst_length == pytest.approx(5.0)
    assert MODELS[1].rate == pytest.approx(0.01 / 0.21)
