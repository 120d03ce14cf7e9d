"""Non-blocking archive operations, written as generators that yield instead of waiting.

    def operation(session):            generator: `yield` means "nothing to do at the moment"
        response = yield from session.request(...)
        return response.relevant_id

The caller decides what happens between steps: it can sleep, let other asyncio tasks run, or
poll something else in the same duty cycle. Therefore one implementation of each operation is
enough.
"""

from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

_RESULT = TypeVar("_RESULT")

Turns: TypeAlias = Generator[None, None, _RESULT]
"""The type of a non-blocking operation: a generator that yields while it must wait, then returns a
result."""


def until(poll: Callable[[], _RESULT | None]) -> Turns[_RESULT]:
    """Call `poll` until it returns a result other than None, and yield between the calls. Returns
    this result.
    """
    while (result := poll()) is None:
        yield
    return result


def advance(turns: Turns[_RESULT]) -> tuple[bool, _RESULT | None]:
    """Take one step of an operation. Returns whether the operation is complete, and its result
    (None until then).
    """
    try:
        next(turns)
    except StopIteration as end:
        return True, end.value
    return False, None
