"""What can go wrong between a client and its driver, as exceptions with Aeron's codes.

    ClientError                        code
      RegistrationError                the driver's     a command was refused
      ChannelEndpointError             4                a socket of a channel failed
      CommandTimeoutError              1000             a command was not answered
      DriverBufferFullError            1004             the command ring takes nothing more
      ClosedError, ReentrantCallError  11               the program used what it may not use
      MaxPositionExceededError         11               a stream has no terms left
      ClientTerminatedError            11               the client is closed for good, because
        DriverTimeoutError             1000                 the driver died or left
        ClientTimeoutError             1001                 the driver gave the client up
        ConductorServiceTimeoutError   1002                 the client came too late
        BroadcastLappedError           11                   the client read too slowly

Source: driver-protocol 7.4; Aeron 1.53, C client.
"""

from typing import ClassVar

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.cnc import cnc_file
from windtunnel.driver.command.command_type import ErrorCode

DRIVER_TIMEOUT = 1000
CLIENT_TIMEOUT = 1001
CONDUCTOR_SERVICE_TIMEOUT = 1002
DRIVER_BUFFER_FULL = 1004


class ClientError(DriverError):
    """Anything that a client's caller may want to catch."""

    CODE: ClassVar[int] = ErrorCode.GENERIC_ERROR

    @property
    def code(self) -> int:
        """Aeron's number: an ErrorCode below 1000, one of the client's own from 1000."""
        return self.CODE


class RegistrationError(ClientError):
    """The driver refused a command; `code` is its ErrorCode, `correlation_id` the command's."""

    def __init__(self, code: int, message: str, correlation_id: int = -1) -> None:
        super().__init__(f"{ErrorCode.of(code).name} ({code}): {message}")
        self._code = ErrorCode.of(code)
        self.correlation_id = correlation_id

    @property
    def code(self) -> ErrorCode:
        """Why the driver refused."""
        return self._code


class ChannelEndpointError(ClientError):
    """A socket of a channel that is in use failed; `status_counter_id` names the channel."""

    CODE = ErrorCode.CHANNEL_ENDPOINT_ERROR

    def __init__(self, status_counter_id: int, message: str) -> None:
        super().__init__(f"channel with status counter {status_counter_id}: {message}")
        self.status_counter_id = status_counter_id


class CommandTimeoutError(ClientError):
    """The driver did not answer a command in time."""

    CODE = DRIVER_TIMEOUT


class DriverBufferFullError(ClientError):
    """The command ring stayed full: its driver does not read, or the command is too long."""

    CODE = DRIVER_BUFFER_FULL


class ClosedError(ClientError):
    """The client, publication or subscription was closed before."""


class ReentrantCallError(ClientError):
    """A callback of the client's conductor tried to change what the conductor is changing."""


class MaxPositionExceededError(ClientError):
    """The stream has reached its last possible position."""


class ClientTerminatedError(ClientError):
    """The client cannot go on and is closed; the text says why."""


class DriverTimeoutError(ClientTerminatedError, cnc_file.DriverTimeoutError):
    """The driver died, was shut down, or was never there."""

    CODE = DRIVER_TIMEOUT


class ClientTimeoutError(ClientTerminatedError):
    """The driver heard nothing of this client for too long and released all that it had."""

    CODE = CLIENT_TIMEOUT


class ConductorServiceTimeoutError(ClientTerminatedError):
    """The client's conductor had no turn for so long that the driver may have given it up."""

    CODE = CONDUCTOR_SERVICE_TIMEOUT


class BroadcastLappedError(ClientTerminatedError):
    """The driver said more than the client could hear; nobody knows what was missed."""


TIMEOUTS = (
    CommandTimeoutError,
    DriverTimeoutError,
    ClientTimeoutError,
    ConductorServiceTimeoutError,
)
"""What a client says when one of its two sides was not there, or had no turn for too long."""
