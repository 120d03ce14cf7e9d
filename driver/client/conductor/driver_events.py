"""Applies the driver's responses and events to the client's tables.

Each value is validated before use: a counter id must be in the range of the counters, and a log
file must be valid. If a response is invalid, the error is passed to the error handler, and the
client continues. The client terminates only when it has lost responses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.conductor.log_buffers import LogBuffers
from windtunnel.driver.client.conductor_protocol import Conductor
from windtunnel.driver.client.context import ClientContext
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.errors import (
    BroadcastLappedError,
    ChannelEndpointError,
    ClientError,
    ClientTerminatedError,
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

Resource = Publication | Subscription | Counter


class EventTarget(Conductor, Protocol):
    """The interface through which the driver's events change the client's state. `ClientConductor`
    implements it.
    """

    context: ClientContext
    clock: Clock
    logs: LogBuffers
    resources: dict[int, Resource]

    def terminate(self, error: ClientTerminatedError) -> None:
        """Close the client and everything that it opened, after an error from which it cannot
        recover.
        """


class DriverEvents:
    """Receives the driver's broadcast for a client conductor. The caller must hold the conductor's
    lock.
    """

    def __init__(self, conductor: EventTarget) -> None:
        self._conductor = conductor

    def receive(self) -> bool:
        """Receive and apply one message from the driver. Returns whether there was a message."""
        conductor = self._conductor
        try:
            response = conductor.commands.proxy.receive()
        except UnknownCommand:
            # A newer driver may send message types that are unknown to this client.
            return True
        except MalformedCommand as error:
            conductor.commands.callbacks.report(error)
            return True
        if isinstance(response, int):
            if response in (broadcast.LAPPED, broadcast.CORRUPT):
                conductor.terminate(
                    BroadcastLappedError("unable to keep up with the driver's broadcast")
                )
            return False
        self._on_response(response)
        return True

    def _on_response(self, response: Response) -> None:
        conductor = self._conductor
        if isinstance(response, AvailableImage):
            self._on_available_image(response)
        elif isinstance(response, UnavailableImage):
            self._on_unavailable_image(response)
        elif isinstance(response, ClientTimeout):
            if response.client_id == conductor.commands.client_id:
                conductor.terminate(ClientTimeoutError("the driver timed out this client"))
        elif isinstance(response, UnavailableCounter):
            callbacks = conductor.commands.callbacks
            callbacks.on_counter(
                callbacks.unavailable_counter, conductor.counters, response.registration_id,
                response.counter_id,
            )  # fmt: skip
        elif isinstance(response, PublicationError):
            self._on_publication_error(response)
        elif isinstance(response, ErrorResponse) and (
            response.error_code == ErrorCode.CHANNEL_ENDPOINT_ERROR
        ):
            self._on_channel_error(response)
        else:
            conductor.commands.registrations.on_response(response.correlation_id, response)
            if isinstance(response, CounterReady):
                callbacks = conductor.commands.callbacks
                callbacks.on_counter(
                    callbacks.available_counter, conductor.counters, response.correlation_id,
                    response.counter_id,
                )  # fmt: skip

    def _on_available_image(self, response: AvailableImage) -> None:
        conductor = self._conductor
        subscription = conductor.resources.get(response.subscription_registration_id)
        if not isinstance(subscription, Subscription):
            return
        path = Path(response.log_file_name)
        try:
            require_counter(conductor, response.subscriber_position_id)
            log = conductor.logs.acquire(path)
        except (ClientError, StorageError) as error:
            # A missing file is not an error: the driver removed the log after it sent the event.
            if path.exists():
                conductor.commands.callbacks.report(error)
            return
        image = Image(
            log,
            conductor.counter_values,
            correlation_id=response.correlation_id,
            session_id=response.session_id,
            subscription_registration_id=response.subscription_registration_id,
            position_counter_id=response.subscriber_position_id,
            source_identity=response.source_identity,
            subscription=subscription,
        )
        subscription.add_image(image)
        conductor.commands.callbacks.call(subscription.on_available_image, image)

    def _on_unavailable_image(self, response: UnavailableImage) -> None:
        conductor = self._conductor
        subscription = conductor.resources.get(response.subscription_registration_id)
        if not isinstance(subscription, Subscription):
            return
        image = subscription.remove_image(response.correlation_id)
        if image is not None:
            conductor.logs.release(image.on_unavailable(), conductor.clock.now_ns())
            conductor.commands.callbacks.call(subscription.on_unavailable_image, image)

    def _on_publication_error(self, response: PublicationError) -> None:
        conductor = self._conductor
        for item in tuple(conductor.resources.values()):
            if (
                isinstance(item, Publication)
                and item.original_registration_id == response.registration_id
            ):
                conductor.commands.callbacks.call(
                    conductor.context.publication_error_handler, response
                )

    def _on_channel_error(self, response: ErrorResponse) -> None:
        conductor = self._conductor
        for item in tuple(conductor.resources.values()):
            if (
                isinstance(item, Publication | Subscription)
                and item.channel_status_id == response.correlation_id
            ):
                conductor.commands.callbacks.report(
                    ChannelEndpointError(response.correlation_id, response.message)
                )


def require_counter(conductor: Conductor, counter_id: int) -> None:
    """Raise ClientError if a counter id is not in the range of the driver's counters."""
    capacity = conductor.counters.capacity
    if not 0 <= counter_id < capacity:
        raise ClientError(f"the driver sent counter id {counter_id}, expected 0 to {capacity - 1}")
