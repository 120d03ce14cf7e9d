"""Publications and subscriptions for asyncio: awaitable offers, and iteration over messages.

Shared memory has no file descriptor to wait for, so an idle stream is polled again after a sleep
that grows from 50 us to 5 ms. Other tasks run during the sleep.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from windtunnel.driver.client.errors import ClientError, ClosedError, MaxPositionExceededError
from windtunnel.driver.client.image.assembler import FragmentAssembler
from windtunnel.driver.client.image.header import Header
from windtunnel.driver.client.publication.message import Message
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.logbuffer import publication_result as result

SLEEP_S_MIN = 50e-6
SLEEP_S_MAX = 5e-3
FRAGMENTS_PER_POLL = 64


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A complete message, copied from the log."""

    payload: bytes
    session_id: int
    position: int
    """The stream position after the message."""
    reserved_value: int


class Backoff:
    """Sleeps for a time that doubles from SLEEP_S_MIN to SLEEP_S_MAX until `reset` is called."""

    def __init__(self) -> None:
        self._sleep_s = SLEEP_S_MIN

    def reset(self) -> None:
        self._sleep_s = SLEEP_S_MIN

    async def wait(self) -> None:
        await asyncio.sleep(self._sleep_s)
        self._sleep_s = min(2 * self._sleep_s, SLEEP_S_MAX)


class AsyncPublication:
    """An asyncio wrapper for a publication. The application can also use the publication
    directly.
    """

    def __init__(self, publication: Publication) -> None:
        self.publication = publication

    async def offer(self, message: Message, reserved_value: int = 0) -> int:
        """Write a message. Waits while the publication is back pressured or not connected.

        Returns the new position. Raises ClosedError, or ClientError for a message that can never be
        written.
        """
        backoff = Backoff()
        while True:
            position = self.publication.offer(message, reserved_value=reserved_value)
            if position > 0:
                return position
            if position == result.CLOSED:
                raise ClosedError(f"publication closed: {self.publication.close_reason}")
            if position == result.ERROR:
                limit = self.publication.max_message_length
                raise ClientError(f"message of {len(message)} bytes, expected at most {limit}")
            if position == result.MAX_POSITION_EXCEEDED:
                raise MaxPositionExceededError("the stream has reached its last possible position")
            if position != result.ADMIN_ACTION:
                await backoff.wait()

    async def connected(self) -> None:
        """Wait until the publication is connected. Raises ClosedError if the publication is
        closed.
        """
        backoff = Backoff()
        while not self.publication.is_connected:
            if self.publication.is_closed:
                raise ClosedError(f"publication closed: {self.publication.close_reason}")
            await backoff.wait()


class AsyncSubscription:
    """An asyncio wrapper for a subscription. Iterating over the wrapper yields complete messages.

    Only one task may iterate at a time.
    """

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self._pending: deque[ReceivedMessage] = deque()
        self._assembler = FragmentAssembler(self._on_message)

    def _on_message(self, payload: memoryview, header: Header) -> None:
        self._pending.append(
            ReceivedMessage(
                bytes(payload), header.session_id, header.position, header.reserved_value
            )
        )

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """Yield the messages of all sessions until the subscription is closed.

        A poll may receive several messages. Messages that an iteration does not consume remain
        queued for the next iteration.
        """
        backoff = Backoff()
        while self._pending or not self.subscription.is_closed:
            # Messages that are still queued come first, even if the subscription is idle or closed.
            if (
                not self._pending
                and self.subscription.poll(self._assembler, FRAGMENTS_PER_POLL) == 0
            ):
                await backoff.wait()
                continue
            backoff.reset()
            while self._pending:
                yield self._pending.popleft()
            # A busy stream must not starve the other tasks.
            await asyncio.sleep(0)
