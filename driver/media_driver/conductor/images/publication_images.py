"""The images of streams that come in over UDP: made when a SETUP arrives, and let go in good order.

While an image drains, its status messages say so, which lets the sender finish early. The receiver
lets go when the image lingers; log and counters are freed when nobody reads it any more. Source:
spec 3.2, 3.9 and 3.10, Aeron 1.53 (the C driver where the two differ).
"""

import traceback
from contextlib import ExitStack

import numpy as np

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media_driver.agent.agent_proxy import append_slot, remove_slot
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.endpoints.receive_channel_endpoints import (
    ReceiveChannelEndpoints,
)
from windtunnel.driver.media_driver.conductor.images.conductor_image import PublicationImage, State
from windtunnel.driver.media_driver.conductor.images.image_factory import ImageMaker
from windtunnel.driver.media_driver.conductor.images.subscriptions import (
    Subscription,
    SubscriptionLinks,
)
from windtunnel.driver.media_driver.conductor.publications.publication_log import delete_log
from windtunnel.driver.media_driver.image import loss_report, publication_image
from windtunnel.driver.media_driver.receiver import dispatcher, receiver_state

EOS_STATUS_INTERVALS = 5
"""Status messages that say end of stream before an image goes. Source: Aeron 1.53, fixed."""


class PublicationImages:
    """All of them."""

    def __init__(
        self, parts: DriverResources, endpoints: ReceiveChannelEndpoints, links: SubscriptionLinks
    ) -> None:
        self._parts = parts
        self._endpoints = endpoints
        self._links = links
        self._maker = ImageMaker(parts)
        self.images: list[PublicationImage] = []

    def on_create(self, event: np.ndarray, now_ns: int) -> None:
        """The receiver saw a SETUP of a session that somebody wants."""
        endpoint = self._endpoints.by_slot(int(event[dispatcher.ENDPOINT]))
        stream_id, session_id = int(event[dispatcher.STREAM_ID]), int(event[dispatcher.SESSION_ID])
        wanting = [
            item
            for item in self._links.subscriptions.values()
            if endpoint is not None and item.endpoint is endpoint
            if item.stream_id == stream_id and item.wants_session(session_id)
        ]
        # The destination that it came in on may have been removed meanwhile.
        is_open = self._endpoints.has_transport(endpoint, int(event[dispatcher.TRANSPORT]))
        if endpoint is None or not wanting or not is_open:
            self._fail(event)
            return
        try:
            # Whatever runs out half-way, what was taken until then is given back.
            with ExitStack() as undo:
                image = self._maker.make(undo, event, endpoint, wanting, now_ns)
                undo.callback(self._links.unlink_stream, image)
                for subscription in wanting:
                    self._links.link(subscription, image)
                undo.pop_all()
        except Exception as error:
            # What is neither of these is a defect of ours, and says where: the driver lives on.
            is_foreseen = isinstance(error, DriverError | OSError)
            text = str(error) if is_foreseen else traceback.format_exc()
            self._parts.record_error(
                ErrorCode.GENERIC_ERROR, f"image of {endpoint.channel.canonical_form}: {text}"
            )
            self._fail(event)
            return
        self._hand_over(image, endpoint)

    def _hand_over(self, image: PublicationImage, endpoint: ChannelEndpoint) -> None:
        self.images.append(image)
        # The image answers through the channel's socket for as long as the receiver has it.
        endpoint.users += 1
        conductor = self._parts.conductor
        append_slot(conductor.active_images, conductor.agent[0], "image_count", image.slot)
        self._parts.receiver_proxy.ask(receiver_state.ADD_IMAGE, image.slot)

    def _fail(self, event: np.ndarray) -> None:
        words = (
            event[dispatcher.ENDPOINT],
            event[dispatcher.STREAM_ID],
            event[dispatcher.SESSION_ID],
        )
        self._parts.receiver_proxy.ask(receiver_state.IMAGE_FAILED, *(int(word) for word in words))

    def on_session_limit(self, event: np.ndarray) -> None:
        """A stream has as many images as it may, and another session wanted one."""
        self._parts.record_error(
            ErrorCode.GENERIC_ERROR, f"exceeded session limit, stream-id={int(event[2])}"
        )

    def report_new_losses(self, now_ms: int) -> None:
        """Give every image that lost something for the first time its entry in the loss report."""
        self._parts.conductor.agent[0]["has_new_loss"] = 0
        for image in self.images:
            lost_bytes = int(image.record["unreported_loss_bytes"])
            if lost_bytes and image.record["loss_entry_at"] == loss_report.NO_ENTRY:
                image.record["loss_entry_at"] = self._parts.loss_report.create_entry(
                    lost_bytes,
                    now_ms,
                    image.session_id,
                    image.stream_id,
                    image.channel_text,
                    image.source_identity,
                )
                image.record["unreported_loss_bytes"] = 0

    def on_timer(self, now_ns: int) -> None:
        """Move every image on that has ended, fell silent or lost its readers."""
        for image in list(self.images):
            if image.state is State.ACTIVE:
                self._drain_if_over(image, now_ns)
            elif image.state is State.DRAINING:
                self._linger_if_drained(image, now_ns)
            else:
                self._free_if_unread(image, now_ns)

    def _shared(self, image: PublicationImage, field: int) -> int:
        return int(publication_image.shared_acquire(self._parts.receiver.words, image.slot, field))

    def _drain_if_over(self, image: PublicationImage, now_ns: int) -> None:
        if self._shared(image, publication_image.IS_REVOKED):
            # The status message that says so leaves with the next step.
            image.state = State.DRAINING
            return
        is_eos = bool(self._shared(image, publication_image.IS_END_OF_STREAM))
        silence_ns = now_ns - self._shared(image, publication_image.LAST_PACKET_NS)
        is_complete = is_eos and image.rcv_position() >= image.hwm_position()
        is_silent = silence_ns > self._parts.context.image_liveness_timeout_ns
        if is_complete or is_silent or image.readers()[1] == 0:
            image.state, image.state_since_ns = State.DRAINING, now_ns
            self._parts.receiver_proxy.ask(receiver_state.START_DRAINING, image.slot, 0)

    def _linger_if_drained(self, image: PublicationImage, now_ns: int) -> None:
        is_revoked = bool(self._shared(image, publication_image.IS_REVOKED))
        eos_ns = EOS_STATUS_INTERVALS * self._parts.context.status_message_timeout_ns
        has_told = now_ns - image.state_since_ns > eos_ns
        if not is_revoked and not (has_told and image.is_drained()):
            return
        if is_revoked:
            self._parts.receiver_proxy.ask(receiver_state.START_DRAINING, image.slot, 1)
        image.state, image.state_since_ns = State.LINGER, now_ns
        image.record["is_rebuilding"] = 0
        conductor = self._parts.conductor
        remove_slot(conductor.active_images, conductor.agent[0], "image_count", image.slot)
        # Without a rejoin the session stays in cool-down; with one it may come back at once.
        is_rejoining = True
        for link in self._links.readers_of(image):
            is_rejoining = link.subscription.parameters.is_rejoin
            self._links.tell_unavailable(link)
        self._parts.receiver_proxy.ask(
            receiver_state.REMOVE_IMAGE, image.slot, int(not is_rejoining)
        )

    def on_released(self, slot: int) -> None:
        """The receiver let go: its socket is no longer needed for this image."""
        image = next(item for item in self.images if item.slot == slot)
        image.is_released = True
        self._endpoints.release(image.endpoint)

    def _free_if_unread(self, image: PublicationImage, now_ns: int) -> None:
        lingered_ns = now_ns - image.state_since_ns
        is_over = lingered_ns > self._parts.context.image_liveness_timeout_ns
        if not image.is_released or not (is_over or image.readers()[1] == 0):
            return
        self.images.remove(image)
        self._links.forget_stream(image)
        for counter_id in image.counter_ids:
            self._parts.counters.free(counter_id)
        delete_log(self._parts, image.log)
        self._maker.slots.give_back(image.slot)

    def reject(self, image_correlation_id: int, reason: str) -> bool:
        """Have an image refuse its packets and say why; the first reason stands.

        Returns: False when there is no such image
        """
        for image in self.images:
            if image.registration_id == image_correlation_id:
                self._tell_reason(image, reason.encode())
                return True
        return False

    def _tell_reason(self, image: PublicationImage, text: bytes) -> None:
        if image.is_rejected or image.state is State.LINGER:
            return
        image.is_rejected = True
        row = self._parts.receiver.reasons[image.slot]
        row[: len(text)] = np.frombuffer(text, dtype=np.uint8)
        # The release of the command publishes the row.
        self._parts.receiver_proxy.ask(receiver_state.REJECT_IMAGE, image.slot, len(text))

    def close(self) -> None:
        """Remove the logs of all; only after the receiver has stopped."""
        for image in self.images:
            delete_log(self._parts, image.log)
        self.images.clear()

    def join(self, subscription: Subscription) -> None:
        """Let a new subscription read the images that its channel has already."""
        for image in self.images:
            same = image.endpoint is subscription.endpoint
            same = same and image.stream_id == subscription.stream_id
            if same and image.accepts_readers() and subscription.wants_session(image.session_id):
                self._links.try_link(subscription, image)
