"""Ints that are reused: each has its value, and those that are kept do not change."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.driver.base import python_api as api
from windtunnel.driver.base.atomics import bytes_at, get_i64
from windtunnel.driver.client.publication import position_int
from windtunnel.driver.client.publication.position_int import is_reusable
from windtunnel.driver.kernels.native_object import integer_fields, offset_of
from windtunnel.driver.kernels.python_method import IS_AVAILABLE, python_method

pytestmark = pytest.mark.skipif(not IS_AVAILABLE, reason="no machine code here")

FIELDS = ("high",)
HIGH, KEPT = offset_of(FIELDS, "high"), offset_of((*FIELDS, "kept"), "kept")


class State(integer_fields("Fields", FIELDS)):
    __slots__ = ("kept",)


@python_method
def int_of(state, arguments, count, names):
    space = api.argument_space()
    value = api.value_of(get_i64(bytes_at(arguments, 8), 0), space)
    return position_int.int_of(bytes_at(state, KEPT + 8), KEPT, HIGH, value)


EDGES = [0, 1, 256, 257, 1 << 10, 1 << 30, 1 << 31, 1 << 32, 1 << 60, 1 << 62]
VALUES = st.one_of(
    st.sampled_from(EDGES).flatmap(lambda edge: st.integers(edge - 3, edge + 3)),
    st.integers(-10, (1 << 63) - 1),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(VALUES, st.booleans()), max_size=30))
def test_every_int_has_its_value_and_kept_ints_do_not_change(steps):
    make, kept = int_of.bind(State()), []
    for value, is_kept in steps:
        made = make(value)
        assert (made, type(made), str(made), hash(made)) == (value, int, str(value), hash(value))
        assert made - 1 == value - 1
        if is_kept:
            kept.append((made, value))
        del made
    for made, value in kept:
        assert made == value
        assert str(made) == str(value)


@pytest.mark.parametrize("base", [5_000, 1 << 30, (1 << 60) - 100])
def test_an_int_is_reused_only_if_nobody_can_tell(base):
    make = int_of.bind(State())
    told = [id(make(base + number)) for number in range(4)]
    assert len({*told}) == 1
    kept = make(base + 4)
    assert (id(kept), id(make(base + 5)) == id(kept), kept) == (told[0], False, base + 4)


def test_the_number_of_digits_of_an_int_does_not_change():
    state = State()
    make = int_of.bind(state)
    for value in (5_000, 1 << 40, 6_000, 7_000, 1 << 41):
        assert make(value) == value
        assert state.high == (value >= 1 << 30)
        assert sys.getsizeof(state.kept) == sys.getsizeof(int(str(value)))


def test_this_version_has_reusable_ints():
    assert is_reusable()


@pytest.mark.parametrize("name", ["_REFERENCES", "_FIRST_DIGIT", "_SECOND_DIGIT", "DIGIT_BITS"])
def test_ints_are_not_reused_in_another_layout(monkeypatch, name):
    monkeypatch.setattr(position_int, name, 8)
    assert not is_reusable()


def test_no_reference_is_lost_or_kept():
    state = State()
    make = int_of.bind(state)
    kept = [make(10_000 + number) for number in range(100)]
    assert [sys.getrefcount(kept[index]) for index in range(99)] == [2] * 99
    del kept[-1]
    references = sys.getrefcount(state.kept)
    assert references == 2
