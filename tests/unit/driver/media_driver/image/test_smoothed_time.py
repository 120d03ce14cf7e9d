"""The smoothing of measured times, also compared with a naive implementation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import smoothed_time as naive
from windtunnel.driver.media_driver.image import smoothed_time

MS = 1_000_000


def smoothed(samples):
    """Return (smoothed time, deviation) after all samples."""
    found = 0, 0
    for sample in samples:
        found = smoothed_time.smooth(*found, sample)
    return tuple(int(each) for each in found)


@given(st.lists(st.integers(-10, 5_000 * MS), max_size=20))
def test_agrees_with_its_naive_twin(samples):
    assert smoothed(samples) == naive.smoothed(samples)


def test_the_first_sample_is_assumed_to_deviate_by_its_half():
    assert smoothed([80 * MS]) == (80 * MS, 40 * MS)


def test_equal_samples_reduce_the_deviation():
    time, deviation = smoothed([80 * MS] * 30)
    assert time == 80 * MS
    assert deviation < MS


@pytest.mark.parametrize("first", [2_001 * MS, 60_000 * MS])
def test_a_long_sample_counts_as_two_seconds(first):
    assert smoothed([first]) == (2_000 * MS, 1_000 * MS)
    assert smoothed([100 * MS, first]) == smoothed([100 * MS, 2_000 * MS])


@given(st.lists(st.integers(1, 5_000 * MS), min_size=1, max_size=20))
def test_a_smoothed_time_is_never_shorter_than_the_shortest_sample(samples):
    time, deviation = smoothed(samples)
    bounded = [min(each, smoothed_time.SAMPLE_NS_MAX) for each in samples]
    assert min(bounded) - 8 <= time <= max(bounded)
    assert 0 <= deviation <= max(bounded)
