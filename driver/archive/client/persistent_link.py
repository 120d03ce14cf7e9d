"""A persistent subscription's way to its archive: a session, made again as often as it takes."""

from collections.abc import Callable

from windtunnel.driver.archive.client.connecting import Connecting
from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import ArchiveClosedError
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client import Aeron

PAUSE_NS = 100_000_000
"""Between attempts, for an archive that refuses at once."""


class ArchiveLink:
    """One session at a time, or an attempt at one."""

    def __init__(
        self,
        aeron: Aeron,
        context: ArchiveContext,
        clock: Clock,
        tell: Callable[[Exception], object],
    ) -> None:
        self._aeron, self._context, self._clock, self._tell = aeron, context, clock, tell
        self._session: ControlSession | None = None
        self._connecting: Connecting | None = None
        self._next_attempt_ns = 0

    @property
    def session(self) -> ControlSession:
        """The session. Raises ArchiveClosedError where there is none."""
        if self._session is None:
            raise ArchiveClosedError("there is no session with the archive")
        return self._session

    @property
    def is_connected(self) -> bool:
        """Whether there is a session, and the archive at its other end."""
        return self._session is not None and self._session.is_connected

    def connect(self) -> bool:
        """One step towards a session. Returns whether there is one; failures are told."""
        if self._clock.now_ns() < self._next_attempt_ns:
            return False
        try:
            if self._connecting is None:
                self._connecting = Connecting(self._aeron, self._context, self._clock)
            self._session = self._connecting.poll()
        except DriverError as error:
            self._connecting = None
            self._next_attempt_ns = self._clock.now_ns() + PAUSE_NS
            self._tell(error)
            return False
        if self._session is None:
            return False
        self._connecting = None
        return True

    def listen(self) -> None:
        """Hear what the archive says, and tell errors that answer no request."""
        if self._session is not None:
            self._session.poll()
            while (error := self._session.take_unclaimed()) is not None:
                self._tell(error)

    def close(self) -> None:
        """Let go of session and attempt."""
        if self._connecting is not None:
            self._connecting.close()
        if self._session is not None:
            self._session.close()
        self._connecting = self._session = None
