"""Sends the commands that add publications, subscriptions and counters, and creates these objects
when the driver responds.

Each method returns the registration id immediately. `CommandChannel.wait` waits for the resource;
`ClientConductor.resource` returns it if it exists.
"""

from pathlib import Path

from windtunnel.driver.client.conductor.conductor import ClientConductor
from windtunnel.driver.client.conductor.driver_events import require_counter
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.handlers import AvailableImageHandler, UnavailableImageHandler
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.cnc.counters import KEY_LENGTH_MAX, LABEL_LENGTH_MAX
from windtunnel.driver.command.counter import (
    AddCounter,
    AddStaticCounter,
    CounterReady,
    RemoveCounter,
    StaticCounter,
)
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    ExclusivePublicationReady,
    GetNextAvailableSessionId,
    NextAvailableSessionId,
    PublicationReady,
    RemovePublication,
)
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)


class Registrar:
    """Base class of `Aeron` with the methods that do not wait for the driver's response."""

    def __init__(self, conductor: ClientConductor) -> None:
        self._conductor = conductor

    def async_add_publication(self, channel: str, stream_id: int) -> int:
        """Send the command to add a concurrent publication, without waiting for the response.
        Returns the registration id.
        """
        return self._add_publication(channel, stream_id, is_exclusive=False)

    def async_add_exclusive_publication(self, channel: str, stream_id: int) -> int:
        """Send the command to add an exclusive publication, without waiting for the response.
        Returns the registration id.
        """
        return self._add_publication(channel, stream_id, is_exclusive=True)

    def _add_publication(self, channel: str, stream_id: int, *, is_exclusive: bool) -> int:
        _check_stream(channel, stream_id)
        conductor, client_id = self._conductor, self._conductor.commands.client_id
        command = AddExclusivePublication if is_exclusive else AddPublication
        kind = ExclusivePublication if is_exclusive else Publication

        def complete(ready: PublicationReady | ExclusivePublicationReady) -> Publication:
            require_counter(conductor, ready.limit_counter_id)
            publication = kind(
                conductor,
                conductor.logs.acquire(Path(ready.log_file_name)),
                channel=channel,
                registration_id=ready.correlation_id,
                original_registration_id=ready.registration_id,
                limit_counter_id=ready.limit_counter_id,
                channel_status_id=ready.channel_status_counter_id,
            )
            conductor.resources[ready.correlation_id] = publication
            return publication

        return conductor.commands.send_command(
            lambda correlation_id: command(client_id, correlation_id, stream_id, channel),
            complete,
            lambda correlation_id, late_id: RemovePublication(
                client_id, correlation_id, late_id, is_exclusive
            ),
        )

    def async_add_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: AvailableImageHandler | None = None,
        on_unavailable_image: UnavailableImageHandler | None = None,
    ) -> int:
        """Send the command to add a subscription, without waiting for the response. Returns the
        registration id.
        """
        _check_stream(channel, stream_id)
        conductor, client_id = self._conductor, self._conductor.commands.client_id
        context = conductor.context

        def complete(ready: SubscriptionReady) -> Subscription:
            # Register it now, because the events about its first images follow the response
            # immediately.
            subscription = conductor.resources[ready.correlation_id] = Subscription(
                conductor,
                channel=channel,
                stream_id=stream_id,
                registration_id=ready.correlation_id,
                channel_status_id=ready.channel_status_counter_id,
                on_available_image=on_available_image or context.on_available_image,
                on_unavailable_image=on_unavailable_image or context.on_unavailable_image,
            )
            return subscription

        return conductor.commands.send_command(
            lambda correlation_id: AddSubscription(client_id, correlation_id, stream_id, channel),
            complete,
            lambda correlation_id, late_id: RemoveSubscription(client_id, correlation_id, late_id),
        )

    def async_add_counter(self, type_id: int, key: bytes = b"", label: str = "") -> int:
        """Send the command to add a counter, without waiting for the response. Returns the
        registration id.
        """
        _check_counter(type_id, key, label)
        conductor, client_id = self._conductor, self._conductor.commands.client_id

        def complete(ready: CounterReady) -> Counter:
            return self._counter(ready, ready.correlation_id, is_static=False)

        return conductor.commands.send_command(
            lambda correlation_id: AddCounter(client_id, correlation_id, type_id, key, label),
            complete,
            lambda correlation_id, late_id: RemoveCounter(client_id, correlation_id, late_id),
        )

    def async_add_static_counter(
        self, type_id: int, registration_id: int, key: bytes = b"", label: str = ""
    ) -> int:
        """Send the command to add or find a static counter, without waiting for the response.
        Returns the command's correlation id.
        """
        _check_counter(type_id, key, label)
        conductor, client_id = self._conductor, self._conductor.commands.client_id

        def complete(ready: StaticCounter) -> Counter:
            return self._counter(ready, registration_id, is_static=True)

        return conductor.commands.send_command(
            lambda correlation_id: AddStaticCounter(
                client_id, correlation_id, registration_id, type_id, key, label
            ),
            complete,
        )

    def _counter(
        self, ready: CounterReady | StaticCounter, registration_id: int, *, is_static: bool
    ) -> Counter:
        conductor = self._conductor
        require_counter(conductor, ready.counter_id)
        counter = conductor.resources[ready.correlation_id] = Counter(
            conductor,
            correlation_id=ready.correlation_id,
            registration_id=registration_id,
            counter_id=ready.counter_id,
            is_static=is_static,
        )
        return counter

    def async_next_session_id(self, stream_id: int) -> int:
        """Request a session id without waiting for the response. Returns the command's correlation
        id.
        """
        conductor, client_id = self._conductor, self._conductor.commands.client_id

        def complete(response: NextAvailableSessionId) -> int:
            return response.session_id

        return conductor.commands.send_command(
            lambda correlation_id: GetNextAvailableSessionId(client_id, correlation_id, stream_id),
            complete,
        )


def _check_stream(channel: str, stream_id: int) -> None:
    if not isinstance(channel, str):
        raise TypeError(f"channel: expected a str, found {type(channel).__name__}")
    _check_integer("stream_id", stream_id)


def _check_integer(name: str, value: int) -> None:
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected an integer, found {type(value).__name__}")
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{name}: expected an integer of 32 bits, found {value}")


def _check_counter(type_id: int, key: bytes, label: str) -> None:
    _check_integer("type_id", type_id)
    if not isinstance(label, str):
        raise TypeError(f"label: expected a str, found {type(label).__name__}")
    if len(key) > KEY_LENGTH_MAX:
        raise ValueError(f"key has {len(key)} bytes, expected at most {KEY_LENGTH_MAX}")
    length = len(label.encode("utf-8", "replace"))
    if length > LABEL_LENGTH_MAX:
        raise ValueError(f"label has {length} bytes, expected at most {LABEL_LENGTH_MAX}")
