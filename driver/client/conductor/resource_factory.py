"""The methods of `Aeron` that add publications, subscriptions and counters. Each has a blocking, a
non-blocking and an asyncio variant.

    add_publication(...)              waits and returns the publication
    async_add_publication(...)        returns a registration id for get_publication(id)
    await publication(...)            for asyncio, returns an AsyncPublication

All of them raise RegistrationError with the driver's error code if the driver refuses the command,
CommandTimeoutError if it does not respond, and ReentrantCallError if a handler calls them.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from windtunnel.driver.client.asynchronous import AsyncPublication, AsyncSubscription, Backoff
from windtunnel.driver.client.conductor.registrar import Registrar
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.handlers import AvailableImageHandler, UnavailableImageHandler
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription

_RESOURCE = TypeVar("_RESOURCE")


class ResourceFactory(Registrar):
    """Base class of `Aeron` with the methods that add resources."""

    def next_session_id(self, stream_id: int) -> int:
        """Return a session id that no publication of a stream uses.

        Raises RegistrationError.
        """
        session_id: int = self._conductor.commands.wait(self.async_next_session_id(stream_id))
        return session_id

    def get_next_session_id(self, correlation_id: int) -> int | None:
        """Return the session id that `async_next_session_id` requested, or None until the driver
        responds.

        Returns it once. Raises RegistrationError, or ClientError for an unknown id.
        """
        session_id: int | None = self._conductor.commands.take(correlation_id)
        return session_id

    def add_publication(self, channel: str, stream_id: int) -> Publication:
        """Add a concurrent publication. Several threads and clients may share it.

        Raises RegistrationError.
        """
        registration_id = self.async_add_publication(channel, stream_id)
        publication: Publication = self._conductor.commands.wait(registration_id)
        return publication

    def add_exclusive_publication(self, channel: str, stream_id: int) -> ExclusivePublication:
        """Add an exclusive publication. Only one thread may write to it.

        Raises RegistrationError.
        """
        registration_id = self.async_add_exclusive_publication(channel, stream_id)
        publication: ExclusivePublication = self._conductor.commands.wait(registration_id)
        return publication

    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: AvailableImageHandler | None = None,
        on_unavailable_image: UnavailableImageHandler | None = None,
    ) -> Subscription:
        """Add a subscription to a stream.

        The handlers run on the conductor thread or on a thread that waits for a response. They must
        not add or close resources, which raises ReentrantCallError. Raises RegistrationError.
        """
        registration_id = self.async_add_subscription(
            channel,
            stream_id,
            on_available_image=on_available_image,
            on_unavailable_image=on_unavailable_image,
        )
        subscription: Subscription = self._conductor.commands.wait(registration_id)
        return subscription

    def add_counter(self, type_id: int, key: bytes = b"", label: str = "") -> Counter:
        """Add a counter that is freed when this client closes.

        Applications use values of `type_id` from 1000.

        Units:   key up to 112 bytes, label up to 380 bytes. Raises ValueError, RegistrationError
        """
        counter: Counter = self._conductor.commands.wait(
            self.async_add_counter(type_id, key, label)
        )
        return counter

    def add_static_counter(
        self, type_id: int, registration_id: int, key: bytes = b"", label: str = ""
    ) -> Counter:
        """Add a static counter with a given type and registration id, or return the existing
        counter.

        The counter exists until the driver closes. Raises ValueError, RegistrationError.
        """
        correlation_id = self.async_add_static_counter(type_id, registration_id, key, label)
        counter: Counter = self._conductor.commands.wait(correlation_id)
        return counter

    def get_publication(self, registration_id: int) -> Publication | None:
        """Return the publication with a registration id, or None until the driver responds.

        Raises the command's error, or ClientError for an unknown id.
        """
        return self._conductor.resource(Publication, registration_id)

    def get_exclusive_publication(self, registration_id: int) -> ExclusivePublication | None:
        """Return the exclusive publication with a registration id, or None until the driver
        responds.
        """
        return self._conductor.resource(ExclusivePublication, registration_id)

    def get_subscription(self, registration_id: int) -> Subscription | None:
        """Return the subscription with a registration id, or None until the driver responds."""
        return self._conductor.resource(Subscription, registration_id)

    def get_counter(self, registration_id: int) -> Counter | None:
        """Return the counter with a registration id, or None until the driver responds."""
        return self._conductor.resource(Counter, registration_id)

    async def publication(self, channel: str, stream_id: int) -> AsyncPublication:
        """Add a concurrent publication and return an asyncio wrapper for it.

        The publication is the wrapper's attribute `publication`.
        """
        registration_id = self.async_add_publication(channel, stream_id)
        return AsyncPublication(await self._await_resource(self.get_publication, registration_id))

    async def exclusive_publication(self, channel: str, stream_id: int) -> AsyncPublication:
        """Add an exclusive publication and return an asyncio wrapper for it.

        The publication is the wrapper's attribute `publication`.
        """
        registration_id = self.async_add_exclusive_publication(channel, stream_id)
        return AsyncPublication(
            await self._await_resource(self.get_exclusive_publication, registration_id)
        )

    async def subscription(self, channel: str, stream_id: int) -> AsyncSubscription:
        """Add a subscription and return an asyncio wrapper for it.

        The subscription is the wrapper's attribute `subscription`.
        """
        registration_id = self.async_add_subscription(channel, stream_id)
        return AsyncSubscription(await self._await_resource(self.get_subscription, registration_id))

    async def counter(self, type_id: int, key: bytes = b"", label: str = "") -> Counter:
        """Add a counter without blocking other asyncio tasks."""
        registration_id = self.async_add_counter(type_id, key, label)
        return await self._await_resource(self.get_counter, registration_id)

    async def _await_resource(
        self, get: Callable[[int], _RESOURCE | None], registration_id: int
    ) -> _RESOURCE:
        backoff = Backoff()
        try:
            while (resource := get(registration_id)) is None:
                await backoff.wait()
        except asyncio.CancelledError:
            self.abandon(registration_id)
            raise
        return resource

    def abandon(self, registration_id: int) -> None:
        """Close a resource that an `async_add_*` call added, even if the driver has not responded
        yet.

        The resource is closed immediately if it exists, otherwise when the response arrives.
        """
        self._conductor.abandon(registration_id)
