"""Answers into a session's response publication: in order, and later where there is no room now.

    send --> [ queue ] --> publication

What cannot be offered in three attempts waits; what waits goes before what comes later. One that is
too long for the stream is not sent at all. Source: archive-protocol 2.5.
"""

from collections import deque
from collections.abc import Callable

from windtunnel.driver.archive.protocol.codec import encode
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.logbuffer import publication_result as result

ATTEMPTS = 3
_GONE = (result.NOT_CONNECTED, result.CLOSED, result.MAX_POSITION_EXCEEDED)


class ResponseSender:
    """Writes to one response publication, in the conductor's thread."""

    def __init__(
        self, publication: ExclusivePublication, on_error: Callable[[str], object]
    ) -> None:
        self.publication = publication
        self._on_error = on_error
        self._waiting: deque[bytes] = deque()
        self.is_gone = False
        """Whether nobody listens any more."""

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def send(self, message: Message) -> bool:
        """Send now or later. Returns whether it was now."""
        content = encode(message)
        if not self._waiting and self.try_bytes(content):
            return True
        self._waiting.append(content)
        return False

    def try_send(self, message: Message) -> bool:
        """Send now, before what waits, or not at all."""
        return self.try_bytes(encode(message))

    def try_bytes(self, content: bytes) -> bool:
        """Offer bytes now. Returns whether they were taken, or can never be."""
        for _ in range(ATTEMPTS):
            answer = self.publication.offer(content)
            if answer > 0:
                return True
            if answer == result.ERROR:
                self._on_error(
                    f"a response of {len(content)} bytes is too long for a stream that takes "
                    f"{self.publication.max_message_length}"
                )
                return True
            if answer in _GONE:
                self.is_gone = True
                return False
        return False

    def send_waiting(self) -> bool:
        """Send the first that waits. Returns whether it was sent."""
        if self._waiting and self.try_bytes(self._waiting[0]):
            self._waiting.popleft()
            return True
        return False
