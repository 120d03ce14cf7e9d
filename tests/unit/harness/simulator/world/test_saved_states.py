"""A saved state is loaded unchanged, by its address alone."""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.simulator.world.saved_states import SavedState, load_state


class Inner(NamedTuple):
    values: Any
    bytes_: Any


class State(NamedTuple):
    inner: Inner
    table: Any
    factor: int


@kernel
def work(like, addresses):
    """Change each state, and add up its contents."""
    total = 0
    for index in range(addresses.size):
        state = load_state(like, addresses[index])
        state.inner.values[1] += index + 1
        state.table[1, 0] += state.factor
        total += state.inner.values[1] * state.factor + state.inner.bytes_[0]
    return total


def make(start, size):
    inner = Inner(np.full(size, start, dtype=np.int64), np.full(3, start, dtype=np.uint8))
    return State(inner, np.zeros((2, 2), dtype=np.int32), start)


def test_each_address_has_its_own_state():
    states = [make(10, 2), make(20, 5), make(30, 9)]
    kept = [SavedState(each) for each in states]
    addresses = np.array([each.address for each in kept], dtype=np.int64)
    expected = sum((each.factor + index + 1) * each.factor + each.factor
                   for index, each in enumerate(states))  # fmt: skip
    assert work(states[1], addresses) == expected
    assert [each.inner.values[1] for each in states] == [11, 22, 33]
    assert [each.table.tolist() for each in states] == [[[0, 0], [n, 0]] for n in (10, 20, 30)]
    assert [each.inner.values[0] for each in states] == [10, 20, 30]


def test_an_equal_array_elsewhere_is_unchanged():
    like, other = make(1, 4), make(5, 4)
    kept = SavedState(other)
    work(like, np.array([kept.address], dtype=np.int64))
    assert other.inner.values.tolist() == [5, 6, 5, 5]
    assert like.inner.values.tolist() == [1, 1, 1, 1]
