"""The client conductor, which owns a client's resources and applies the driver's events to them.

    broadcast of the driver --> DriverEvents --> publications, subscriptions with images, counters
    time ---------------------> Liveness, LogBuffers, Registrations

`CommandChannel` handles commands and their responses. Its lock protects all state. Offers and polls
do not use the conductor. Source: driver-protocol 6.2, 6.7, 7.6; Aeron 1.53, C and Java clients.
"""

from typing import TypeVar

import numpy as np

from windtunnel.driver.base import system
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.conductor.command_channel import CommandChannel
from windtunnel.driver.client.conductor.driver_events import DriverEvents, Resource
from windtunnel.driver.client.conductor.liveness import Liveness
from windtunnel.driver.client.conductor.log_buffers import LogBuffers
from windtunnel.driver.client.context import ClientContext
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.errors import (
    ClientError,
    ClientTerminatedError,
    ClientTimeoutError,
    DriverTimeoutError,
)
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.command.client import ClientClose
from windtunnel.driver.command.counter import RemoveCounter
from windtunnel.driver.command.publication import RemovePublication
from windtunnel.driver.command.subscription import RemoveSubscription
from windtunnel.driver.logbuffer.log_buffer import LogBuffer

_RESOURCE = TypeVar("_RESOURCE", bound=Resource)


class ClientConductor:
    """The conductor of a client. It owns the client's resources and applies the driver's events to
    them.
    """

    def __init__(self, context: ClientContext, cnc: CncFile, clock: Clock) -> None:
        self.context = context
        self.clock = clock
        self.commands = CommandChannel(context, cnc, clock, self.do_work)
        self._cnc = cnc
        self.counter_values: np.ndarray = cnc.counters_values
        self.counters = CountersReader(cnc.counters_metadata, cnc.counters_values)
        pre_touch = context.pre_touch_mapped_memory
        self.logs = LogBuffers(context.dir, context.resource_linger_ns, pre_touch=pre_touch)
        self.resources: dict[int, Resource] = {}
        self._events = DriverEvents(self)
        self.liveness = Liveness(context, cnc, self.commands.proxy, clock)
        self._must_send_close = False
        """Whether the client is closed and the driver, which may still have its resources, must be
        notified."""

    def do_work(self) -> int:
        """Receive events from the driver and send keepalives. Returns the work count."""
        with self.commands.lock:
            if self.commands.is_closed:
                return 0
            self.commands.callbacks.require_not_in_callback()
            work_count = 0
            while not self.commands.is_closed and self._events.receive():
                work_count += 1
            if not self.commands.is_closed:
                now_ns = self.clock.now_ns()
                self.commands.registrations.on_timer(now_ns, self.context.driver_timeout_ms)
                self.logs.on_timer(now_ns)
                for log in self.logs.take_lost():
                    self._end_stream(log, now_ns)
                error = self.liveness.on_duty_cycle(now_ns)
                if error is not None:
                    self.terminate(error)
            return work_count

    def _end_stream(self, log: LogBuffer, now_ns: int) -> None:
        """Close the publications and images of a log that has lost pages, for example because its
        file was truncated.
        """
        error = StorageError(
            f"{log.path} has lost pages: the file was truncated, or its file system is full. "
            "Its stream was ended."
        )
        closed: list[tuple[Subscription, Image]] = []
        for item in tuple(self.resources.values()):
            if isinstance(item, Publication) and item.is_in(log):
                self.release_publication(item, reason=str(error))
            elif isinstance(item, Subscription):
                for image in item.images:
                    if image.is_in(log):
                        item.remove_image(image.correlation_id)
                        self.logs.release(image.on_unavailable(), now_ns)
                        closed.append((item, image))
        self.commands.callbacks.report(error)
        for subscription, image in closed:
            self.commands.callbacks.call(subscription.on_unavailable_image, image)

    def resource(self, kind: type[_RESOURCE], registration_id: int) -> _RESOURCE | None:
        """Return a resource that an `async_add_*` call added, or None until the driver responds.

        Raises the command's error once, or ClientError for an unknown id.
        """
        with self.commands.lock:
            self.commands.require_open()
            if self.commands.registrations.is_active(registration_id):
                self.do_work()
                self.commands.require_open()
            taken = self.commands.registrations.take(registration_id)
            if taken is not None and taken.error is not None:
                raise taken.error
            found = self.resources.get(registration_id)
            if isinstance(found, kind):
                return found
            if self.commands.registrations.is_active(registration_id):
                return None
            raise ClientError(
                f"registration id {registration_id}: this client has no {kind.__name__.lower()} "
                "with this id"
            )

    def abandon(self, registration_id: int) -> None:
        """Close a resource that an `async_add_*` call added, now or when the driver responds."""
        with self.commands.lock:
            self.commands.callbacks.require_not_in_callback()
            self.commands.registrations.abandon(registration_id)
            found = self.resources.get(registration_id)
        if found is not None:
            found.close()

    def release_publication(
        self,
        publication: Publication,
        *,
        revoke: bool = False,
        reason: str = "closed by its owner",
    ) -> None:
        """Close a publication and remove it from the driver."""
        if self._remove_resource(publication.registration_id):
            self.logs.release(publication.on_client_closed(reason), self.clock.now_ns())
            removed = publication.registration_id
            self.commands.send_unawaited(
                lambda correlation_id: RemovePublication(
                    self.commands.client_id, correlation_id, removed, revoke
                )
            )

    def release_subscription(self, subscription: Subscription) -> None:
        """Close a subscription and remove it from the driver."""
        if self._remove_resource(subscription.registration_id):
            removed = subscription.registration_id
            self.commands.send_unawaited(
                lambda correlation_id: RemoveSubscription(
                    self.commands.client_id, correlation_id, removed
                )
            )
            self._close_subscription(subscription)

    def release_counter(self, counter: Counter) -> None:
        """Close a counter, and remove it from the driver unless the counter is static."""
        if self._remove_resource(counter.correlation_id):
            counter.on_client_closed()
            if not counter.is_static:
                removed = counter.registration_id
                self.commands.send_unawaited(
                    lambda correlation_id: RemoveCounter(
                        self.commands.client_id, correlation_id, removed
                    )
                )

    def _remove_resource(self, registration_id: int) -> bool:
        """Remove a resource from the client's tables. Returns False if it was already removed."""
        with self.commands.lock:
            self.commands.callbacks.require_not_in_callback()
            return self.resources.pop(registration_id, None) is not None

    def _close_subscription(self, subscription: Subscription) -> None:
        with self.commands.lock:
            self._notify_unavailable(subscription, self._close_images(subscription))

    def _close_images(self, subscription: Subscription) -> tuple[Image, ...]:
        subscription.is_closed = True
        images, subscription.images = subscription.images, ()
        for image in images:
            self.logs.release(image.on_unavailable(), self.clock.now_ns())
        return images

    def _notify_unavailable(self, subscription: Subscription, images: tuple[Image, ...]) -> None:
        for image in images:
            self.commands.callbacks.call(subscription.on_unavailable_image, image)

    def terminate(self, error: ClientTerminatedError) -> None:
        """Close the client and all its resources because of an error after which it cannot
        continue.
        """
        with self.commands.lock:
            if not self.commands.is_closed:
                # Otherwise the driver, if there is one, has freed the client's resources itself.
                self._must_send_close = not isinstance(
                    error, DriverTimeoutError | ClientTimeoutError
                )
                self._close_all(str(error), error)
                self.commands.callbacks.report(error)
                self._call_close_handlers()

    def _close_all(self, reason: str, termination: ClientTerminatedError | None = None) -> None:
        self.commands.close(termination)
        resources, self.resources = self.resources, {}
        now_ns = self.clock.now_ns()
        closed: list[tuple[Subscription, tuple[Image, ...]]] = []
        # Close all resources before the first handler runs, because a handler may take long.
        for item in resources.values():
            if isinstance(item, Publication):
                self.logs.release(item.on_client_closed(reason), now_ns)
            elif isinstance(item, Subscription):
                closed.append((item, self._close_images(item)))
            else:
                item.on_client_closed()
        for subscription, images in closed:
            self._notify_unavailable(subscription, images)

    def _call_close_handlers(self) -> None:
        for handler in tuple(self.commands.callbacks.close.values()):
            self.commands.callbacks.call(handler)

    def close(self) -> None:
        """Close all resources, notify the driver and unmap its files.

        Raises ReentrantCallError if a handler calls it.
        """
        self.commands.require_not_in_callback()
        try:
            with self.commands.lock:
                if not self.commands.is_closed:
                    self._must_send_close = True
                    self._close_all("the client was closed")
                    self._call_close_handlers()
            if self.context.close_linger_ns > 0:
                system.sleep_ns(self.context.close_linger_ns)
        finally:
            with self.commands.lock:
                self._disconnect()

    def _disconnect(self) -> None:
        """Notify the driver that the client is closed, and unmap the driver's files.

        This must be the last step, because the driver frees the client's counters and logs as soon
        as it is notified.
        """
        must_send_close, self._must_send_close = self._must_send_close, False
        try:
            if must_send_close:
                self.commands.proxy.send(ClientClose(self.commands.client_id))
        except ClientError as error:
            self.commands.callbacks.report(error)
        finally:
            self.logs.close()
            self._cnc.close()
