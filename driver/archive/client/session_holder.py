"""What the waiting and the asyncio client of an archive have in common: one session, looked after.

What comes without being asked, signals and errors of nobody, is read whenever an answer is awaited;
a program that asks nothing for a while calls one of the `poll_for` methods now and then. Any thread
may call; one call is made at a time.
"""

import threading

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import ArchiveClosedError


class SessionHolder:
    """One session with one archive."""

    def __init__(self, session: ControlSession) -> None:
        self.session = session
        self.aeron = session.aeron
        self.lock = threading.RLock()

    @property
    def control_session_id(self) -> int:
        """The session's id, which the archive chose."""
        return self.session.control_session_id

    @property
    def archive_id(self) -> int:
        """The archive's id, as it told when we connected; -1 where it is too old to have one."""
        return self.session.archive_id

    @property
    def is_closed(self) -> bool:
        """Whether the session was closed on our side."""
        return self.session.is_closed

    @property
    def is_connected(self) -> bool:
        """Whether the archive still holds its end."""
        return self.session.is_connected

    def poll_for_recording_signals(self) -> int:
        """Hear what happened to our recordings, without waiting. Returns the messages read."""
        with self.lock:
            self._require_connected()
            return self.session.poll()

    def poll_for_error_response(self) -> str | None:
        """The text of an error that belongs to no call, if there is one; does not wait."""
        with self.lock:
            self._require_connected()
            self.session.poll()
            error = self.session.take_unclaimed()
            return None if error is None else str(error)

    def check_for_error_response(self) -> None:
        """Raise an error that belongs to no call, or give it to the error handler."""
        with self.lock:
            self._require_connected()
            self.session.poll()
            if self.session.context.error_handler is not None:
                self.session.report_unclaimed()
                return
            error = self.session.take_unclaimed()
            if error is not None:
                raise error

    def _require_connected(self) -> None:
        self.session.require_open()
        if not self.session.is_connected:
            raise ArchiveClosedError("the archive has closed its end of the session")

    def close(self) -> None:
        """Close the session; what it started in the archive goes on. May be called again."""
        with self.lock:
            self.session.close()
