"""What a client can be asked to open: publications, subscriptions, counters; in three ways.

    add_publication(...)              waits, returns the publication
    async_add_publication(...)        returns a registration id; get_publication(id) looks
    await publication(...)            for asyncio, returns an AsyncPublication

All of them raise RegistrationError with the driver's code when it refuses, CommandTimeoutError when
it does not answer, and ReentrantCallError inside a handler of the conductor.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from windtunnel.driver.client.asynchronous import AsyncPublication, AsyncSubscription, Backoff
from windtunnel.driver.client.conductor.conductor import ClientConductor
from windtunnel.driver.client.conductor.registrar import Registrar
from windtunnel.driver.client.context import ImageHandler
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription

_RESOURCE = TypeVar("_RESOURCE")


class ResourceFactory:
    """The part of `Aeron` that opens things."""

    def __init__(self, conductor: ClientConductor, registrar: Registrar) -> None:
        self._conductor = conductor
        self._registrar = registrar

    def next_session_id(self, stream_id: int) -> int:
        """A session id that no publication of a stream uses. Raises RegistrationError."""
        session_id: int = self._conductor.wait(self._registrar.ask_next_session_id(stream_id))
        return session_id

    def add_publication(self, channel: str, stream_id: int) -> Publication:
        """A publication that many threads and clients may share. Raises RegistrationError."""
        asked = self._registrar.ask_publication(channel, stream_id, is_exclusive=False)
        made: Publication = self._conductor.wait(asked)
        return made

    def add_exclusive_publication(self, channel: str, stream_id: int) -> ExclusivePublication:
        """A publication for one writing thread. Raises RegistrationError."""
        asked = self._registrar.ask_publication(channel, stream_id, is_exclusive=True)
        made: ExclusivePublication = self._conductor.wait(asked)
        return made

    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> Subscription:
        """A subscription; the handlers are called by the client's thread, or by one that waits.

        In a handler nothing may be added or closed: ReentrantCallError. Raises RegistrationError
        """
        asked = self._registrar.ask_subscription(
            channel, stream_id, on_available_image, on_unavailable_image
        )
        made: Subscription = self._conductor.wait(asked)
        return made

    def add_counter(self, type_id: int, key: bytes = b"", label: str = "") -> Counter:
        """A counter that dies with this client; `type_id` from 1000 is free for programs.

        Units:   key up to 112 bytes, label up to 380. Raises ValueError, RegistrationError
        """
        made: Counter = self._conductor.wait(self._registrar.ask_counter(type_id, key, label))
        return made

    def add_static_counter(
        self, type_id: int, registration_id: int, key: bytes = b"", label: str = ""
    ) -> Counter:
        """The counter of that type and registration id, new or found; the driver keeps it."""
        asked = self._registrar.ask_static_counter(type_id, key, label, registration_id)
        made: Counter = self._conductor.wait(asked)
        return made

    def async_add_publication(self, channel: str, stream_id: int) -> int:
        """`add_publication` without waiting. Returns the registration id."""
        return self._registrar.ask_publication(channel, stream_id, is_exclusive=False)

    def async_add_exclusive_publication(self, channel: str, stream_id: int) -> int:
        """`add_exclusive_publication` without waiting. Returns the registration id."""
        return self._registrar.ask_publication(channel, stream_id, is_exclusive=True)

    def async_add_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> int:
        """`add_subscription` without waiting. Returns the registration id."""
        return self._registrar.ask_subscription(
            channel, stream_id, on_available_image, on_unavailable_image
        )

    def async_add_counter(self, type_id: int, key: bytes = b"", label: str = "") -> int:
        """`add_counter` without waiting. Returns the registration id."""
        return self._registrar.ask_counter(type_id, key, label)

    def async_add_static_counter(
        self, type_id: int, registration_id: int, key: bytes = b"", label: str = ""
    ) -> int:
        """`add_static_counter` without waiting. Returns the command's id."""
        return self._registrar.ask_static_counter(type_id, key, label, registration_id)

    def get_publication(self, registration_id: int) -> Publication | None:
        """What was asked for; None while the driver has not answered. Raises its refusal."""
        return self._conductor.resource(Publication, registration_id)

    def get_exclusive_publication(self, registration_id: int) -> ExclusivePublication | None:
        """As `get_publication`."""
        return self._conductor.resource(ExclusivePublication, registration_id)

    def get_subscription(self, registration_id: int) -> Subscription | None:
        """As `get_publication`."""
        return self._conductor.resource(Subscription, registration_id)

    def get_counter(self, registration_id: int) -> Counter | None:
        """As `get_publication`."""
        return self._conductor.resource(Counter, registration_id)

    async def publication(self, channel: str, stream_id: int) -> AsyncPublication:
        """`add_publication` for asyncio; the publication itself is its `.publication`."""
        asked = self.async_add_publication(channel, stream_id)
        return AsyncPublication(await self._until_there(self.get_publication, asked))

    async def exclusive_publication(self, channel: str, stream_id: int) -> AsyncPublication:
        """`add_exclusive_publication` for asyncio."""
        asked = self.async_add_exclusive_publication(channel, stream_id)
        return AsyncPublication(await self._until_there(self.get_exclusive_publication, asked))

    async def subscription(self, channel: str, stream_id: int) -> AsyncSubscription:
        """`add_subscription` for asyncio; the subscription itself is its `.subscription`."""
        asked = self.async_add_subscription(channel, stream_id)
        return AsyncSubscription(await self._until_there(self.get_subscription, asked))

    async def counter(self, type_id: int, key: bytes = b"", label: str = "") -> Counter:
        """`add_counter` for asyncio."""
        asked = self.async_add_counter(type_id, key, label)
        return await self._until_there(self.get_counter, asked)

    async def _until_there(
        self, look: Callable[[int], _RESOURCE | None], registration_id: int
    ) -> _RESOURCE:
        patience = Backoff()
        try:
            while (found := look(registration_id)) is None:
                await patience.wait()
        except asyncio.CancelledError:
            self.abandon(registration_id)
            raise
        return found

    def abandon(self, registration_id: int) -> None:
        """Nobody will come for what was asked: if it is there, or when it comes, it is closed."""
        self._conductor.abandon(registration_id)
