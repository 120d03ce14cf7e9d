"""Binomial intervals, against sums of exact fractions."""

from fractions import Fraction
from math import comb

import pytest

from windtunnel.harness.verdict.statistics import binomial
from windtunnel.harness.verdict.statistics.binomial import interval, min_trials, rate_interval


def exact_interval(trials, share, confidence):
    """Return the interval by definition, without both tails."""
    tail = (1 - confidence) / 2
    chances = [comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(trials + 1)]
    low = next(k for k in range(trials + 1) if sum(chances[: k + 1]) > tail)
    high = next(k for k in range(trials, -1, -1) if sum(chances[k:]) > tail)
    return low, high


@pytest.mark.parametrize("trials", [1, 2, 17, 100, 299])
@pytest.mark.parametrize(
    "share", [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]
)
def test_the_interval_is_the_exact_one(trials, share):
    exact = exact_interval(trials, share, Fraction(999, 1000))
    assert interval(trials, float(share), 0.999) == exact


@pytest.mark.parametrize(("share", "expected"), [(0.0, (0, 0)), (1.0, (50, 50))])
def test_certain_events_have_no_interval(share, expected):
    assert interval(50, share, 0.999) == expected


def test_no_trials_allow_no_event():
    assert interval(0, 0.5, 0.999) == (0, 0)


def test_large_counts_stay_near_their_mean():
    low, high = interval(1_000_000, 0.02, 0.999)
    assert 19_500 < low < 20_000 < high < 20_500


@pytest.mark.parametrize("share", [0.01, 0.02, 0.5])
def test_the_minimum_number_of_trials_makes_one_event_sufficiently_certain(share):
    trials = min_trials(share, 0.999)
    assert (1 - share) ** trials <= 0.001 < (1 - share) ** (trials - 1)
    assert min_trials(1.0, 0.999) == 1


@pytest.mark.parametrize(
    ("events", "trials", "low", "high"),
    [(0, 10, 0.0, 0.30850), (1, 10, 0.00253, 0.44502), (5, 100, 0.01643, 0.11283)],
)
def test_a_rate_lies_within_the_published_interval(events, trials, low, high):
    assert rate_interval(events, trials, 0.95) == pytest.approx((low, high), abs=5e-6)


@pytest.mark.parametrize(("events", "trials"), [(0, 1), (3, 17), (16, 17), (17, 17), (40, 299)])
def test_each_end_of_the_interval_has_half_of_the_remaining_probability(events, trials):
    low, high = rate_interval(events, trials, 0.95)

    def chance(counts, rate):
        return sum(comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in counts)

    assert low == 0 or chance(range(events, trials + 1), low) == pytest.approx(0.025)
    assert high == 1 or chance(range(events + 1), high) == pytest.approx(0.025)
    mirrored = rate_interval(trials - events, trials, 0.95)
    assert (1 - high, 1 - low) == pytest.approx(mirrored)


def test_without_trials_the_rate_is_unknown():
    assert rate_interval(0, 0, 0.95) == (0.0, 1.0)


@pytest.mark.parametrize("share", [1e-9, 1e-4, 0.02, 0.5, 0.999_999])
@pytest.mark.parametrize("trials", [1, 50, 4_000])
def test_counts_near_the_mean_are_enough(monkeypatch, trials, share):
    whole = binomial.interval(trials, share, 0.999)
    monkeypatch.setattr(binomial, "WHOLE_MAX", 0)
    assert binomial.interval(trials, share, 0.999) == whole


def test_memory_does_not_grow_with_the_trials():
    """All counts of a thousand million trials would take gigabytes."""
    _, probabilities = binomial._probabilities_near_mean(1 << 30, 0.02)
    assert len(probabilities) < 200_000
    low, high = binomial.interval(1 << 30, 0.02, 0.999)
    mean = (1 << 30) * 0.02
    deviation = (mean * 0.98) ** 0.5
    assert low == pytest.approx(mean - 3.29 * deviation, abs=0.01 * deviation)
    assert high == pytest.approx(mean + 3.29 * deviation, abs=0.01 * deviation)


@pytest.mark.parametrize("trials", [1 << 41, 1 << 62, 1 << 70])
def test_impossible_numbers_of_trials_are_unknown(trials):
    assert binomial.interval(trials, 0.02, 0.999) == (0, trials)
