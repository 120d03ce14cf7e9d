"""The client's side of the conversation with the driver: commands out, responses in, heartbeats,
liveness.

One lock guards all of it. It runs on a thread of its own, or is invoked; whoever waits for an
answer drives it too, so that adding something never waits for a sleeping thread. Reading and
writing streams do not pass through here.
Source: spec 6.2, 6.7, 7.6, Aeron 1.53.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from driver.base import system
from driver.base.clock import Clock
from driver.base.errors import StorageError
from driver.client.context import ClientContext
from driver.client.errors import (
    ClosedError,
    CommandTimeoutError,
    DriverGoneError,
    RegistrationError,
)
from driver.client.image import Image
from driver.client.log_buffers import LogBuffers
from driver.client.publication import Publication
from driver.client.subscription import ImageHandler, Subscription
from driver.cnc import broadcast, counters, ring_buffer
from driver.cnc.cnc_file import CncFile
from driver.cnc.counters_manager import append_label
from driver.command.client import ClientClose, ClientTimeout
from driver.command.codec import Command, Response, decode_response
from driver.command.command_type import ErrorCode
from driver.command.image import AvailableImage, UnavailableImage
from driver.command.payload import MalformedCommand
from driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    ExclusivePublicationReady,
    PublicationReady,
    RemovePublication,
)
from driver.command.response import ErrorResponse, OperationSuccess
from driver.command.subscription import AddSubscription, RemoveSubscription, SubscriptionReady

CLIENT_HEARTBEAT_TYPE_ID = 11
CLIENT_VERSION_LABEL = "version=1.53.0 commit=windtunnel"
ANSWER_POLL_NS = 200_000

_READY = TypeVar("_READY")


class ClientConductor:
    """One client's conductor."""

    def __init__(self, context: ClientContext, cnc: CncFile, clock: Clock) -> None:
        self._context = context
        self._cnc = cnc
        self._clock = clock
        self.lock = threading.RLock()
        self.client_id = int(ring_buffer.next_correlation_id(cnc.to_driver))
        self.counter_values: np.ndarray = cnc.counters_values
        self._receiver = broadcast.make_receiver(cnc.to_clients)
        # The record at `latest` was said before this client was there.
        self._scratch = broadcast.make_scratch(cnc.to_clients)
        self._logs = LogBuffers()
        self._publications: dict[int, Publication] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._answers: dict[int, Response] = {}
        self._awaited: set[int] = set()
        self._heartbeat_id = counters.NULL_COUNTER_ID
        self._next_keepalive_ns = 0
        self._last_turn_ns = clock.now_ns()
        self.is_closed = False
        self.failure = ""
        """Why the client closed, if its program did not close it."""

    def do_work(self) -> int:
        """Hear what the driver says and show that we are alive. Returns an amount of work."""
        with self.lock:
            if self.is_closed:
                return 0
            work_count = 0
            while not self.is_closed and self._on_message():
                work_count += 1
            if not self.is_closed:
                self._on_timer(self._clock.now_ns())
            return work_count

    def _on_message(self) -> bool:
        type_id, length = broadcast.receive(self._cnc.to_clients, self._receiver, self._scratch)
        if type_id == broadcast.NO_MESSAGE:
            return False
        if type_id in (broadcast.LAPPED, broadcast.CORRUPT):
            self._fail("unable to keep up with the driver's broadcast")
            return False
        try:
            self._on_response(decode_response(type_id, self._scratch[:length]))
        except MalformedCommand:
            # A newer driver may say things that we do not know; they are not for us.
            return True
        return True

    def _on_response(self, response: Response) -> None:
        if isinstance(response, AvailableImage):
            self._on_available_image(response)
        elif isinstance(response, UnavailableImage):
            self._on_unavailable_image(response)
        elif isinstance(response, ClientTimeout):
            if response.client_id == self.client_id:
                self._fail("the driver timed this client out")
        elif isinstance(response, ErrorResponse):
            if response.error_code == ErrorCode.CHANNEL_ENDPOINT_ERROR:
                return
            if response.correlation_id in self._awaited:
                self._answers[response.correlation_id] = response
        else:
            # Not every response answers a command; what answers one carries its correlation id.
            correlation_id = getattr(response, "correlation_id", None)
            if correlation_id in self._awaited:
                self._answers[correlation_id] = response
                self._on_ready(response)

    def _on_ready(self, response: Response) -> None:
        """A subscription exists from now on: the images announced behind this answer are for it."""
        if isinstance(response, SubscriptionReady):
            subscription = self._subscriptions[response.correlation_id]
            subscription.channel_status_id = response.channel_status_counter_id

    def _on_available_image(self, response: AvailableImage) -> None:
        subscription = self._subscriptions.get(response.subscription_registration_id)
        if subscription is None:
            return
        try:
            log = self._logs.acquire(Path(response.log_file_name))
        except StorageError:
            # Its driver has removed it between saying so and our hearing it.
            return
        subscription.add_image(
            Image(
                log,
                self.counter_values,
                correlation_id=response.correlation_id,
                session_id=response.session_id,
                subscription_registration_id=response.subscription_registration_id,
                position_counter_id=response.subscriber_position_id,
                source_identity=response.source_identity,
            )
        )

    def _on_unavailable_image(self, response: UnavailableImage) -> None:
        subscription = self._subscriptions.get(response.subscription_registration_id)
        if subscription is not None:
            image = subscription.remove_image(response.correlation_id)
            if image is not None:
                self._logs.release(image.on_unavailable(), self._clock.now_ns())

    def _on_timer(self, now_ns: int) -> None:
        limit_ns = self._cnc.header.client_liveness_timeout_ns
        if now_ns - self._last_turn_ns > limit_ns:
            late_ms = (now_ns - self._last_turn_ns) // system.NS_PER_MS
            self._fail(f"service interval exceeded: {late_ms} ms, limit {limit_ns // 1_000_000} ms")
            return
        self._last_turn_ns = now_ns
        if now_ns < self._next_keepalive_ns:
            return
        self._next_keepalive_ns = now_ns + self._context.keepalive_interval_ns
        self._logs.on_timer(now_ns)
        self._check_driver()
        if not self.is_closed:
            self._write_heartbeat()

    def _check_driver(self) -> None:
        heartbeat_ms = self._cnc.heartbeat_ms()
        now_ms = self._clock.now_ms()
        if heartbeat_ms == ring_buffer.HEARTBEAT_OF_CLOSED:
            self._fail("the driver has been shut down")
        elif now_ms > heartbeat_ms + self._context.driver_timeout_ms:
            age_ms = now_ms - heartbeat_ms
            self._fail(
                f"the driver's last heartbeat is {age_ms} ms old, "
                f"limit {self._context.driver_timeout_ms} ms"
            )

    def _write_heartbeat(self) -> None:
        metadata, values = self._cnc.counters_metadata, self.counter_values
        if self._heartbeat_id == counters.NULL_COUNTER_ID:
            found = int(counters.find(metadata, values, CLIENT_HEARTBEAT_TYPE_ID, self.client_id))
            if found == counters.NULL_COUNTER_ID:
                return
            self._heartbeat_id = found
            name = self._context.client_name
            append_label(metadata, found, f" name={name} {CLIENT_VERSION_LABEL}")
        elif not counters.is_active(metadata, values, self._heartbeat_id, self.client_id):
            self._fail("the driver freed this client's heartbeat counter")
            return
        counters.set_release(values, self._heartbeat_id, self._clock.now_ms())

    def _send(self, command: Command) -> None:
        content = np.frombuffer(command.encode(), dtype=np.uint8).copy()
        type_id = int(command.TYPE_ID)
        status = ring_buffer.write(self._cnc.to_driver, type_id, content, 0, content.size)
        if status != ring_buffer.OK:
            raise CommandTimeoutError(f"the command ring takes no {content.size} bytes: {status}")

    def _next_id(self) -> int:
        return int(ring_buffer.next_correlation_id(self._cnc.to_driver))

    def _await(self, correlation_id: int, kind: type[_READY]) -> _READY:
        """Drive the conversation until a command is answered."""
        deadline_ns = self._clock.now_ns() + self._context.driver_timeout_ms * system.NS_PER_MS
        try:
            while True:
                self.do_work()
                with self.lock:
                    answer = self._answers.pop(correlation_id, None)
                if answer is not None:
                    break
                self._ensure_open()
                if self._clock.now_ns() >= deadline_ns:
                    raise CommandTimeoutError(
                        f"no answer from the driver within {self._context.driver_timeout_ms} ms"
                    )
                system.sleep_ns(ANSWER_POLL_NS)
        finally:
            with self.lock:
                self._awaited.discard(correlation_id)
        if isinstance(answer, ErrorResponse):
            raise RegistrationError(answer.error_code, answer.message)
        assert isinstance(answer, kind), f"expected {kind.__name__}, found {answer}"
        return answer

    def _ensure_open(self) -> None:
        if self.is_closed:
            if self.failure:
                raise DriverGoneError(self.failure)
            raise ClosedError("the client is closed")

    def _ask(self, make: Callable[[int], Command]) -> int:
        """Send the command that `make` builds for a new correlation id, and expect its answer."""
        with self.lock:
            self._ensure_open()
            correlation_id = self._next_id()
            self._awaited.add(correlation_id)
            self._send(make(correlation_id))
        return correlation_id

    def add_publication(self, channel: str, stream_id: int, *, is_exclusive: bool) -> Publication:
        """Open a publication and wait until it is ready."""
        command = AddExclusivePublication if is_exclusive else AddPublication
        correlation_id = self._ask(lambda new: command(self.client_id, new, stream_id, channel))
        kind = ExclusivePublicationReady if is_exclusive else PublicationReady
        ready = self._await(correlation_id, kind)
        with self.lock:
            publication = Publication(
                self,
                self._logs.acquire(Path(ready.log_file_name)),
                channel=channel,
                registration_id=correlation_id,
                original_registration_id=ready.registration_id,
                limit_counter_id=ready.limit_counter_id,
                channel_status_id=ready.channel_status_counter_id,
            )
            self._publications[correlation_id] = publication
        return publication

    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        on_available_image: ImageHandler | None,
        on_unavailable_image: ImageHandler | None,
    ) -> Subscription:
        """Open a subscription and wait until it is ready; its images may come at any time after."""
        with self.lock:
            # Known before the answer: an image may be announced in the same breath.
            correlation_id = self._ask(
                lambda new: self._expect_subscription(
                    new, channel, stream_id, on_available_image, on_unavailable_image
                )
            )
        try:
            self._await(correlation_id, SubscriptionReady)
        except BaseException:
            with self.lock:
                self._subscriptions.pop(correlation_id, None)
            raise
        return self._subscriptions[correlation_id]

    def _expect_subscription(
        self,
        correlation_id: int,
        channel: str,
        stream_id: int,
        on_available_image: ImageHandler | None,
        on_unavailable_image: ImageHandler | None,
    ) -> AddSubscription:
        self._subscriptions[correlation_id] = Subscription(
            self,
            channel=channel,
            stream_id=stream_id,
            registration_id=correlation_id,
            on_available_image=on_available_image,
            on_unavailable_image=on_unavailable_image,
        )
        return AddSubscription(self.client_id, correlation_id, stream_id, channel)

    def release_publication(self, publication: Publication) -> None:
        """A publication was closed by its owner."""
        with self.lock:
            if self._publications.pop(publication.registration_id, None) is None:
                return
            log = publication.on_client_closed("closed by its owner")
            self._logs.release(log, self._clock.now_ns())
            if self.is_closed:
                return
        removed = publication.registration_id
        asked = self._ask(lambda new: RemovePublication(self.client_id, new, removed))
        self._await(asked, OperationSuccess)

    def release_subscription(self, subscription: Subscription) -> None:
        """A subscription was closed by its owner."""
        with self.lock:
            if self._subscriptions.pop(subscription.registration_id, None) is None:
                return
            self._drop_images(subscription)
            if self.is_closed:
                return
        removed = subscription.registration_id
        asked = self._ask(lambda new: RemoveSubscription(self.client_id, new, removed))
        self._await(asked, OperationSuccess)

    def _drop_images(self, subscription: Subscription) -> None:
        images, subscription.images = subscription.images, ()
        for image in images:
            self._logs.release(image.on_unavailable(), self._clock.now_ns())

    def fail(self, reason: str) -> None:
        """The client cannot go on: everything that it opened is closed for this reason."""
        with self.lock:
            if not self.is_closed:
                self._fail(reason)

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._end(reason)

    def _end(self, reason: str) -> None:
        self.is_closed = True
        for publication in self._publications.values():
            publication.on_client_closed(reason)
        for subscription in self._subscriptions.values():
            subscription.is_closed = True
            self._drop_images(subscription)
        self._publications.clear()
        self._subscriptions.clear()

    def close(self) -> None:
        """Tell the driver that this client is done and let go of everything."""
        with self.lock:
            if not self.is_closed:
                self._send(ClientClose(self.client_id))
                self._end("the client was closed")
            self._logs.close()
