"""The exceptions that a client raises, with Aeron's error codes.

    ClientError                        code
      RegistrationError                the driver's     the driver refused a command
      ChannelEndpointError             4                a socket of a channel failed
      CommandTimeoutError              1000             the driver did not respond to a command
      DriverBufferFullError            1004             the command ring buffer is full
      ClosedError, ReentrantCallError  11               the object is closed, or busy in a callback
      MaxPositionExceededError         11               the stream has no terms left
      ClientTerminatedError            11               the client closed itself because
        DriverTimeoutError             1000                 the driver died or was shut down
        ClientTimeoutError             1001                 the driver timed out this client
        ConductorServiceTimeoutError   1002                 the conductor was serviced too late
        BroadcastLappedError           11                   the client missed responses

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
    """The base class of all errors that the client API raises."""

    CODE: ClassVar[int] = ErrorCode.GENERIC_ERROR

    @property
    def code(self) -> int:
        """The Aeron error code: an ErrorCode, or a client error code of 1000 or more."""
        return self.CODE


class RegistrationError(ClientError):
    """The driver refused a command.

    `code` is the driver's ErrorCode. `correlation_id` identifies the command.
    """

    def __init__(self, code: int, message: str, correlation_id: int = -1) -> None:
        super().__init__(f"{ErrorCode.of(code).name} ({code}): {message}")
        self._code = ErrorCode.of(code)
        self.correlation_id = correlation_id

    @property
    def code(self) -> ErrorCode:
        """The ErrorCode that the driver sent."""
        return self._code


class ChannelEndpointError(ClientError):
    """A socket of an open channel failed. `status_counter_id` identifies the channel."""

    CODE = ErrorCode.CHANNEL_ENDPOINT_ERROR

    def __init__(self, status_counter_id: int, message: str) -> None:
        super().__init__(f"channel with status counter {status_counter_id}: {message}")
        self.status_counter_id = status_counter_id


class CommandTimeoutError(ClientError):
    """The driver did not respond to a command within the driver timeout."""

    CODE = DRIVER_TIMEOUT


class DriverBufferFullError(ClientError):
    """The command ring buffer has no space for a command.

    Either the driver does not read the ring buffer, or the command is too long for it.
    """

    CODE = DRIVER_BUFFER_FULL


class ClosedError(ClientError):
    """The client, publication or subscription is closed and can no longer be used."""


class ReentrantCallError(ClientError):
    """A handler of the client conductor called a method that changes the conductor's state."""


class MaxPositionExceededError(ClientError):
    """The stream has reached its maximum possible position."""


class ClientTerminatedError(ClientError):
    """The client cannot continue and has closed itself. The message gives the reason."""


class DriverTimeoutError(ClientTerminatedError, cnc_file.DriverTimeoutError):
    """The driver died, was shut down, or never started."""

    CODE = DRIVER_TIMEOUT


class ClientTimeoutError(ClientTerminatedError):
    """The driver timed out this client and released its resources.

    The driver received no keepalive from the client for the client liveness timeout.
    """

    CODE = CLIENT_TIMEOUT


class ConductorServiceTimeoutError(ClientTerminatedError):
    """The client conductor paused for so long that the driver may have timed out the client."""

    CODE = CONDUCTOR_SERVICE_TIMEOUT


class BroadcastLappedError(ClientTerminatedError):
    """The driver transmitted responses faster than the client received them.

    It is unknown which responses were lost.
    """


TIMEOUTS = (
    CommandTimeoutError,
    DriverTimeoutError,
    ClientTimeoutError,
    ConductorServiceTimeoutError,
)
"""The error classes for a timeout of the driver or of the client."""
