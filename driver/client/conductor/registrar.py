"""Asking the driver for publications, subscriptions and counters, and making them of its answers.

Each `ask_*` returns the registration id at once; `ClientConductor.wait` waits for what it becomes,
`ClientConductor.resource` looks whether it is there.
"""

from pathlib import Path

from windtunnel.driver.client.conductor.conductor import ClientConductor
from windtunnel.driver.client.conductor.driver_events import require_counter
from windtunnel.driver.client.context import ImageHandler
from windtunnel.driver.client.counter import Counter
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
    """Asks on behalf of one client."""

    def __init__(self, conductor: ClientConductor) -> None:
        self._conductor = conductor

    def ask_publication(self, channel: str, stream_id: int, *, is_exclusive: bool) -> int:
        """A publication; a shared one may be there already."""
        conductor, client_id = self._conductor, self._conductor.client_id
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

        return conductor.ask(
            lambda new: command(client_id, new, stream_id, channel),
            complete,
            lambda new, late: RemovePublication(client_id, new, late, is_exclusive),
        )

    def ask_subscription(
        self,
        channel: str,
        stream_id: int,
        on_available_image: ImageHandler | None,
        on_unavailable_image: ImageHandler | None,
    ) -> int:
        """A subscription; its images may come at any time after."""
        conductor, client_id = self._conductor, self._conductor.client_id
        context = conductor.context

        def complete(ready: SubscriptionReady) -> Subscription:
            # From this moment on: its first images are announced in the same breath.
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

        return conductor.ask(
            lambda new: AddSubscription(client_id, new, stream_id, channel),
            complete,
            lambda new, late: RemoveSubscription(client_id, new, late),
        )

    def ask_counter(self, type_id: int, key: bytes, label: str) -> int:
        """A counter that dies with this client. Raises ValueError for too long a key or label."""
        _check_texts(key, label)
        conductor, client_id = self._conductor, self._conductor.client_id

        def complete(ready: CounterReady) -> Counter:
            return self._counter(ready, ready.correlation_id, is_static=False)

        return conductor.ask(
            lambda new: AddCounter(client_id, new, type_id, key, label),
            complete,
            lambda new, late: RemoveCounter(client_id, new, late),
        )

    def ask_static_counter(self, type_id: int, key: bytes, label: str, registration_id: int) -> int:
        """The counter of that type and registration id, which lives as long as the driver."""
        _check_texts(key, label)
        conductor, client_id = self._conductor, self._conductor.client_id

        def complete(ready: StaticCounter) -> Counter:
            return self._counter(ready, registration_id, is_static=True)

        return conductor.ask(
            lambda new: AddStaticCounter(client_id, new, registration_id, type_id, key, label),
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

    def ask_next_session_id(self, stream_id: int) -> int:
        """A session id that no publication of a stream uses."""
        conductor, client_id = self._conductor, self._conductor.client_id

        def complete(answer: NextAvailableSessionId) -> int:
            return answer.session_id

        return conductor.ask(
            lambda new: GetNextAvailableSessionId(client_id, new, stream_id), complete
        )


def _check_texts(key: bytes, label: str) -> None:
    if len(key) > KEY_LENGTH_MAX:
        raise ValueError(f"key has {len(key)} bytes, but may have at most {KEY_LENGTH_MAX}")
    length = len(label.encode("utf-8", "replace"))
    if length > LABEL_LENGTH_MAX:
        raise ValueError(f"label has {length} bytes, but may have at most {LABEL_LENGTH_MAX}")
