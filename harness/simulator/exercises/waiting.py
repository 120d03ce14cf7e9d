"""Exercises are generators that yield what they wait for.

    image = yield Wait(lambda: subscription.images, "an image")      the result, once it is true

Virtual time passes until the condition is true. An exercise fails if that takes too long.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from windtunnel.harness.workload.stop import SubjectError

WAIT_NS = 15_000_000_000
"""Maximum time that an exercise waits: longer than all timeouts of drivers and clients."""

_RESULT = TypeVar("_RESULT")


@dataclass(frozen=True)
class Wait:
    """A condition that an exercise waits for. It holds if its result is true."""

    condition: Callable[[], Any]
    what: str
    """What the exercise waits for."""
    found: Callable[[], object] | None = None
    """Describes what there is instead."""


Routine = Generator[Wait, Any, _RESULT]
"""A generator that yields what it waits for, and receives the results of the conditions."""


class Waiting:
    """A routine that is run step by step."""

    def __init__(self, routine: Routine[None], clock_ns: Callable[[], int]) -> None:
        self._routine, self._clock_ns = routine, clock_ns
        self._wait = Wait(lambda: True, "the start")
        self._since_ns = clock_ns()
        self.is_over = False

    def step(self) -> bool:
        """Run the routine until it has to wait. Returns whether it has run.

        Raises SubjectError if it has waited too long.
        """
        has_run = False
        while not self.is_over:
            result = self._wait.condition()
            if not result:
                if self._clock_ns() - self._since_ns > WAIT_NS:
                    seconds = WAIT_NS // 1_000_000_000
                    found = f", found {self._wait.found()}" if self._wait.found else ""
                    raise SubjectError(f"expected {self._wait.what} within {seconds} s{found}")
                break
            try:
                self._wait = self._routine.send(None if self._is_new else result)
            except StopIteration:
                self.is_over = True
            self._is_new = False
            self._since_ns = self._clock_ns()
            has_run = True
        return has_run

    _is_new = True


def require(condition: object, what: str) -> None:
    """Raise SubjectError with a text unless a condition is true."""
    if not condition:
        raise SubjectError(f"expected {what}")
