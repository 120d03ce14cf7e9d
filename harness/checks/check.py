"""The decorator of own checks, and the list of those that a file has defined."""

from collections.abc import Callable
from typing import Any, TypeVar

_CHECK = TypeVar("_CHECK", bound=Callable[..., Any])

CHECKS_MAX = 100
"""Maximum number of checks in a file."""

defined: list[Callable[..., Any]] = []
"""The checks in the order of their definition."""


def check(function: _CHECK) -> _CHECK:
    """Make a function a check: it is called with the evidence of each run of the scenario.

    It returns None if nothing is wrong, a text that says what is wrong, or a list or generator of
    such texts. Its name is that of the check, so two checks of a file have different names.
    """
    if not callable(function):
        raise TypeError(f"expected a function below @check, found {function!r}")
    name = name_of(function)
    if any(name_of(each) == name for each in defined):
        raise ValueError(f"two checks have the name {name!r}")
    if len(defined) == CHECKS_MAX:
        raise ValueError(f"expected at most {CHECKS_MAX} checks in a file")
    defined.append(function)
    return function


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a check."""
    return str(getattr(function, "__name__", type(function).__name__))


def line_of(function: Callable[..., Any]) -> int:
    """Return the line in which a check is defined, or 0 if it is not a plain function."""
    code = getattr(function, "__code__", None)
    return int(getattr(code, "co_firstlineno", 0))
