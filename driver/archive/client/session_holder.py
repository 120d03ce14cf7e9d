"""The common part of the blocking and the asyncio client of an archive: the control session.

Messages that are not responses, that is signals and unclaimed errors, are read while a call awaits
its response; a program that makes no calls for a while should call a `poll_for` method from time to
time. Thread safe; calls are serialized.
"""

import threading

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import ArchiveClosedError


class SessionHolder:
    """Holds a control session with an archive."""

    def __init__(self, session: ControlSession) -> None:
        self.session = session
        self.aeron = session.aeron
        self.lock = threading.RLock()

    @property
    def control_session_id(self) -> int:
        """The id of the session, assigned by the archive."""
        return self.session.control_session_id

    @property
    def archive_id(self) -> int:
        """The archive's id, received when connecting; -1 if the archive is too old to have one."""
        return self.session.archive_id

    @property
    def is_closed(self) -> bool:
        """Whether the session was closed by this client."""
        return self.session.is_closed

    @property
    def is_connected(self) -> bool:
        """Whether the archive is connected."""
        return self.session.is_connected

    def poll_for_recording_signals(self) -> int:
        """Receive recording signals, without waiting. Returns the number of messages received."""
        with self.lock:
            self._require_connected()
            return self.session.poll()

    def poll_for_error_response(self) -> str | None:
        """Return the text of an unclaimed error, or None, without waiting."""
        with self.lock:
            self._require_connected()
            self.session.poll()
            error = self.session.take_unclaimed()
            return None if error is None else str(error)

    def check_for_error_response(self) -> None:
        """Raise an unclaimed error, or pass it to the error handler."""
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
            raise ArchiveClosedError("the archive has closed the session")

    def close(self) -> None:
        """Close the session; its recordings and replays continue. May be called again."""
        with self.lock:
            self.session.close()
