"""What can go wrong between a client and its driver, as exceptions."""

from driver.base.errors import DriverError
from driver.command.command_type import ErrorCode


class ClientError(DriverError):
    """Anything that a client's caller may want to catch."""


class RegistrationError(ClientError):
    """The driver refused a command; `code` is its ErrorCode."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{ErrorCode.of(code).name} ({code}): {message}")
        self.code = ErrorCode.of(code)


class DriverGoneError(ClientError):
    """The driver died, closed, or gave this client up; the client is closed."""


class CommandTimeoutError(ClientError):
    """The driver did not answer a command in time."""


class ClosedError(ClientError):
    """The client, publication or subscription was closed before."""
