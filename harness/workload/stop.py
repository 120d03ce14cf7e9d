"""Stops a workload on a signal by setting a flag that its loops check between polls.

A signal handler that raised an exception could interrupt an offer or the writing of a file.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from windtunnel.driver.archive.client import ArchiveClosedError, ArchiveTimeoutError
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client import errors as client_errors
from windtunnel.driver.client.aeron import Aeron

TIMEOUTS = (*client_errors.TIMEOUTS, ArchiveClosedError, ArchiveTimeoutError)
"""Client errors that indicate a driver or client that was not scheduled for too long."""


class SubjectError(Exception):
    """Raised for a contract violation by the software under test. The message says what was
    expected.
    """


class GaveUp(SubjectError):
    """Raised when a workload gives up because another process has failed to act for too long."""


@contextmanager
def timeouts_as_gave_up(aeron: Aeron) -> Iterator[None]:
    """Convert a SubjectError to GaveUp if the client lost its driver because of a timeout."""
    try:
        yield
    except SubjectError as error:
        if isinstance(aeron.termination, TIMEOUTS):
            raise GaveUp(str(error)) from error
        raise


class Stopped(Exception):
    """Raised when a workload is stopped before its stream has ended."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


def error_text(error: BaseException) -> str:
    """Return an error as one sentence. The type of an exception is only part of it if the message
    was not written for the user.
    """
    if isinstance(error, SubjectError | Stopped | DriverError):
        return str(error)
    return f"{type(error).__name__}: {error}"


class Stop:
    """A flag that SIGTERM or SIGINT sets to stop this process."""

    def __init__(self) -> None:
        self.number = 0

    @classmethod
    def on_signals(cls) -> "Stop":
        """Create a flag and install the handlers of SIGTERM and SIGINT."""
        stop = cls()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop.request)
        return stop

    def request(self, number: int, frame: FrameType | None = None) -> None:
        self.number = number

    def check(self) -> None:
        """Raise Stopped if a stop signal was received."""
        if self.number:
            raise Stopped(self.number)
