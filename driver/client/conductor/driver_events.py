"""What the driver says, and what it means for the client's tables.

Nothing that was said is believed before its check: a counter id is within its section, a log is a
log. What fails its check goes to the error handler, and the client goes on; only what it missed
ends it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.errors import (
    BroadcastLappedError,
    ChannelEndpointError,
    ClientError,
    ClientTimeoutError,
)
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.cnc import broadcast
from windtunnel.driver.command.client import ClientTimeout
from windtunnel.driver.command.codec import Response
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.counter import CounterReady, UnavailableCounter
from windtunnel.driver.command.image import AvailableImage, UnavailableImage
from windtunnel.driver.command.payload import MalformedCommand, UnknownCommand
from windtunnel.driver.command.response import ErrorResponse, PublicationError

if TYPE_CHECKING:
    from windtunnel.driver.client.conductor.conductor import ClientConductor


class DriverEvents:
    """Hears the driver for one conductor, under its lock."""

    def __init__(self, conductor: ClientConductor) -> None:
        self._conductor = conductor

    def receive(self) -> bool:
        """Take one thing that the driver said. Returns whether there was one."""
        conductor = self._conductor
        try:
            said = conductor.proxy.receive()
        except UnknownCommand:
            # A newer driver may say things that we do not know; they are not for us.
            return True
        except MalformedCommand as error:
            conductor.callbacks.report(error)
            return True
        if isinstance(said, int):
            if said in (broadcast.LAPPED, broadcast.CORRUPT):
                why = BroadcastLappedError("unable to keep up with the driver's broadcast")
                conductor.terminate(why)
            return False
        self._on_response(said)
        return True

    def _on_response(self, said: Response) -> None:
        conductor = self._conductor
        if isinstance(said, AvailableImage):
            self._on_available_image(said)
        elif isinstance(said, UnavailableImage):
            self._on_unavailable_image(said)
        elif isinstance(said, ClientTimeout):
            if said.client_id == conductor.client_id:
                conductor.terminate(ClientTimeoutError("the driver timed this client out"))
        elif isinstance(said, UnavailableCounter):
            callbacks = conductor.callbacks
            callbacks.on_counter(
                callbacks.unavailable_counter, conductor.counters, said.registration_id,
                said.counter_id,
            )  # fmt: skip
        elif isinstance(said, PublicationError):
            self._on_publication_error(said)
        elif isinstance(said, ErrorResponse) and (
            said.error_code == ErrorCode.CHANNEL_ENDPOINT_ERROR
        ):
            self._on_channel_error(said)
        else:
            conductor.registrations.on_response(said.correlation_id, said)
            if isinstance(said, CounterReady):
                callbacks = conductor.callbacks
                callbacks.on_counter(
                    callbacks.available_counter, conductor.counters, said.correlation_id,
                    said.counter_id,
                )  # fmt: skip

    def _on_available_image(self, said: AvailableImage) -> None:
        conductor = self._conductor
        subscription = conductor.resources.get(said.subscription_registration_id)
        if not isinstance(subscription, Subscription):
            return
        path = Path(said.log_file_name)
        try:
            require_counter(conductor, said.subscriber_position_id)
            log = conductor.logs.acquire(path)
        except (ClientError, StorageError) as error:
            # Gone already: its driver has removed it between saying so and our hearing it.
            if path.exists():
                conductor.callbacks.report(error)
            return
        image = Image(
            log,
            conductor.counter_values,
            correlation_id=said.correlation_id,
            session_id=said.session_id,
            subscription_registration_id=said.subscription_registration_id,
            position_counter_id=said.subscriber_position_id,
            source_identity=said.source_identity,
            subscription=subscription,
        )
        subscription.add_image(image)
        conductor.callbacks.call(subscription.on_available_image, image)

    def _on_unavailable_image(self, said: UnavailableImage) -> None:
        conductor = self._conductor
        subscription = conductor.resources.get(said.subscription_registration_id)
        if not isinstance(subscription, Subscription):
            return
        image = subscription.remove_image(said.correlation_id)
        if image is not None:
            conductor.logs.release(image.on_unavailable(), conductor.clock.now_ns())
            conductor.callbacks.call(subscription.on_unavailable_image, image)

    def _on_publication_error(self, said: PublicationError) -> None:
        conductor = self._conductor
        for item in tuple(conductor.resources.values()):
            if (
                isinstance(item, Publication)
                and item.original_registration_id == said.registration_id
            ):
                conductor.callbacks.call(conductor.context.publication_error_handler, said)

    def _on_channel_error(self, said: ErrorResponse) -> None:
        conductor = self._conductor
        for item in tuple(conductor.resources.values()):
            if (
                isinstance(item, Publication | Subscription)
                and item.channel_status_id == said.correlation_id
            ):
                conductor.callbacks.report(ChannelEndpointError(said.correlation_id, said.message))


def require_counter(conductor: ClientConductor, counter_id: int) -> None:
    """Raise ClientError unless the id lies within the counters of the driver's file."""
    capacity = conductor.counters.capacity
    if not 0 <= counter_id < capacity:
        raise ClientError(f"the driver named counter {counter_id}, expected 0 to {capacity - 1}")
