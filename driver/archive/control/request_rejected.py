"""The exception for a rejected request, with an error code and a message for the client."""

import errno

from windtunnel.driver.archive.protocol.codes import ErrorCode
from windtunnel.driver.base.errors import DriverError

_FULL = (errno.ENOSPC, errno.EDQUOT)


class RequestRejected(DriverError):
    """A request was rejected. The client receives an error response."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.GENERIC) -> None:
        super().__init__(text)
        self.code = code


def unknown_recording(recording_id: int) -> RequestRejected:
    """Return the exception for a recording id that does not exist or no longer exists."""
    return RequestRejected(f"unknown recording id: {recording_id}", ErrorCode.UNKNOWN_RECORDING)


def code_of(error: DriverError) -> ErrorCode:
    """Return the error code that the client receives for an exception."""
    if isinstance(error, RequestRejected):
        return error.code
    cause = error.__cause__
    is_full = isinstance(cause, OSError) and cause.errno in _FULL
    return ErrorCode.STORAGE_SPACE if is_full else ErrorCode.GENERIC
