"""Reads complete archive messages from a subscription, one at a time.

The reader assembles fragments and decodes messages. Unknown and invalid messages are ignored, and
invalid messages are also counted, because a response channel may be shared and a peer's bytes must
not end a session.
"""

from collections import deque

from windtunnel.driver.archive.protocol import codec
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.client.image.assembler import FragmentAssembler
from windtunnel.driver.client.image.header import Header
from windtunnel.driver.client.subscription import Subscription

FRAGMENTS_PER_POLL = 10


class ResponseReader:
    """Reads the messages of one subscription. Only one thread at a time may use it."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.malformed_count = 0
        self._waiting: deque[Message] = deque()
        self._assembler = FragmentAssembler(self._on_payload)

    def _on_payload(self, payload: memoryview, header: Header) -> None:
        try:
            self._waiting.append(codec.decode(payload))
        except codec.UnknownTemplate:
            return
        except codec.MalformedMessage:
            self.malformed_count += 1

    def next(self) -> Message | None:
        """Return the next message, or None if no complete message is available."""
        if not self._waiting:
            self.subscription.poll(self._assembler, FRAGMENTS_PER_POLL)
        return self._waiting.popleft() if self._waiting else None
