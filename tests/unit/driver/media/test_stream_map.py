"""The stream map compared with a dict, when full and under removal."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.media import stream_map

SMALL = st.integers(-3, 3)
IDS = st.one_of(SMALL, st.integers(-(2**31), 2**31 - 1))
KEYS = st.tuples(st.integers(0, 2), IDS, IDS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), KEYS, st.integers(-5, 1000).filter(lambda value: value != -1)),
        st.tuples(st.sampled_from(["remove", "find"]), KEYS, st.just(0)),
    ),
    max_size=80,
)


@given(steps=STEPS)
def test_agrees_with_a_dict(steps):
    table, expected = stream_map.make_stream_map(4), {}
    room = table.size - 1
    for operation, key, value in steps:
        if operation == "insert":
            fits = key in expected or len(expected) < room
            assert stream_map.insert(table, *key, value) == fits
            if fits:
                expected[key] = value
        elif operation == "remove":
            assert stream_map.remove(table, *key) == (key in expected)
            expected.pop(key, None)
        for known in (*expected, key):
            assert stream_map.find(table, *known) == expected.get(known, stream_map.ABSENT)
        assert int(table.used.sum()) == stream_map.count(table) == len(expected)


def test_keys_with_the_same_home_survive_each_others_removal():
    table = stream_map.make_stream_map(8)
    home = stream_map.home(table.size, 0, 1, 1)
    same = [s for s in range(1, 5000) if stream_map.home(table.size, 0, 1, s) == home][:5]
    for session in same:
        assert stream_map.insert(table, 0, 1, session, session)
    for gone in (same[0], same[2]):
        assert stream_map.remove(table, 0, 1, gone)
    left = [session for session in same if session not in (same[0], same[2])]
    assert [stream_map.find(table, 0, 1, s) for s in same] == [
        s if s in left else stream_map.ABSENT for s in same
    ]


def test_a_full_table_rejects_keys_but_still_finds_others():
    table = stream_map.make_stream_map(2)
    taken = [session for session in range(20) if stream_map.insert(table, 0, 1, session, session)]
    assert taken == list(range(table.size - 1))
    assert stream_map.find(table, 0, 1, 19) == stream_map.ABSENT
    assert not stream_map.remove(table, 0, 1, 19)
    assert stream_map.insert(table, 0, 1, taken[0], 99)
    assert stream_map.find(table, 0, 1, taken[0]) == 99


def test_the_count_is_stored_and_not_computed():
    """Packets of unwanted sessions read it each time."""
    table = stream_map.make_stream_map(8)
    for session in range(5):
        stream_map.insert(table, 0, 1, session, 0)
    table.used[:] = 0
    assert stream_map.count(table) == 5


def test_homes_spread_over_the_table():
    size = 1024
    homes = [
        int(stream_map.home(size, 0, stream, session))
        for stream in range(16)
        for session in range(64)
    ]
    assert min(homes) >= 0
    assert max(homes) < size
    assert np.unique(homes).size > size // 2
