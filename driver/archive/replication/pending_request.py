"""Sends requests to another archive, one at a time, and polls for responses without blocking.

Any error from the other archive ends the replication, even if it is not the response to a request.
Source: archive-protocol 7.
"""

from typing import Any

from windtunnel.driver.archive.protocol.codes import ControlResponseCode
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.protocol.responses import ControlResponse, RecordingDescriptor
from windtunnel.driver.archive.replication.source_archive import SourceArchive, SourceArchiveError
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication


class PendingRequest:
    """Sends the requests of a replication session, one at a time, and polls for each response."""

    def __init__(self, archive: SourceArchive, timeout_ns: int, now_ns: int) -> None:
        self._archive, self._timeout_ns = archive, timeout_ns
        self._now_ns = now_ns
        self._reset()

    def _reset(self) -> None:
        """Discard the state of the last request, and start the timeout of the next request."""
        self._correlation_id: int | None = None
        self._response: Message | None = None
        self._deadline_ns = self._now_ns + self._timeout_ns

    @property
    def _is_overdue(self) -> bool:
        """Return whether the response to the current request is overdue."""
        is_pending = self._correlation_id is not None and self._response is None
        return is_pending and self._now_ns > self._deadline_ns

    def _check_timeout(self, text: str) -> int:
        """Raise SourceArchiveError if the timeout has expired. Otherwise return 0 as the work
        count.
        """
        if self._now_ns > self._deadline_ns:
            raise SourceArchiveError(f"timeout: {text}")
        return 0

    def _receive(self) -> None:
        """Receive the source archive's messages. Raises SourceArchiveError if one of them is an
        error.
        """
        for message in self._archive.poll():
            if isinstance(message, ControlResponse):
                if message.code == ControlResponseCode.ERROR:
                    raise SourceArchiveError(
                        f"error from the source archive: {message.error_message}"
                    )
                if message.correlation_id == self._correlation_id:
                    self._response = message
            elif isinstance(message, RecordingDescriptor) and (
                message.correlation_id == self._correlation_id
            ):
                self._response = message

    def _request_response(
        self, kind: type[Message], via: ExclusivePublication | None = None, **values: Any
    ) -> Message | None:
        """Send a request unless it was already sent. Returns the response, or None if it has not
        arrived yet.
        """
        if self._correlation_id is None:
            self._correlation_id = self._archive.send_request(kind, via, **values)
        if self._response is None:
            self._check_timeout(f"no response to {kind.__name__}")
        return self._response
