"""The same streams for asyncio: offers that wait for room, and messages as an async iterator.

Polling shared memory has no file descriptor to wait for, so a stream that is quiet is looked at
again after a sleep that grows from 50 us to 5 ms; other tasks run meanwhile.
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
    """A whole message, copied out of the log."""

    payload: bytes
    session_id: int
    position: int
    """The stream's position behind it."""
    reserved_value: int


class Backoff:
    """Sleeps that grow while nothing happens."""

    def __init__(self) -> None:
        self._sleep_s = SLEEP_S_MIN

    def reset(self) -> None:
        self._sleep_s = SLEEP_S_MIN

    async def wait(self) -> None:
        await asyncio.sleep(self._sleep_s)
        self._sleep_s = min(2 * self._sleep_s, SLEEP_S_MAX)


class AsyncPublication:
    """Wraps a publication; the wrapped one stays usable."""

    def __init__(self, publication: Publication) -> None:
        self.publication = publication

    async def offer(self, message: Message, reserved_value: int = 0) -> int:
        """Write one message, waiting as long as the stream pushes back or nobody listens.

        Returns: the new position. Raises ClosedError, or ClientError for a message that can never
        be written
        """
        patience = Backoff()
        while True:
            answer = self.publication.offer(message, reserved_value=reserved_value)
            if answer > 0:
                return answer
            if answer == result.CLOSED:
                raise ClosedError(f"publication closed: {self.publication.close_reason}")
            if answer == result.ERROR:
                limit = self.publication.max_message_length
                raise ClientError(f"message of {len(message)} bytes, limit {limit}")
            if answer == result.MAX_POSITION_EXCEEDED:
                raise MaxPositionExceededError("the stream has reached its last possible position")
            if answer != result.ADMIN_ACTION:
                await patience.wait()

    async def connected(self) -> None:
        """Wait until somebody listens."""
        patience = Backoff()
        while not self.publication.is_connected:
            if self.publication.is_closed:
                raise ClosedError(f"publication closed: {self.publication.close_reason}")
            await patience.wait()


class AsyncSubscription:
    """Wraps a subscription as an async iterator of whole messages; one task iterates at a time."""

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
        """Messages of all sessions until the subscription is closed.

        A poll takes more than one message: what an iteration leaves is the next one's.
        """
        patience = Backoff()
        while self._pending or not self.subscription.is_closed:
            # What was left was read long ago: neither a quiet stream nor a closed one may keep it.
            if (
                not self._pending
                and self.subscription.poll(self._assembler, FRAGMENTS_PER_POLL) == 0
            ):
                await patience.wait()
                continue
            patience.reset()
            while self._pending:
                yield self._pending.popleft()
            # A busy stream must not starve the other tasks.
            await asyncio.sleep(0)
