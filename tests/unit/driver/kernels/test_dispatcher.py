"""A kernel compiles with all kernels that it calls as one unit."""

import re

import numba
import numpy as np
import pytest
from llvmlite.binding import Linkage

from windtunnel.driver.kernels.jit import JIT_DISABLED, inlined_kernel, kernel, outlined_kernel

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled without the JIT")


@kernel
def scaled(value, factor):
    return value * factor


@kernel
def offset(value, summand=1):
    return scaled(value, 1) + summand


@kernel
def outer(value):
    return scaled(value, 3) + scaled(value, 5) + offset(value) + offset(value, 7)


@kernel
def checked(value):
    if value < 0:
        raise ValueError("expected a value from 0")
    return value


@kernel
def checking(value):
    return checked(value) + 1


@kernel
def allocating(count):
    return np.zeros(count, np.int64).sum()


@numba.njit
def plain(value):
    return offset(value) + outer(value)


@kernel
def total_of(values, unused, factor):
    total = 0
    for index in range(values.size):
        total += values[index] * factor
    return total


@kernel
def total_of_two(values, unused, factor):
    return total_of(values, unused, factor) + total_of(values, unused, 3)


def specializations(dispatcher):
    return [tuple(str(each) for each in types) for types in dispatcher.numba_dispatcher._inner]


def test_values_are_those_of_python():
    assert outer(10) == outer.py_func(10) == 30 + 50 + 11 + 17


def test_a_kernel_that_allocates_is_rejected():
    with pytest.raises(numba.TypingError, match="empty"):
        allocating(5)


def test_only_the_kernel_that_python_calls_gets_an_entry_point():
    @kernel
    def inner(value):
        return value + 1

    @kernel
    def root(value):
        return inner(value) * 2

    assert root(1) == 4
    assert len(root.signatures) == 1
    assert inner.signatures == []
    assert inner(1) == 2
    assert len(inner.signatures) == 1


def test_constants_share_one_specialization():
    # Kernels of this test alone: if another process had stored the root, nothing would be typed.
    @kernel
    def product(value, factor):
        return value * factor

    @kernel
    def root(value):
        return product(value, 3) + product(value, 5) + product(value, value)

    assert root(10) == 30 + 50 + 100
    assert specializations(product) == [("int64", "int64")]


def test_types_do_not_share_one():
    @kernel
    def same(value):
        return value

    @kernel
    def both(number, ratio):
        return same(number) + same(ratio)

    assert both(1, 0.5) == 1.5
    assert sorted(specializations(same)) == [("float64",), ("int64",)]


def test_an_exception_of_an_inner_kernel_reaches_python():
    assert checking(1) == 2
    with pytest.raises(ValueError, match="expected a value from 0"):
        checking(-1)


def test_a_function_under_plain_numba_can_call_kernels():
    """Its library links only the functions that it calls itself, not those behind them."""
    assert plain(10) == 11 + 108


def test_a_kernel_can_call_a_function_under_plain_numba():
    @kernel
    def root(value):
        return plain(value) + 1

    assert root(10) == 120


@pytest.mark.parametrize("kind", [kernel, numba.njit])
def test_a_callee_is_linked_although_its_first_caller_can_never_reach_it(kind):
    """The optimizer removes the first call before the callee is linked."""

    @kernel
    def callee(values, at):
        return values[at] * 3

    @kernel
    def first_caller(values, at):
        if at == 1 and at == 2:
            at += callee(values, at)
        return at

    @kernel
    def other_caller(values, at):
        return callee(values, at) + 1

    @kernel
    def both(values, at):
        return first_caller(values, at) + other_caller(values, at)

    @kind
    def root(values, at):
        return both(values, at)

    assert root(np.array([1, 2, 3]), 1) == 1 + 7


def test_inner_kernels_belong_to_their_root_and_get_only_what_they_use():
    def defined(module):
        return [each for each in module.functions if not each.is_declaration]

    values, unused = np.arange(1, 9), np.zeros((2, 2))
    types = (numba.typeof(values), numba.typeof(unused), numba.int64)
    _, result = total_of.numba_dispatcher._inner_of(types)
    (lowered,) = defined(result.library.module)
    lowered.add_function_attribute("noinline")
    dispatcher = total_of_two.numba_dispatcher
    assert dispatcher(values, unused, 2) == 5 * 36
    (result,) = dispatcher.overloads.values()
    root = result.library._final_module
    (inner,) = [each for each in defined(root) if each.name == lowered.name]
    assert inner.linkage == Linkage.internal
    # Passed are the result, the error, 7 and 9 values of the arrays, and the factor; data and size
    # of an array, the factor and the result are used.
    assert len(list(lowered.arguments)) == 2 + 7 + 9 + 1
    assert len(list(inner.arguments)) <= 4


def sorted_sum(values, first):
    """Sort, and return a sum, at such length that a compiler keeps two calls of it."""
    for end in range(values.size - 1, 0, -1):
        for index in range(end):
            if values[index] > values[index + 1]:
                values[index], values[index + 1] = values[index + 1], values[index]
    total = 0
    for index in range(first, values.size):
        total += values[index] * index + values[values[index] % values.size]
        if total % 7 == 3:
            total -= values[(total * 3 + index) % values.size] % 5
        for step in range(total % 4):
            total += values[(step + index) % values.size] ^ step
    return total


def functions_with(decorator, inner, *arguments):
    """Call an inner kernel twice, and return the result and the inner kernel's machine code."""
    called = decorator(inner)

    @kernel
    def twice(value, first, second):
        return called(value, first) * 2 + called(value, second)

    result = twice(*arguments)
    twice.numba_dispatcher.prepare(arguments)
    (compiled,) = twice.numba_dispatcher.overloads.values()
    names = re.findall(r"^(_ZN\S*):$", compiled.library.get_asm_str(), re.MULTILINE)
    return result, [each for each in names if inner.__name__ in each]


def scaled_shortly(value, factor):
    return value * factor + 1


@pytest.mark.parametrize(("decorator", "is_called"), [(kernel, True), (inlined_kernel, False)])
def test_an_inlined_kernel_is_not_called(decorator, is_called):
    values = np.arange(9, dtype=np.int64)[::-1].copy()
    expected = sorted_sum(values.copy(), 0) * 2 + sorted_sum(np.sort(values), 1)
    result, functions = functions_with(decorator, sorted_sum, values, 0, 1)
    assert result == expected
    assert bool(functions) == is_called


@pytest.mark.parametrize(("decorator", "is_called"), [(kernel, False), (outlined_kernel, True)])
def test_an_outlined_kernel_is_always_called(decorator, is_called):
    result, functions = functions_with(decorator, scaled_shortly, 5, 3, 4)
    assert result == 2 * 16 + 21
    assert bool(functions) == is_called
