"""Why a request is not granted: an error code and a text for its client."""

import errno

from windtunnel.driver.archive.protocol.codes import ErrorCode
from windtunnel.driver.base.errors import DriverError

_FULL = (errno.ENOSPC, errno.EDQUOT)


class RequestRejected(DriverError):
    """The answer to a request that cannot be granted."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.GENERIC) -> None:
        super().__init__(text)
        self.code = code


def unknown_recording(recording_id: int) -> RequestRejected:
    """There is none of that id, or none any more."""
    return RequestRejected(f"unknown recording id: {recording_id}", ErrorCode.UNKNOWN_RECORDING)


def code_of(error: DriverError) -> ErrorCode:
    """How a client is told of this: a full disk has a code of its own."""
    if isinstance(error, RequestRejected):
        return error.code
    cause = error.__cause__
    is_full = isinstance(cause, OSError) and cause.errno in _FULL
    return ErrorCode.STORAGE_SPACE if is_full else ErrorCode.GENERIC
