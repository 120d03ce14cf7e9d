"""What can go wrong between an archive and its client, as exceptions with Aeron's codes.

    ArchiveError            the archive refused a request: `code` is its ErrorCode
      ArchiveTimeoutError   it did not answer in time
      ArchiveClosedError    the session is over: closed by us, or the archive is gone

Source: archive-protocol 1.7, 2.8.
"""

from windtunnel.driver.archive.protocol.codes import ControlResponseCode, ErrorCode
from windtunnel.driver.archive.protocol.responses import ControlResponse
from windtunnel.driver.base.errors import DriverError


class ArchiveError(DriverError):
    """A request failed; `code` is the archive's, as a plain number where we do not know it."""

    def __init__(
        self, message: str, code: int = ErrorCode.GENERIC, correlation_id: int = -1
    ) -> None:
        super().__init__(message)
        self.code = code
        self.correlation_id = correlation_id


class ArchiveTimeoutError(ArchiveError):
    """The archive did not answer, or could not be reached, in time."""


class ArchiveClosedError(ArchiveError):
    """The session is closed; nothing can be asked any more."""


def code_name(code: int) -> str:
    """An error code as people read it."""
    known = next((each.name for each in ErrorCode if each == code), "unknown code")
    return f"{known} ({code})"


def refusal(what: str, response: ControlResponse) -> ArchiveError:
    """The exception that an answer means; only one that is not OK can be asked for.

    An archive says in two ways that it does not know a recording; here both have the same code.
    """
    correlation_id = response.correlation_id
    if response.code == ControlResponseCode.ERROR:
        code = response.relevant_id
        text = f"{what}: {code_name(code)}: {response.error_message}"
        return ArchiveError(text, code, correlation_id)
    codes = {
        ControlResponseCode.RECORDING_UNKNOWN: ErrorCode.UNKNOWN_RECORDING,
        ControlResponseCode.SUBSCRIPTION_UNKNOWN: ErrorCode.UNKNOWN_SUBSCRIPTION,
    }
    code = codes.get(response.code, ErrorCode.GENERIC)
    text = f"{what}: {response.code.name} {response.relevant_id}"
    return ArchiveError(text, code, correlation_id)
