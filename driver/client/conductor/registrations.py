"""Commands that wait for their answer, and what becomes of each.

    AWAITING --answer--> DONE or FAILED --taken by who asked--> gone
       \\--deadline-----> FAILED, and stays here as ABANDONED: a late answer is undone

Knows nothing of what a command is about: an answer is turned into a value by a function that came
with the command. All calls are made under the conductor's lock.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.errors import ClientError, CommandTimeoutError, RegistrationError
from windtunnel.driver.command.codec import Response
from windtunnel.driver.command.response import ErrorResponse

ABANDONED_MAX = 1_024
"""A driver that never answers shall not fill our memory."""


@dataclass(slots=True)
class Registration:
    """One command."""

    correlation_id: int
    deadline_ns: int
    complete: Callable[[Any], Any]
    """Makes the value of the answer; what it raises fails the command."""
    undo: Callable[[], object] | None
    """Takes back at the driver what nobody waits for any more, or what we could not use."""
    is_collected: bool
    """Whether somebody comes for the outcome; where nobody does, failures are reported."""
    is_awaiting: bool = True
    value: Any = None
    error: ClientError | None = None


class Registrations:
    """The commands of one client."""

    def __init__(self, on_error: Callable[[ClientError], object]) -> None:
        self._on_error = on_error
        self._known: dict[int, Registration] = {}
        self._abandoned: dict[int, Callable[[], object] | None] = {}

    def add(self, registration: Registration) -> None:
        """A command was sent."""
        self._known[registration.correlation_id] = registration

    def find(self, correlation_id: int) -> Registration | None:
        """The command of that id, unless its outcome was taken."""
        return self._known.get(correlation_id)

    def is_active(self, correlation_id: int) -> bool:
        """Whether the driver still owes the answer."""
        found = self._known.get(correlation_id)
        return found is not None and found.is_awaiting

    @property
    def has_active(self) -> bool:
        """Whether the driver still owes any answer."""
        return any(item.is_awaiting for item in self._known.values())

    def take(self, correlation_id: int) -> Registration | None:
        """Remove and return a command that has its outcome; None while it is awaited."""
        found = self._known.get(correlation_id)
        if found is None or found.is_awaiting:
            return None
        return self._known.pop(correlation_id)

    def abandon(self, correlation_id: int) -> None:
        """Nobody waits any more: a late answer is to be undone."""
        found = self._known.pop(correlation_id, None)
        if found is not None and found.is_awaiting:
            self._expect_late(found)

    def _expect_late(self, item: Registration) -> None:
        self._abandoned[item.correlation_id] = item.undo
        if len(self._abandoned) > ABANDONED_MAX:
            del self._abandoned[next(iter(self._abandoned))]

    def on_response(self, correlation_id: int, response: Response) -> None:
        """The driver has answered some command, perhaps one of ours."""
        if correlation_id in self._abandoned:
            undo = self._abandoned.pop(correlation_id)
            if undo is not None and not isinstance(response, ErrorResponse):
                undo()
            return
        found = self._known.get(correlation_id)
        if found is None or not found.is_awaiting:
            return
        if isinstance(response, ErrorResponse):
            refusal = RegistrationError(response.error_code, response.message, correlation_id)
            self._settle(found, error=refusal)
            return
        try:
            value = found.complete(response)
        except (DriverError, OSError) as error:
            failure = ClientError(f"command {correlation_id} succeeded, but: {error}")
            failure.__cause__ = error
            if found.undo is not None:
                found.undo()
            self._settle(found, error=failure)
            return
        self._settle(found, value=value)

    def on_timer(self, now_ns: int, timeout_ms: int) -> None:
        """Fail what has waited too long."""
        due = [
            item for item in self._known.values() if item.is_awaiting and now_ns > item.deadline_ns
        ]
        for item in due:
            self._expect_late(item)
            text = f"no answer from the driver within {timeout_ms} ms"
            self._settle(item, error=CommandTimeoutError(f"{text} to {item.correlation_id}"))

    def _settle(
        self, item: Registration, value: Any = None, error: ClientError | None = None
    ) -> None:
        item.is_awaiting, item.value, item.error = False, value, error
        if not item.is_collected:
            del self._known[item.correlation_id]
            if error is not None:
                self._on_error(error)
