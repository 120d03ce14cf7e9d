"""Errors of client commands."""

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.command.command_type import ErrorCode


class CommandError(DriverError):
    """The driver refuses a command; the client receives the text and the error code."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.GENERIC_ERROR) -> None:
        super().__init__(message)
        self.code = code


class CommandPendingError(DriverError):
    """The command cannot be executed yet; it stays in the ring buffer and is retried."""
