"""The commands that wait for a response, and their outcomes.

    AWAITING --response--> DONE or FAILED --collected by the caller--> removed
       \\--deadline-------> FAILED, and remembered as ABANDONED: a late response is undone

This module is independent of the kinds of commands: a function in the registration converts the
response to a value. All calls are made under the conductor's lock.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.errors import ClientError, CommandTimeoutError, RegistrationError
from windtunnel.driver.command.codec import Response
from windtunnel.driver.command.response import ErrorResponse

ABANDONED_MAX = 1_024
"""Maximum number of abandoned commands that are remembered. A driver that hangs would otherwise let
them accumulate."""


@dataclass(slots=True)
class Registration:
    """A command that was sent to the driver, and its outcome."""

    correlation_id: int
    deadline_ns: int
    complete: Callable[[Any], Any]
    """Function that converts the response to the command's result. If it raises, the command
    fails."""
    undo: Callable[[], object] | None
    """Function that releases the added resource if the response was late or `complete` failed."""
    is_collected: bool
    """Whether a caller collects the outcome. If not, an error is passed to the error handler."""
    is_awaiting: bool = True
    value: Any = None
    error: ClientError | None = None


class Registrations:
    """The commands of a client whose outcomes have not been collected."""

    def __init__(self, on_error: Callable[[ClientError], object]) -> None:
        self._on_error = on_error
        self._registrations: dict[int, Registration] = {}
        self._abandoned: dict[int, Callable[[], object] | None] = {}

    def add(self, registration: Registration) -> None:
        """Add a command that is about to be sent."""
        self._registrations[registration.correlation_id] = registration

    def find(self, correlation_id: int) -> Registration | None:
        """Return the command with a correlation id, or None if its outcome was collected."""
        return self._registrations.get(correlation_id)

    def is_active(self, correlation_id: int) -> bool:
        """Return whether a command is still waiting for the driver's response."""
        found = self._registrations.get(correlation_id)
        return found is not None and found.is_awaiting

    @property
    def has_active(self) -> bool:
        """Whether any command is still waiting for the driver's response."""
        return any(item.is_awaiting for item in self._registrations.values())

    def take(self, correlation_id: int) -> Registration | None:
        """Remove a command and return it, or return None if the command has no outcome yet."""
        found = self._registrations.get(correlation_id)
        if found is None or found.is_awaiting:
            return None
        return self._registrations.pop(correlation_id)

    def abandon(self, correlation_id: int) -> None:
        """Remove a command. If its response arrives later, the added resource is released."""
        found = self._registrations.pop(correlation_id, None)
        if found is not None and found.is_awaiting:
            self._expect_late(found)

    def _expect_late(self, item: Registration) -> None:
        self._abandoned[item.correlation_id] = item.undo
        if len(self._abandoned) > ABANDONED_MAX:
            del self._abandoned[next(iter(self._abandoned))]

    def on_response(self, correlation_id: int, response: Response) -> None:
        """Store a response as its command's outcome. Responses to other clients' commands are
        ignored.
        """
        if correlation_id in self._abandoned:
            undo = self._abandoned.pop(correlation_id)
            if undo is not None and not isinstance(response, ErrorResponse):
                undo()
            return
        found = self._registrations.get(correlation_id)
        if found is None or not found.is_awaiting:
            return
        if isinstance(response, ErrorResponse):
            error = RegistrationError(response.error_code, response.message, correlation_id)
            self._settle(found, error=error)
            return
        try:
            value = found.complete(response)
        except (DriverError, OSError) as error:
            failed = ClientError(
                f"command {correlation_id} succeeded, but its result is unusable: {error}"
            )
            failed.__cause__ = error
            if found.undo is not None:
                found.undo()
            self._settle(found, error=failed)
            return
        self._settle(found, value=value)

    def on_timer(self, now_ns: int, timeout_ms: int) -> None:
        """Mark the commands whose deadline has passed as failed."""
        due = [
            item
            for item in self._registrations.values()
            if item.is_awaiting and now_ns > item.deadline_ns
        ]
        for item in due:
            self._expect_late(item)
            error = CommandTimeoutError(
                f"no response from the driver to command {item.correlation_id} within "
                f"{timeout_ms} ms"
            )
            self._settle(item, error=error)

    def _settle(
        self, item: Registration, value: Any = None, error: ClientError | None = None
    ) -> None:
        item.is_awaiting, item.value, item.error = False, value, error
        if not item.is_collected:
            del self._registrations[item.correlation_id]
            if error is not None:
                self._on_error(error)
