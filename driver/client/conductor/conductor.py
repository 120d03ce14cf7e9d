"""The client's conductor: what the client owns, and what happens to it when the driver speaks.

    broadcast of the driver --> DriverEvents --> publications, subscriptions with images, counters
    time ---------------------> Liveness, LogBuffers, Registrations

Commands and their answers are the conversation's, whose lock guards all of it. Reading and writing
streams do not pass through here.
Source: driver-protocol 6.2, 6.7, 7.6; Aeron 1.53, C and Java clients.
"""

from typing import TypeVar

import numpy as np

from windtunnel.driver.base import system
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client.conductor.command_channel import CommandChannel
from windtunnel.driver.client.conductor.driver_events import DriverEvents
from windtunnel.driver.client.conductor.liveness import Liveness
from windtunnel.driver.client.conductor.log_buffers import LogBuffers
from windtunnel.driver.client.context import ClientContext
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.errors import ClientError, ClientTerminatedError
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.command.client import ClientClose
from windtunnel.driver.command.counter import RemoveCounter
from windtunnel.driver.command.publication import RemovePublication
from windtunnel.driver.command.subscription import RemoveSubscription

Resource = Publication | Subscription | Counter
_RESOURCE = TypeVar("_RESOURCE", bound=Resource)


class ClientConductor(CommandChannel):
    """One client's conductor."""

    def __init__(self, context: ClientContext, cnc: CncFile, clock: Clock) -> None:
        super().__init__(context, cnc, clock)
        self._cnc = cnc
        self.counter_values: np.ndarray = cnc.counters_values
        self.counters = CountersReader(cnc.counters_metadata, cnc.counters_values)
        pre_touch = context.pre_touch_mapped_memory
        self.logs = LogBuffers(context.resource_linger_ns, pre_touch=pre_touch)
        self.resources: dict[int, Resource] = {}
        self._events = DriverEvents(self)
        self.liveness = Liveness(context, cnc, self.proxy, clock)
        self._owes_close = False
        """Whether our program closed us and the driver has not been told yet."""

    def do_work(self) -> int:
        """Hear what the driver says and show that we are alive. Returns an amount of work."""
        with self.lock:
            if self.is_closed:
                return 0
            self.callbacks.require_none()
            work_count = 0
            while not self.is_closed and self._events.receive():
                work_count += 1
            if not self.is_closed:
                now_ns = self.clock.now_ns()
                self.registrations.on_timer(now_ns, self.context.driver_timeout_ms)
                self.logs.on_timer(now_ns)
                end = self.liveness.on_turn(now_ns)
                if end is not None:
                    self.terminate(end)
            return work_count

    def resource(self, kind: type[_RESOURCE], registration_id: int) -> _RESOURCE | None:
        """What was asked for without waiting: None while the driver has not answered.

        Raises what went wrong, once; ClientError for an id that means nothing here
        """
        with self.lock:
            self.require_open()
            if self.registrations.is_active(registration_id):
                self.do_work()
                self.require_open()
            taken = self.registrations.take(registration_id)
            if taken is not None and taken.error is not None:
                raise taken.error
            found = self.resources.get(registration_id)
            if isinstance(found, kind):
                return found
            if self.registrations.is_active(registration_id):
                return None
            raise ClientError(f"this client has no {kind.__name__.lower()} {registration_id}")

    def abandon(self, registration_id: int) -> None:
        """Close what was asked for, whether it is there or still to come."""
        with self.lock:
            self.callbacks.require_none()
            self.registrations.abandon(registration_id)
            found = self.resources.get(registration_id)
        if found is not None:
            found.close()

    def release_publication(self, publication: Publication, *, revoke: bool = False) -> None:
        """A publication is closed by its owner."""
        if self._forget(publication.registration_id):
            self.logs.release(
                publication.on_client_closed("closed by its owner"), self.clock.now_ns()
            )
            removed = publication.registration_id
            self.tell(lambda new: RemovePublication(self.client_id, new, removed, revoke))

    def release_subscription(self, subscription: Subscription) -> None:
        """A subscription is closed by its owner."""
        if self._forget(subscription.registration_id):
            removed = subscription.registration_id
            self.tell(lambda new: RemoveSubscription(self.client_id, new, removed))
            self._end_subscription(subscription)

    def release_counter(self, counter: Counter) -> None:
        """A counter is closed by its owner."""
        if self._forget(counter.correlation_id):
            counter.on_client_closed()
            if not counter.is_static:
                removed = counter.registration_id
                self.tell(lambda new: RemoveCounter(self.client_id, new, removed))

    def _forget(self, registration_id: int) -> bool:
        """Take something out of the tables, unless it went already with the client."""
        with self.lock:
            self.callbacks.require_none()
            return self.resources.pop(registration_id, None) is not None

    def _end_subscription(self, subscription: Subscription) -> None:
        with self.lock:
            self._tell_unavailable(subscription, self._close_images(subscription))

    def _close_images(self, subscription: Subscription) -> tuple[Image, ...]:
        subscription.is_closed = True
        images, subscription.images = subscription.images, ()
        for image in images:
            self.logs.release(image.on_unavailable(), self.clock.now_ns())
        return images

    def _tell_unavailable(self, subscription: Subscription, images: tuple[Image, ...]) -> None:
        for image in images:
            self.callbacks.call(subscription.on_unavailable_image, image)

    def terminate(self, why: ClientTerminatedError) -> None:
        """The client cannot go on: everything that it opened is closed for this reason."""
        with self.lock:
            if not self.is_closed:
                self.termination = why
                self._end(str(why))
                self.callbacks.report(why)

    def _end(self, reason: str) -> None:
        self.is_closed = True
        resources, self.resources = self.resources, {}
        now_ns = self.clock.now_ns()
        gone: list[tuple[Subscription, tuple[Image, ...]]] = []
        # A handler may take its time: nobody shall write, read or count meanwhile.
        for item in resources.values():
            if isinstance(item, Publication):
                self.logs.release(item.on_client_closed(reason), now_ns)
            elif isinstance(item, Subscription):
                gone.append((item, self._close_images(item)))
            else:
                item.on_client_closed()
        for subscription, images in gone:
            self._tell_unavailable(subscription, images)
        for handler in tuple(self.callbacks.close.values()):
            self.callbacks.call(handler)

    def close(self) -> None:
        """Let go of everything and tell the driver that this client is done.

        Raises ReentrantCallError in a handler of the conductor
        """
        self.require_no_callback()
        try:
            with self.lock:
                if not self.is_closed:
                    self._owes_close = True
                    self._end("the client was closed")
            if self.context.close_linger_ns > 0:
                system.sleep_ns(self.context.close_linger_ns)
        finally:
            with self.lock:
                self._leave()

    def _leave(self) -> None:
        """The driver hears of it last: it frees our counters and logs as soon as it does."""
        owes_close, self._owes_close = self._owes_close, False
        try:
            if owes_close:
                self.proxy.send(ClientClose(self.client_id))
        except ClientError as error:
            self.callbacks.report(error)
        finally:
            self.logs.close()
            self._cnc.close()
