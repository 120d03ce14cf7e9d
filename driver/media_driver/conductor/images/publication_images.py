"""The images of UDP streams, which are created on SETUP, drained, and freed after a linger time.

While an image drains, its status messages have the EOS flag, which lets the sender finish early.
The receiver releases an image when the image enters LINGER. The log and the counters are freed when
the image has no subscribers left. Source: spec 3.2, 3.9 and 3.10, Aeron 1.53 (the C driver where
the two differ).
"""

import errno
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache

import numpy as np

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media_driver.agent.agent_proxy import append_slot, remove_slot
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.endpoints.receive_channel_endpoints import (
    ReceiveChannelEndpoints,
)
from windtunnel.driver.media_driver.conductor.error_codes import logged_code_of
from windtunnel.driver.media_driver.conductor.images.conductor_image import PublicationImage, State
from windtunnel.driver.media_driver.conductor.images.image_admission import (
    HALF_OPEN_TIMEOUT_NS,
    RESTRICTED_NS,
    ImageAdmission,
)
from windtunnel.driver.media_driver.conductor.images.image_factory import ImageFactory
from windtunnel.driver.media_driver.conductor.images.subscriptions import (
    Subscription,
    SubscriptionLinks,
)
from windtunnel.driver.media_driver.conductor.publications.retired_logs import (
    delete_log,
    retire_log,
)
from windtunnel.driver.media_driver.image import publication_image
from windtunnel.driver.media_driver.receiver import dispatcher, new_sessions, receiver_state

EOS_STATUS_INTERVALS = 5
"""Number of intervals during which status messages with EOS are sent before an image is removed.
Source: Aeron 1.53, not configurable."""


class PublicationImages:
    """All images of UDP streams in this driver."""

    def __init__(
        self,
        resources: DriverResources,
        endpoints: ReceiveChannelEndpoints,
        links: SubscriptionLinks,
    ) -> None:
        self._resources = resources
        self._endpoints = endpoints
        self._links = links
        self._factory = ImageFactory(resources)
        self._admission = ImageAdmission(resources.receiver, self._factory.slots)
        self.images: list[PublicationImage] = []

    def on_create(self, event: np.ndarray, now_ns: int) -> None:
        """Create an image for a received SETUP if it has subscriptions (event CREATE_IMAGE)."""
        endpoint = self._endpoints.by_slot(int(event[dispatcher.ENDPOINT]))
        stream_id, session_id = int(event[dispatcher.STREAM_ID]), int(event[dispatcher.SESSION_ID])
        subscriptions = [
            item
            for item in self._links.subscriptions.values()
            if endpoint is not None and item.endpoint is endpoint
            if item.stream_id == stream_id and item.accepts_session(session_id)
        ]
        # The destination that received the SETUP may already be removed.
        is_open = self._endpoints.has_transport(endpoint, int(event[dispatcher.TRANSPORT]))
        if endpoint is None or not subscriptions or not is_open:
            self._fail(event, new_sessions.REFUSED)
            return
        kind = f"image of {endpoint.channel.canonical_form}"
        level = int(event[dispatcher.LEVEL])
        refusal = self._admission.refusal(endpoint.slot, stream_id, level)
        if refusal is not None:
            self._resources.record_error(ErrorCode.GENERIC_ERROR, f"{kind}: {refusal}", kind)
            self._fail(event, level)
            return
        try:
            # On a failure, release the previous allocations.
            with ExitStack() as undo:
                image = self._factory.make(undo, event, endpoint, subscriptions, now_ns)
                undo.callback(self._links.unlink_stream, image)
                for subscription in subscriptions:
                    self._links.link(subscription, image)
                undo.pop_all()
        except Exception as error:
            # Other exceptions are bugs. Record the stack trace and continue.
            is_expected = isinstance(error, DriverError | OSError)
            text = str(error) if is_expected else traceback.format_exc()
            self._resources.record_error(logged_code_of(error), f"{kind}: {text}", kind)
            self._fail(event, level)
            return
        self._admission.on_created(image.slot, now_ns)
        self._hand_over(image, endpoint)

    def _hand_over(self, image: PublicationImage, endpoint: ChannelEndpoint) -> None:
        self.images.append(image)
        # The image sends feedback through the channel's socket until the receiver releases it.
        endpoint.users += 1
        conductor = self._resources.conductor
        append_slot(conductor.active_images, conductor.agent[0], "image_count", image.slot)
        self._resources.receiver_proxy.offer(receiver_state.ADD_IMAGE, image.slot)

    def _fail(self, event: np.ndarray, restricted_level: int) -> None:
        words = (
            event[dispatcher.ENDPOINT],
            event[dispatcher.STREAM_ID],
            event[dispatcher.SESSION_ID],
        )
        self._resources.receiver_proxy.offer(
            receiver_state.IMAGE_FAILED,
            *(int(word) for word in words),
            restricted_level,
            RESTRICTED_NS,
        )

    def on_session_limit(self, event: np.ndarray) -> None:
        """Record in the error log that a stream has reached its session limit."""
        self._resources.record_error(
            -errno.EINVAL,
            f"exceeded session limit, stream-id={int(event[2])}",
            "exceeded session limit",
        )

    def check_all(self, now_ns: int) -> Iterator[None]:
        """Move images that have ended, timed out or lost all subscribers to their next state.
        Yields after each image.
        """
        is_full = cache(self._admission.is_full)
        for image in list(self.images):
            if self._is_silent(image, now_ns) and is_full(image.endpoint.slot, image.stream_id):
                self._linger(image, now_ns, may_return=True)
            elif image.state is State.ACTIVE:
                self._drain_if_over(image, now_ns)
            elif image.state is State.DRAINING:
                self._linger_if_drained(image, now_ns)
            else:
                self._free_if_unread(image, now_ns)
            yield

    def _is_silent(self, image: PublicationImage, now_ns: int) -> bool:
        """Return whether an image has been half-open for too long. It then gives way to other
        sessions of its stream.
        """
        return (
            image.state is State.ACTIVE
            and now_ns - int(image.record["last_packet_ns"]) > HALF_OPEN_TIMEOUT_NS
            and self._admission.is_half_open(image.slot)
        )

    def _read_shared(self, image: PublicationImage, field: int) -> int:
        return int(
            publication_image.shared_acquire(self._resources.receiver.words, image.slot, field)
        )

    def _drain_if_over(self, image: PublicationImage, now_ns: int) -> None:
        if self._read_shared(image, publication_image.IS_REVOKED):
            # The final status message is sent with the next transition.
            image.state = State.DRAINING
            return
        is_eos = bool(self._read_shared(image, publication_image.IS_END_OF_STREAM))
        silence_ns = now_ns - self._read_shared(image, publication_image.LAST_PACKET_NS)
        is_complete = is_eos and image.rcv_position() >= image.hwm_position()
        is_silent = silence_ns > self._resources.context.image_liveness_timeout_ns
        if is_complete or is_silent or image.readers()[1] == 0:
            image.state, image.state_since_ns = State.DRAINING, now_ns
            self._resources.receiver_proxy.offer(receiver_state.START_DRAINING, image.slot, 0)

    def end(self, image: PublicationImage) -> None:
        """End an image at once, as if its publication had been revoked."""
        words = self._resources.receiver.words
        publication_image.set_shared_release(words, image.slot, publication_image.IS_REVOKED, 1)

    def _linger_if_drained(self, image: PublicationImage, now_ns: int) -> None:
        is_revoked = bool(self._read_shared(image, publication_image.IS_REVOKED))
        eos_ns = EOS_STATUS_INTERVALS * self._resources.context.status_message_timeout_ns
        has_sent_eos = now_ns - image.state_since_ns > eos_ns
        if not is_revoked and not (has_sent_eos and image.is_drained()):
            return
        if is_revoked:
            self._resources.receiver_proxy.offer(receiver_state.START_DRAINING, image.slot, 1)
        self._linger(image, now_ns)

    def _linger(self, image: PublicationImage, now_ns: int, *, may_return: bool = False) -> None:
        image.state, image.state_since_ns = State.LINGER, now_ns
        image.record["is_rebuilding"] = 0
        conductor = self._resources.conductor
        remove_slot(conductor.active_images, conductor.agent[0], "image_count", image.slot)
        # Without rejoin, the session enters cool-down. With rejoin, it may return immediately.
        is_rejoining = True
        for link in self._links.readers_of(image):
            is_rejoining = link.subscription.parameters.is_rejoin
            self._links.notify_unavailable(link)
        is_cooling_down = not is_rejoining and not may_return
        self._resources.receiver_proxy.offer(
            receiver_state.REMOVE_IMAGE, image.slot, int(is_cooling_down)
        )

    def on_released(self, slot: int) -> None:
        """Release an image's reference to its channel after the receiver has released the image."""
        image = next(item for item in self.images if item.slot == slot)
        image.is_released = True
        self._endpoints.release(image.endpoint)

    def _free_if_unread(self, image: PublicationImage, now_ns: int) -> None:
        lingered_ns = now_ns - image.state_since_ns
        linger_ns = self._resources.context.image_liveness_timeout_ns
        if self._admission.is_half_open(image.slot):
            # There is nothing to read. Clients only need time to learn that the image has ended.
            linger_ns = min(linger_ns, HALF_OPEN_TIMEOUT_NS)
        is_over = lingered_ns > linger_ns
        if not image.is_released or not (is_over or image.readers()[1] == 0):
            return
        self.images.remove(image)
        self._links.drop_links(image)
        for counter_id in image.counter_ids:
            self._resources.counters.free(counter_id)
        retire_log(self._resources, image.log)
        self._admission.on_freed(image.slot)
        self._factory.slots.release(image.slot)

    def reject(self, image_correlation_id: int, reason: str) -> bool:
        """Reject an image and send the reason to its source. A later reason replaces it, unless the
        receiver has not yet taken the last one.

        Returns: False if no image has this correlation id
        """
        for image in self.images:
            if image.registration_id == image_correlation_id:
                self._send_rejection_command(image, reason.encode())
                return True
        return False

    def _send_rejection_command(self, image: PublicationImage, text: bytes) -> None:
        receiver, slot = self._resources.receiver, image.slot
        # Acquire: the receiver publishes the row that it reads, and no longer reads the other one.
        in_use = publication_image.shared_acquire(
            receiver.words, slot, publication_image.REASON_ROW
        )
        if image.state is State.LINGER or in_use != image.reason_row:
            return
        row = image.reason_row = 1 - in_use
        receiver.reasons[slot, row, : len(text)] = np.frombuffer(text, dtype=np.uint8)
        # The command queue's release store publishes the row.
        self._resources.receiver_proxy.offer(receiver_state.REJECT_IMAGE, slot, len(text), row)

    def close(self) -> None:
        """Delete the logs of all images. Call this only after the receiver has stopped."""
        for image in self.images:
            delete_log(self._resources, image.log)
        self.images.clear()

    def join(self, subscription: Subscription) -> None:
        """Link a new subscription to the existing images on its channel."""
        for image in self.images:
            same = image.endpoint is subscription.endpoint
            same = same and image.stream_id == subscription.stream_id
            if same and image.accepts_readers() and subscription.accepts_session(image.session_id):
                self._links.try_link(subscription, image)
