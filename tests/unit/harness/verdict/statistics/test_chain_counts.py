"""Intervals of a Markov chain, compared with a table of all states and counts for each step."""

import numpy as np
import pytest

from windtunnel.harness.scenario.schema.loss_model import MarkovChain
from windtunnel.harness.scenario.schema.units import BILLION
from windtunnel.harness.verdict.statistics import binomial, chain_counts

CHAINS = {
    "bursts": ("two states", (0.01, 0.25, 1.0, 0.0)),
    "soft": ("two states", (0.05, 0.3, 0.6, 0.01)),
    "four": ("four states", (0.01, 0.2, 0.1, 0.05, 0.005)),
    "rare": ("two states", (0.0005, 0.5, 1.0, 0.0)),
    "slow": ("two states", (0.003, 0.000001, 1.0, 0.0)),
    "always": ("two states", (0.1, 0.1, 1.0, 1.0)),
    "in turn": ("four states", (1.0, 1.0, 0.0, 0.0, 0.0)),
    "regular": ("four states", (0.9, 0.5, 0.5, 0.0, 0.1)),
}


def chain_of(name):
    kind, parts = CHAINS[name]
    return MarkovChain(kind, tuple(round(each * BILLION) for each in parts))


def chances(chain, trials):
    """Return the probability of each count, by stepping the state distribution."""
    states = len(chain.loss_probabilities)
    table = np.zeros((states, trials + 1))
    table[0, 0] = 1.0
    for _ in range(trials):
        moved = chain.transitions.T @ table
        lost = moved * chain.loss_probabilities[:, None]
        table = moved - lost
        table[:, 1:] += lost[:, :-1]
    return table.sum(axis=0)


@pytest.mark.full(keep=16)
@pytest.mark.parametrize("trials", [1, 30, 400, 2_000])
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("confidence", [0.9, 0.999])
def test_the_interval_is_the_exact_one(name, trials, confidence):
    chain = chain_of(name)
    of_count = chances(chain, trials)
    tail = (1 - confidence) / 2
    low = next(k for k in range(trials + 1) if of_count[: k + 1].sum() > tail)
    high = next(k for k in range(trials, -1, -1) if of_count[k:].sum() > tail)
    assert chain_counts.interval(chain, trials, confidence) == (low, high)


def test_many_steps_are_computed_near_the_likely_counts():
    """Only a range of all counts is computed, wherever the likely counts are."""
    chain = chain_of("bursts")
    low, high = chain_counts.interval(chain, 1_000_000, 0.999)
    reach = 3.29 * (1_000_000 * chain.variance) ** 0.5
    assert (low + high) / 2 == pytest.approx(1_000_000 * chain.share, rel=0.001)
    assert high - low == pytest.approx(2 * reach, rel=0.01)


def test_the_upper_limit_of_bursts_exceeds_that_of_a_normal_distribution():
    chain = chain_of("bursts")
    middle, reach = 4_000 * chain.share, 3.29 * (4_000 * chain.variance) ** 0.5
    low, high = chain_counts.interval(chain, 4_000, 0.999)
    assert high > middle + reach + 2
    assert low > middle - reach + 2


def test_independent_events_have_a_binomial_distribution():
    chain = MarkovChain("independent", (BILLION // 50,))
    assert chain_counts.interval(chain, 2_398, 0.999) == binomial.interval(2_398, 0.02, 0.999)


def test_without_steps_there_are_no_events():
    assert chain_counts.interval(chain_of("bursts"), 0, 0.999) == (0, 0)
