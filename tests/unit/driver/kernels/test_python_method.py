"""Python methods in machine code: arguments, results, errors, references, and the cache."""

import gc
import sys
import weakref

import pytest

from windtunnel.driver.base import python_api as api
from windtunnel.driver.base.atomics import bytes_at, get_i64, put_i64
from windtunnel.driver.kernels import python_method as methods
from windtunnel.driver.kernels.native_object import HEADER_LENGTH, integer_fields, offset_of
from windtunnel.driver.kernels.python_method import IS_AVAILABLE, python_method

pytestmark = pytest.mark.skipif(not IS_AVAILABLE, reason="no machine code here")

FIELDS = ("number", "calls")
NUMBER, CALLS = offset_of(FIELDS, "number"), offset_of(FIELDS, "calls")


class Counter(integer_fields("CounterFields", FIELDS)):
    __slots__ = ("__weakref__", "kept")


@python_method
def add(owner, arguments, count, names):
    fields, given = bytes_at(owner, CALLS + 8), bytes_at(arguments, 16)
    put_i64(fields, CALLS, get_i64(fields, CALLS) + 1)
    if count != 1 or names != 0:
        raise AssertionError("expected one argument")
    space = api.argument_space()
    added = api.value_of(get_i64(given, 0), space)
    put_i64(fields, NUMBER, get_i64(fields, NUMBER) + added)
    return api.int_of(get_i64(fields, NUMBER))


@python_method
def call_with(owner, arguments, count, names):
    given, space = bytes_at(arguments, 16), api.argument_space()
    put_i64(bytes_at(space, 32), api.FIRST_ARGUMENT, get_i64(given, 8))
    put_i64(bytes_at(space, 32), api.FIRST_ARGUMENT + 8, owner)
    return api.call(get_i64(given, 0), space, 2)


@pytest.fixture
def counter():
    return Counter()


def test_a_method_reads_and_writes_the_fields_of_its_object(counter):
    counter.number = -7
    method = add.bind(counter)
    assert (method(9), counter.number, counter.calls) == (2, 2, 1)
    assert (method(-(1 << 62)), counter.number) == (2 - (1 << 62), 2 - (1 << 62))
    other = Counter()
    assert (add.bind(other)(1), counter.calls) == (1, 2)
    assert method.__name__ == "add"


def test_a_failed_assertion_of_a_kernel_is_an_exception(counter):
    method = add.bind(counter)
    for arguments, names in (((), {}), ((1, 2), {}), ((1,), {"more": 1})):
        with pytest.raises(AssertionError, match="expected one argument"):
            method(*arguments, **names)
    assert counter.calls == 3
    assert method(1) == 1


def test_a_method_calls_functions_and_passes_their_exceptions_on(counter):
    method, made = call_with.bind(counter), object()

    class Caller:
        def method(self, argument, owner):
            return self, argument, owner

    caller = Caller()
    assert method(caller.method, made) == (caller, made, counter)
    assert method(lambda argument, owner: argument, made) is made
    with pytest.raises(ZeroDivisionError):
        method(lambda argument, owner: 1 // 0, made)
    with pytest.raises(TypeError, match="not callable"):
        method(made, made)


def test_a_method_loses_and_keeps_no_reference(counter):
    method, made = call_with.bind(counter), object()
    before = [sys.getrefcount(each) for each in (method, made, counter)]
    for _ in range(100):
        method(lambda argument, owner: argument, made)
    assert [sys.getrefcount(each) for each in (method, made, counter)] == before


def test_a_method_keeps_its_object():
    counter = Counter()
    counter.number, seen = 5, weakref.ref(counter)
    method = add.bind(counter)
    del counter
    gc.collect()
    assert method(1) == 6
    del method
    assert seen() is None


def test_an_object_in_a_cycle_with_its_method_is_collected():
    counter = Counter()
    counter.kept, seen = add.bind(counter), weakref.ref(counter)
    del counter
    gc.collect()
    assert seen() is None


class Own:
    def add(self, number):
        return -number

    def call_with(self, function, argument):
        return function


METHODS = {"add": add, "call_with": call_with}


def test_methods_of_an_object_are_replaced_and_restored(counter):
    own, other = Own(), Own()
    methods.replace_methods(own, Own, METHODS, counter, is_compiled=True)
    assert (own.add(3), other.add(3)) == (3, -3)
    methods.restore_methods(own, METHODS)
    methods.restore_methods(own, METHODS)
    assert own.add(3) == -3


def test_methods_that_a_subclass_overrides_are_kept(counter):
    class Special(Own):
        def add(self, number):
            return 0

    special = Special()
    methods.replace_methods(special, Own, METHODS, counter, is_compiled=True)
    assert special.add(3) == 0
    assert special.call_with(lambda *arguments: arguments, 1) == (1, counter)


def test_methods_that_must_be_compiled_are_kept_unless_compiling_is_requested(counter):
    captured = 1

    # A function that captures a value is never stored.
    @python_method
    def never_bound(owner, arguments, count, names):
        return api.int_of(captured)

    own = Own()
    methods.replace_methods(own, Own, {"add": never_bound}, counter, is_compiled=False)
    assert own.add(3) == -3
    assert never_bound.bind_stored(counter) is None
    methods.replace_methods(own, Own, {"add": never_bound}, counter, is_compiled=True)
    assert own.add(3) == 1
    assert never_bound.load_stored()


def test_nothing_is_replaced_where_methods_are_not_available(counter, monkeypatch):
    monkeypatch.setattr(methods, "IS_AVAILABLE", False)
    own = Own()
    methods.replace_methods(own, Own, METHODS, counter, is_compiled=True)
    assert own.add(3) == -3
    assert not add.load_stored()


def test_fields_are_int64_and_begin_after_the_header(counter):
    assert (counter.number, counter.calls) == (0, 0)
    counter.number, counter.calls = -(1 << 63), (1 << 63) - 1
    assert (counter.number, counter.calls) == (-(1 << 63), (1 << 63) - 1)
    assert (NUMBER, CALLS) == (HEADER_LENGTH, HEADER_LENGTH + 8)
    with pytest.raises(OverflowError):
        counter.number = 1 << 63
    with pytest.raises(TypeError):
        counter.number = "1"
    with pytest.raises(AttributeError):
        counter.other = 1
