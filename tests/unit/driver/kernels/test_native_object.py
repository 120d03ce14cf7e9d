"""Integer fields: where they are in memory, and the same attributes without machine code."""

import ctypes

import pytest

from windtunnel.driver.kernels import native_object
from windtunnel.driver.kernels.native_object import integer_fields, offset_of
from windtunnel.driver.kernels.python_method import IS_AVAILABLE

FIELDS = ("first", "second", "third")
SLOTS = ("fourth", "fifth")


def state_type():
    class State(integer_fields("Fields", FIELDS)):
        __slots__ = SLOTS

        def __init__(self):
            super().__init__()
            self.second = 7

    return State


@pytest.mark.parametrize("is_available", [False, IS_AVAILABLE])
def test_fields_are_zero_at_first(monkeypatch, is_available):
    monkeypatch.setattr(native_object, "IS_AVAILABLE", is_available)
    state = state_type()()
    assert [getattr(state, each) for each in FIELDS] == [0, 7, 0]
    state.first = 1 << 40
    assert (state.first, state.third, hasattr(state, "fourth")) == (1 << 40, 0, False)
    with pytest.raises(AttributeError):
        state.sixth = 1


@pytest.mark.skipif(not IS_AVAILABLE, reason="no machine code here")
def test_fields_and_slots_are_at_their_offsets():
    state = state_type()()
    state.first, state.third, kept = 11, 13, object()
    state.fifth = kept
    words = [ctypes.c_int64.from_address(id(state) + offset_of(FIELDS, each)) for each in FIELDS]
    assert [word.value for word in words] == [11, 7, 13]
    words[0].value = -1
    assert state.first == -1
    # Python sorts the slots of a class by name.
    after = offset_of((*FIELDS, *sorted(SLOTS)), "fifth")
    assert ctypes.c_int64.from_address(id(state) + after).value == id(kept)
