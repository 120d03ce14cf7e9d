"""The plan is a pure function of its arguments on any machine, and within its bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.harness.artifact.run.plan import message_bytes, plan

RECORDED = [139, 92, 26, 142, 1, 2326, 407, 5242]
RECORDED_COUNT = 70691


def test_a_plan_never_changes():
    """Recorded numbers: if they change, stored runs can no longer be judged."""
    assert plan(7, "term-64k", 1 << 26, 8192).lengths[:8].tolist() == RECORDED
    assert plan(7, "term-64k", 1 << 26, 8192).count == RECORDED_COUNT


@given(st.integers(0, 1 << 63), st.integers(1, 1 << 16), st.integers(1, 40), st.integers(0, 5000))
def test_lengths_are_within_their_bounds_and_have_their_sum(seed, total, shortest, more):
    made = plan(seed, "x", total, shortest + more, shortest)
    assert made.total_bytes == total
    assert (made.lengths[:-1] >= shortest).all()
    assert (made.lengths <= shortest + more).all()
    assert made.lengths[-1] >= 1
    assert np.array_equal(made.starts, np.cumsum(made.lengths) - made.lengths)


def test_seed_and_traffic_each_change_the_plan():
    base = plan(1, "x", 10_000, 500).lengths.tolist()
    assert plan(1, "x", 10_000, 500).lengths.tolist() == base
    assert plan(2, "x", 10_000, 500).lengths.tolist() != base
    assert plan(1, "y", 10_000, 500).lengths.tolist() != base


def test_each_doubling_is_as_likely_as_any_other():
    lengths = plan(3, "x", 1 << 25, 8191).lengths
    octaves = np.bincount(np.log2(lengths).astype(int), minlength=13)
    expected = len(lengths) / 13
    assert len(octaves) == 13
    assert (abs(octaves - expected) < 6 * np.sqrt(expected)).all()
    assert lengths.min() == 1
    assert 8100 < lengths.max() <= 8191


@pytest.mark.parametrize(("longest", "shortest", "total"), [(5, 6, 10), (5, 0, 10), (5, 1, 0)])
def test_an_impossible_plan_is_refused(longest, shortest, total):
    with pytest.raises(ValueError, match="expected"):
        plan(1, "x", total, longest, shortest)


@given(st.binary(min_size=1, max_size=30), st.integers(0, 200), st.integers(0, 100))
def test_message_bytes_wrap_around_the_payload(payload, start, length):
    found = message_bytes(np.frombuffer(payload, dtype=np.uint8), start, length)
    endless = payload * ((start + length) // len(payload) + 1)
    assert found.tobytes() == endless[start : start + length]
