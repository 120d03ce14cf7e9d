"""Position lists compared with plain lists: bounds, removal in any order, a full pool."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import flow
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.conductor.images import subscriber_positions as readers

STATES = {
    "active": readers.ACTIVE,
    "linger": readers.LINGER,
    "resting": readers.RESTING,
    "closed": readers.CLOSED,
}
OWNER = np.dtype([("first_subscriber", "i8")])


def owner():
    record = np.zeros(1, OWNER)[0:1].view(np.recarray)
    record[0].first_subscriber = readers.NONE
    return record[0]


@given(
    st.lists(st.tuples(st.sampled_from(sorted(STATES)), st.integers(0, 2**50)), max_size=8),
    st.randoms(use_true_random=False),
)
def test_bounds_agree_with_the_naive_implementation_as_readers_are_added_and_removed(entries, rng):
    values, pool_records = np.zeros(128 * 8, np.uint8), readers.make_positions(8)
    pool, mine, other = readers.PositionPool(pool_records), owner(), owner()
    live = []
    for counter_id, (state, position) in enumerate(entries):
        counters.set(values, counter_id, position)
        index = pool.add(mine, counter_id)
        pool_records[index].state = STATES[state]
        live.append((index, state, position))
    while True:
        expected = flow.bounds([item[1:] for item in live])
        found = readers.bounds(pool_records, int(mine.first_subscriber), values)
        assert tuple(int(part) for part in found) == expected
        assert readers.bounds(pool_records, int(other.first_subscriber), values)[2] == 0
        if not live:
            break
        gone = live.pop(rng.randrange(len(live)))
        pool.remove(mine, gone[0])
    assert mine.first_subscriber == readers.NONE


def test_a_full_pool_rejects_a_reader_and_recovers():
    pool, mine = readers.PositionPool(readers.make_positions(2)), owner()
    first, _ = pool.add(mine, 1), pool.add(mine, 2)
    with pytest.raises(StorageError, match="all 2 subscriber positions"):
        pool.add(mine, 3)
    pool.remove(mine, first)
    assert pool.add(mine, 3) == first
