"""The errors with which the conductor refuses or delays a client command."""

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.command.command_type import ErrorCode


class CommandError(DriverError):
    """A client command is refused. The client receives the error code and the message."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.GENERIC_ERROR) -> None:
        super().__init__(message)
        self.code = code


class CommandPendingError(DriverError):
    """A command cannot be executed yet. It stays in the ring buffer and is retried later."""


class NamePendingError(CommandPendingError):
    """A command waits for a host name lookup. Other commands are executed in the meantime."""
