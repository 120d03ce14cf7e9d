"""Delta debugging: the result is minimal, and the whole set is not tested again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.delta_debugging import shortest
from windtunnel.harness.replay.fewest import fewest

THINGS = list(range(9))
CAUSES = st.lists(st.sets(st.sampled_from(THINGS), max_size=4), min_size=1, max_size=3)


@settings(max_examples=300)
@given(CAUSES)
def test_the_result_is_minimal(causes):
    def happens(chosen):
        return any(each <= set(chosen) for each in causes)

    left = list(fewest(THINGS, happens))
    assert happens(left)
    assert left == sorted(left)
    assert not any(happens([each for each in left if each != spared]) for spared in left)
    assert len(left) >= len(shortest(THINGS, happens)[0])


@settings(max_examples=100)
@given(st.sets(st.sampled_from(THINGS), max_size=5))
def test_finds_a_single_cause(cause):
    def happens(chosen):
        return cause <= set(chosen)

    assert [list(fewest(THINGS, happens))] == shortest(THINGS, happens)


def test_finds_a_single_cause_with_few_trials():
    asked = []

    def happens(chosen):
        asked.append(len(chosen))
        return 777 in chosen

    assert list(fewest(range(1000), happens)) == [777]
    assert len(asked) <= 25
    assert asked[0] == 0
    assert 1000 not in asked


def test_an_empty_set_stays_empty():
    def never(chosen):
        raise AssertionError("nobody asks about nothing")

    assert list(fewest([], never)) == []
