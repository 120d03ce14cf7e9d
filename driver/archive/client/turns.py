"""Work in turns: what has to wait gives way instead of blocking.

    def operation(session):            generator: each `yield` is "nothing to do just now"
        answer = yield from session.ask(...)
        return answer.relevant_id

Whoever runs it decides what to do between turns: sleep, let other asyncio tasks run, or poll
something else in the same duty cycle. So each operation is written once for all of them.
"""

from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

_RESULT = TypeVar("_RESULT")

Turns: TypeAlias = Generator[None, None, _RESULT]
"""An operation that takes turns and returns a result at the end."""


def until(look: Callable[[], _RESULT | None]) -> Turns[_RESULT]:
    """Look again each turn until there is something. Raises what looking raises."""
    while (found := look()) is None:
        yield
    return found


def finished(turns: Turns[_RESULT]) -> tuple[bool, _RESULT | None]:
    """Take one turn. Returns whether it was the last, and the result if so."""
    try:
        next(turns)
    except StopIteration as end:
        return True, end.value
    return False, None
