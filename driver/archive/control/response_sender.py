"""Sends messages on a session's response publication, in order. Queues them under back pressure.

    send --> [ queue ] --> publication

A message that is not accepted in three attempts is queued. Queued messages are sent before later
messages. A message that is too long for the stream is dropped. Source: archive-protocol 2.5.
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
    """Sends messages on one response publication. Only the conductor's thread uses it."""

    def __init__(
        self, publication: ExclusivePublication, on_error: Callable[[str], object]
    ) -> None:
        self.publication = publication
        self._on_error = on_error
        self._waiting: deque[bytes] = deque()
        self.is_gone = False
        """Whether a message could not be sent because the client is not connected any more."""

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def send(self, message: Message) -> bool:
        """Send a message, or queue it if that fails. Returns whether the message was sent."""
        content = encode(message)
        if not self._waiting and self.try_bytes(content):
            return True
        self._waiting.append(content)
        return False

    def try_send(self, message: Message) -> bool:
        """Send a message ahead of the queue, or discard it if that fails. Returns whether the
        message was sent.
        """
        return self.try_bytes(encode(message))

    def try_bytes(self, content: bytes) -> bool:
        """Offer an encoded message to the publication. Returns True if the message was sent, or
        dropped because it is too long, and False if it could not be sent.
        """
        for _ in range(ATTEMPTS):
            answer = self.publication.offer(content)
            if answer > 0:
                return True
            if answer == result.ERROR:
                self._on_error(
                    f"cannot send a response of {len(content)} bytes: the maximum message "
                    f"length is {self.publication.max_message_length}"
                )
                return True
            if answer in _GONE:
                self.is_gone = True
                return False
        return False

    def send_waiting(self) -> bool:
        """Send the first queued message. Returns whether the message was sent."""
        if self._waiting and self.try_bytes(self._waiting[0]):
            self._waiting.popleft()
            return True
        return False
