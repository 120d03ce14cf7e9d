"""The common base of the blocking and the asyncio archive client, which holds a control session.

Signals and unclaimed errors are received while a call waits for its response. An application that
makes no calls for a while should regularly call one of the `poll_for` methods. The holder is
thread-safe: calls are serialized.
"""

import threading

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import ArchiveClosedError


class SessionHolder:
    """Holds a control session with an archive. Base class of the archive clients."""

    def __init__(self, session: ControlSession) -> None:
        self.session = session
        self.aeron = session.aeron
        self.lock = threading.RLock()

    @property
    def control_session_id(self) -> int:
        """The id of the control session. The archive assigns the id."""
        return self.session.control_session_id

    @property
    def archive_id(self) -> int:
        """The archive id, or -1 if the archive's version does not support archive ids."""
        return self.session.archive_id

    @property
    def is_closed(self) -> bool:
        """Return whether this client has closed the session."""
        return self.session.is_closed

    @property
    def is_connected(self) -> bool:
        """Return whether the session is open and the archive is connected."""
        return self.session.is_connected

    def poll_for_recording_signals(self) -> int:
        """Receive recording signals without waiting. Returns the number of messages received."""
        with self.lock:
            self._require_connected()
            return self.session.poll()

    def poll_for_error_response(self) -> str | None:
        """Return the message of an error that belongs to no pending request, or None if there is no
        such error. Does not wait.
        """
        with self.lock:
            self._require_connected()
            self.session.poll()
            error = self.session.take_unclaimed()
            return None if error is None else str(error)

    def check_for_error_response(self) -> None:
        """Pass an error that belongs to no pending request to the error handler, or raise it if no
        handler is set.
        """
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
        """Close the session. Its recordings and replays continue. Repeated calls have no effect."""
        with self.lock:
            self.session.close()
