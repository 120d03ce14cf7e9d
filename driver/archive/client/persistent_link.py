"""Opens the control session of a persistent subscription, and reopens it whenever it is lost."""

from collections.abc import Callable

from windtunnel.driver.archive.client.connecting import Connecting
from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import ArchiveClosedError
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client import Aeron

PAUSE_NS = 100_000_000
"""The pause in nanoseconds between attempts to connect."""


class ArchiveLink:
    """A link to an archive: an open control session, or an attempt to open one."""

    def __init__(
        self,
        aeron: Aeron,
        context: ArchiveContext,
        clock: Clock,
        on_error: Callable[[Exception], object],
    ) -> None:
        self._aeron, self._context, self._clock = aeron, context, clock
        self._on_error = on_error
        self._session: ControlSession | None = None
        self._connecting: Connecting | None = None
        self._next_attempt_ns = 0

    @property
    def session(self) -> ControlSession:
        """The control session. Raises ArchiveClosedError if no session is open."""
        if self._session is None:
            raise ArchiveClosedError("not connected to the archive")
        return self._session

    @property
    def is_connected(self) -> bool:
        """Return whether a session is open and the archive is connected."""
        return self._session is not None and self._session.is_connected

    def connect(self) -> bool:
        """Take one step towards opening a session. Returns whether the session is open.
        Errors are reported to the error handler.
        """
        if self._clock.now_ns() < self._next_attempt_ns:
            return False
        try:
            if self._connecting is None:
                self._connecting = Connecting(self._aeron, self._context, self._clock)
            self._session = self._connecting.poll()
        except DriverError as error:
            self._connecting = None
            self._next_attempt_ns = self._clock.now_ns() + PAUSE_NS
            self._on_error(error)
            return False
        if self._session is None:
            return False
        self._connecting = None
        return True

    def poll(self) -> None:
        """Receive messages from the archive. Errors that belong to no pending request are passed to
        the error handler.
        """
        if self._session is not None:
            self._session.poll()
            while (error := self._session.take_unclaimed()) is not None:
                self._on_error(error)

    def close(self) -> None:
        """Close the session, or abandon the attempt to open one."""
        if self._connecting is not None:
            self._connecting.close()
        if self._session is not None:
            self._session.close()
        self._connecting = self._session = None
