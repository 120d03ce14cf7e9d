"""Decimation keeps the shape of a line with fewer points."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.decimate import peaks_lost
from windtunnel.reports.charts.decimation import (
    KEPT_PER_BUCKET,
    fair_limit,
    kept_indices,
    level_indices,
)


def test_few_points_are_all_kept() -> None:
    assert kept_indices(np.arange(10), np.arange(10), 10).tolist() == list(range(10))


def test_a_single_peak_is_kept() -> None:
    value = np.zeros(100_000, dtype=np.int64)
    value[54_321] = 1
    kept = kept_indices(np.arange(100_000), value, 400)
    assert 54_321 in kept
    assert len(kept) <= 400


@given(
    value=st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=400),
    bucket_count=st.integers(1, 20),
)
def test_keeps_first_last_and_every_peak(value: list[int], bucket_count: int) -> None:
    size = max(1, len(value) // bucket_count)
    value = value[: size * bucket_count]
    kept = kept_indices(
        np.arange(len(value)), np.array(value), 2 * max(1, len(value) // size) * KEPT_PER_BUCKET
    ).tolist()
    assert kept == sorted(set(kept))
    assert kept[0] == 0
    assert kept[-1] == len(value) - 1
    assert not peaks_lost(value, kept, size)


def test_a_plateau_keeps_both_ends() -> None:
    """A position that rises in each millisecond, except for a pause of 5 s."""
    time_ns = np.arange(100_000) * 1_000_000
    time_ns[54_322:] += 5_000_000_000
    value = np.arange(100_000)
    value[54_322] = value[54_321]
    kept = kept_indices(time_ns, value, 600)
    assert {54_321, 54_322} <= set(kept.tolist())
    assert len(kept) <= 600


def test_each_plateau_beside_a_burst_is_kept() -> None:
    """A position that rises 50 times in 50 s, and then 100,000 times in 1 s."""
    steps_ms = np.repeat(np.arange(1, 51), 2) * 1000 + np.tile([0, 10], 50)
    time_ns = np.append(steps_ms * 1_000_000, 51_000_000_000 + np.arange(100_000) * 10_000)
    value = np.append(np.arange(1, 101) // 2, 51 + np.arange(100_000))
    kept = kept_indices(time_ns, value, 1600)
    assert set(range(100)) <= set(kept.tolist())
    assert len(kept) <= 1600
    assert sum(kept > 100) > 400


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_a_line_without_its_level_points_has_the_same_values(value: list[int]) -> None:
    times = np.arange(len(value))
    kept = level_indices(np.array(value))
    assert np.array_equal(np.interp(times, times[kept], np.array(value)[kept]), value)
    assert all(len({*value[at - 1 : at + 2]}) > 1 for at in kept[1:-1].tolist())


@given(st.lists(st.integers(0, 100), max_size=20), st.integers(0, 500))
def test_sets_keep_as_many_items_as_fit_together(counts: list[int], total: int) -> None:
    def kept(limit: int) -> int:
        return sum(min(count, limit) for count in counts)

    limit = fair_limit(counts, total)
    assert kept(limit) <= total
    assert kept(limit + 1) > total or kept(limit) == sum(counts)
