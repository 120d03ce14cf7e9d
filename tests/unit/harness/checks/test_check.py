"""The decorator of own checks: the functions that it accepts, their order and their names."""

import pytest

from windtunnel.harness.checks import check as decorator
from windtunnel.harness.checks.check import CHECKS_MAX, defined, line_of, name_of


@pytest.fixture(autouse=True)
def _no_checks():
    before = list(defined)
    defined.clear()
    yield
    defined[:] = before


def made(name):
    def function(evidence):
        return None

    function.__name__ = name
    return function


def test_keeps_the_function_and_the_order():
    second, first = made("second"), made("first")
    assert decorator(second) is second
    decorator(first)
    assert [name_of(each) for each in defined] == ["second", "first"]
    assert line_of(second) == made("other").__code__.co_firstlineno


def test_two_checks_cannot_have_one_name():
    decorator(made("same"))
    with pytest.raises(ValueError, match="two checks have the name 'same'"):
        decorator(made("same"))
    assert len(defined) == 1


def test_their_number_is_limited():
    for number in range(CHECKS_MAX):
        decorator(made(f"check_{number}"))
    with pytest.raises(ValueError, match="at most 100 checks"):
        decorator(made("one_more"))


def test_only_functions_are_checks():
    with pytest.raises(TypeError, match="expected a function below @check, found 'text'"):
        decorator("text")


def test_a_check_without_code_has_no_line():
    assert line_of(len) == 0
    assert name_of(len) == "len"
