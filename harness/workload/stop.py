"""Being asked to end: a signal leaves a note that the loops of a workload look at between polls.

A handler of signals that raised would break into the middle of an offer or of a file's write.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from windtunnel.driver.archive.client import ArchiveClosedError, ArchiveTimeoutError
from windtunnel.driver.client import errors
from windtunnel.driver.client.aeron import Aeron

TIMEOUTS = (*errors.TIMEOUTS, ArchiveClosedError, ArchiveTimeoutError)
"""What a client says when one of its two sides had no turn for too long."""


class SubjectError(Exception):
    """The subject did not do what it promises; the text says what was expected and found."""


class GaveUp(SubjectError):
    """What somebody else has to do all the time was not done for so long that this one was left."""


@contextmanager
def blaming_time(aeron: Aeron) -> Iterator[None]:
    """What is found wrong after the client was left by its driver is that it was left."""
    try:
        yield
    except SubjectError as error:
        if isinstance(aeron.termination, TIMEOUTS):
            raise GaveUp(str(error)) from error
        raise


class Stopped(Exception):
    """The workload was asked to end before its stream did."""

    def __init__(self, number: int) -> None:
        super().__init__(f"asked to end by {signal.Signals(number).name}")
        self.number = number


class Stop:
    """Whether anybody asked this process to end."""

    def __init__(self) -> None:
        self.number = 0

    @classmethod
    def on_signals(cls) -> "Stop":
        """One that hears SIGTERM and SIGINT."""
        stop = cls()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop.ask)
        return stop

    def ask(self, number: int, frame: FrameType | None = None) -> None:
        self.number = number

    def check(self) -> None:
        """Raise Stopped if somebody asked."""
        if self.number:
            raise Stopped(self.number)
