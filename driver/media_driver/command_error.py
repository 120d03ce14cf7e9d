"""A command that the driver refuses, with the code that its client is told."""

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.command.command_type import ErrorCode


class CommandError(DriverError):
    """Refused for a reason that the text names."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.GENERIC_ERROR) -> None:
        super().__init__(message)
        self.code = code


class NotYetError(DriverError):
    """It can be carried out once an agent has let go of something; it stays in the ring."""
