"""The exceptions of the archive client, with Aeron's error codes.

    ArchiveError            the archive rejected a request: `code` is its ErrorCode
      ArchiveTimeoutError   the archive did not respond in time
      ArchiveClosedError    the client closed the session, or the archive is disconnected

Source: archive-protocol 1.7, 2.8.
"""

from windtunnel.driver.archive.protocol.codes import ControlResponseCode, ErrorCode
from windtunnel.driver.archive.protocol.responses import ControlResponse
from windtunnel.driver.base.errors import DriverError


class ArchiveError(DriverError):
    """A request failed. `code` is the archive's error code, which may be unknown to this client."""

    def __init__(
        self, message: str, code: int = ErrorCode.GENERIC, correlation_id: int = -1
    ) -> None:
        super().__init__(message)
        self.code = code
        self.correlation_id = correlation_id


class ArchiveTimeoutError(ArchiveError):
    """The archive did not respond in time, or could not be reached in time."""


class ArchiveClosedError(ArchiveError):
    """The control session is closed, or the archive is disconnected."""


def code_name(code: int) -> str:
    """Return the name and number of an error code as text."""
    known = next((each.name for each in ErrorCode if each == code), "unknown code")
    return f"{known} ({code})"


def error_from_response(name: str, response: ControlResponse) -> ArchiveError:
    """Return an exception for a response whose code is not OK.

    An archive can report an unknown recording in two ways. The exception has the same code in both
    cases.
    """
    correlation_id = response.correlation_id
    if response.code == ControlResponseCode.ERROR:
        code = response.relevant_id
        text = f"{name}: {code_name(code)}: {response.error_message}"
        return ArchiveError(text, code, correlation_id)
    codes = {
        ControlResponseCode.RECORDING_UNKNOWN: ErrorCode.UNKNOWN_RECORDING,
        ControlResponseCode.SUBSCRIPTION_UNKNOWN: ErrorCode.UNKNOWN_SUBSCRIPTION,
    }
    code = codes.get(response.code, ErrorCode.GENERIC)
    text = f"{name}: {response.code.name} {response.relevant_id}"
    return ArchiveError(text, code, correlation_id)
