"""The images of streams that come in over UDP: made when a SETUP arrives, tracked, and let go in
good order.

    ACTIVE --nobody reads, silence, or end of stream--> DRAINING --consumed and 5 status
    intervals--> RELEASING

While an image drains, its status messages say so, which lets the sender finish early. Its log and
counters are freed only after the receiver has let go. Source: spec 3.2, 3.9 and 3.10, Aeron 1.53
(the C driver where the two differ).
"""

import enum
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from driver.base.arith import wrap_i32
from driver.base.errors import DriverError
from driver.channel.socket_address import read_name
from driver.cnc import counters
from driver.command.command_type import ErrorCode
from driver.logbuffer import descriptor, position
from driver.logbuffer.log_buffer import LogBuffer
from driver.logbuffer.parameters import LogParameters
from driver.media_driver import (
    congestion_control,
    dispatcher,
    loss_report,
    publication_image,
    receiver_state,
    stream_counters,
    subscriber_positions,
)
from driver.media_driver.agent_proxy import SlotPool, append_slot, fill_record, remove_slot
from driver.media_driver.channel_endpoints import ChannelEndpoint, ChannelEndpoints
from driver.media_driver.command_error import CommandError
from driver.media_driver.facilities import Facilities
from driver.media_driver.publication_log import delete_log
from driver.media_driver.subscriptions import Subscription, SubscriptionLinks
from driver.wire import frame_type

EOS_STATUS_INTERVALS = 5
"""Status messages that say end of stream before an image goes. Source: Aeron 1.53, fixed."""


class State(enum.Enum):
    """Where an image is in its life."""

    ACTIVE = "active"
    DRAINING = "draining"
    RELEASING = "releasing"


@dataclass(eq=False)
class PublicationImage:
    """One image; `registration_id` is its correlation id."""

    registration_id: int
    session_id: int
    stream_id: int
    log: LogBuffer
    slot: int
    record: np.record
    endpoint: ChannelEndpoint
    source_identity: str
    channel_text: str
    counter_ids: list[int]
    values: np.ndarray
    positions: np.ndarray
    is_rejoin: bool
    state: State = State.ACTIVE
    state_since_ns: int = 0

    @property
    def log_path(self) -> Path:
        """What clients map."""
        return self.log.path

    def rcv_position(self) -> int:
        """How far the stream is contiguous."""
        return int(counters.get(self.values, int(self.record["rcv_pos_id"])))

    def hwm_position(self) -> int:
        """The highest position that was received."""
        return int(counters.get_acquire(self.values, int(self.record["hwm_id"])))

    def readers(self) -> tuple[int, int]:
        """The slowest reader's position and the number of readers."""
        lowest, _, count = subscriber_positions.bounds(
            self.positions, int(self.record["first_subscriber"]), self.values
        )
        return int(lowest), int(count)

    def join_position(self) -> int:
        """Where a new reader starts: never ahead of a reader that is there."""
        lowest, count = self.readers()
        return min(self.rcv_position(), lowest) if count else self.rcv_position()

    def accepts_readers(self) -> bool:
        """Whether a subscription that comes now may join: while somebody has yet to read it."""
        if self.state is State.DRAINING:
            lowest, count = self.readers()
            return count > 0 and lowest < self.rcv_position()
        return self.state is State.ACTIVE


class PublicationImages:
    """All of them."""

    def __init__(
        self, parts: Facilities, endpoints: ChannelEndpoints, links: SubscriptionLinks
    ) -> None:
        self._parts = parts
        self._endpoints = endpoints
        self._links = links
        self._slots = SlotPool(parts.receiver.images.size, "images")
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
        if endpoint is None or not wanting:
            self._fail(event)
            return
        try:
            # Whatever runs out half-way, what was taken until then is given back.
            with ExitStack() as undo:
                image = self._create(undo, event, endpoint, wanting, now_ns)
                undo.callback(self._links.unlink_stream, image)
                for subscription in wanting:
                    self._links.link(subscription, image)
                undo.pop_all()
        except (DriverError, OSError) as error:
            self._parts.record_error(
                ErrorCode.GENERIC_ERROR, f"image of {endpoint.channel.canonical_form}: {error}"
            )
            self._fail(event)
            return
        self.images.append(image)
        # The image answers through the channel's socket for as long as it lives.
        endpoint.users += 1
        append_slot(
            self._parts.conductor.active_images,
            self._parts.conductor.agent[0],
            "image_count",
            image.slot,
        )
        self._parts.receiver_proxy.ask(receiver_state.ADD_IMAGE, image.slot)

    def _fail(self, event: np.ndarray) -> None:
        words = (
            event[dispatcher.ENDPOINT],
            event[dispatcher.STREAM_ID],
            event[dispatcher.SESSION_ID],
        )
        self._parts.receiver_proxy.ask(receiver_state.IMAGE_FAILED, *(int(word) for word in words))

    def _create(
        self,
        undo: ExitStack,
        event: np.ndarray,
        endpoint: ChannelEndpoint,
        wanting: list[Subscription],
        now_ns: int,
    ) -> PublicationImage:
        parts = self._parts
        oldest = min(wanting, key=lambda item: item.registration_id)
        session_id, stream_id = int(event[dispatcher.SESSION_ID]), oldest.stream_id
        mtu_length = int(event[dispatcher.MTU_LENGTH])
        window_length = oldest.parameters.initial_window_length
        if window_length < mtu_length:
            raise CommandError(
                f"receiver window {window_length} is below the sender's mtu {mtu_length}"
            )
        correlation_id = parts.next_correlation_id()
        is_group = oldest.parameters.is_group(
            is_multicast=endpoint.channel.is_multicast
            or bool(int(event[dispatcher.SETUP_FLAGS]) & frame_type.GROUP)
        )
        log = self._create_log(event, correlation_id, oldest, is_group=is_group)
        undo.callback(delete_log, parts, log)
        identity = (
            correlation_id,
            oldest.client_id,
            session_id,
            stream_id,
            oldest.channel_text,
        )
        at = int(
            position.of(
                int(event[dispatcher.ACTIVE_TERM_ID]),
                int(event[dispatcher.TERM_OFFSET]),
                log.bits,
                log.initial_term_id,
            )
        )
        ids = []
        for type_id, value in (
            (stream_counters.RECEIVER_HWM, at),
            (stream_counters.RECEIVER_POSITION, at),
            (stream_counters.RECEIVER_NAKS_SENT, 0),
        ):
            ids.append(parts.counters.stream(type_id, *identity, value=value))
            undo.callback(parts.counters.free, ids[-1])
        slot = self._slots.take()
        undo.callback(self._slots.give_back, slot)
        record = parts.receiver.images[slot]
        self._fill_record(record, log, endpoint, oldest, ids, at, now_ns, is_group=is_group)
        record["correlation_id"] = correlation_id
        record["session_id"], record["stream_id"] = session_id, stream_id
        self._fill_connection(slot, event, endpoint, now_ns)
        return PublicationImage(
            registration_id=correlation_id,
            session_id=session_id,
            stream_id=stream_id,
            log=log,
            slot=slot,
            record=record,
            endpoint=endpoint,
            source_identity=_source_text(event),
            channel_text=oldest.channel_text,
            counter_ids=ids,
            values=parts.values,
            positions=parts.conductor.subscribers,
            is_rejoin=oldest.parameters.is_rejoin,
        )

    def _create_log(
        self, event: np.ndarray, correlation_id: int, oldest: Subscription, *, is_group: bool
    ) -> LogBuffer:
        context, parameters = self._parts.context, oldest.parameters
        log = LogBuffer.create(
            self._parts.image_file(correlation_id),
            LogParameters(
                type=descriptor.IMAGE,
                correlation_id=correlation_id,
                session_id=int(event[dispatcher.SESSION_ID]),
                stream_id=int(event[dispatcher.STREAM_ID]),
                initial_term_id=int(event[dispatcher.INITIAL_TERM_ID]),
                term_length=int(event[dispatcher.TERM_LENGTH]),
                mtu_length=int(event[dispatcher.MTU_LENGTH]),
                page_size=context.file_page_size,
                receiver_window_length=parameters.initial_window_length,
                untethered_window_limit_timeout_ns=parameters.untethered_window_limit_timeout_ns,
                untethered_resting_timeout_ns=parameters.untethered_resting_timeout_ns,
                untethered_linger_timeout_ns=parameters.untethered_linger_timeout_ns,
                group=is_group,
                rejoin=parameters.is_rejoin,
                reliable=parameters.is_reliable,
                sparse=parameters.is_sparse,
                tether=parameters.is_tethered,
            ),
            sparse=parameters.is_sparse,
            check_storage=context.perform_storage_checks,
        )
        self._parts.note_mapped(log.length)
        return log

    def _fill_record(
        self,
        record: np.record,
        log: LogBuffer,
        endpoint: ChannelEndpoint,
        oldest: Subscription,
        ids: list[int],
        join_position: int,
        now_ns: int,
        *,
        is_group: bool,
    ) -> None:
        context, parameters = self._parts.context, oldest.parameters
        window = int(
            congestion_control.initial_window(parameters.initial_window_length, log.term_length)
        )
        delay_ns = parameters.nak_delay_ns or context.nak_unicast_delay_ns
        retry_ns = delay_ns * context.nak_unicast_retry_delay_ratio
        values = {
            "endpoint": endpoint.slot,
            "log_address": log.address,
            "log_length": log.length,
            "meta_at": log.meta_at,
            "initial_term_id": log.initial_term_id,
            "term_length": log.term_length,
            "bits": log.bits,
            "mtu": log.mtu_length,
            "window_max": window,
            "next_window": window,
            "sm_window": window,
            "is_reliable": int(parameters.is_reliable),
            "is_group": int(is_group),
            "status_timeout_ns": context.status_message_timeout_ns,
            "nak_delay_ns": delay_ns if parameters.is_reliable else 0,
            "nak_retry_ns": retry_ns if parameters.is_reliable else 0,
            "hwm_id": ids[0],
            "rcv_pos_id": ids[1],
            "naks_sent_id": ids[2],
            "last_status_position": join_position,
            "over_run_threshold": join_position + log.term_length // 2,
            "last_packet_ns": now_ns,
            "next_status_position": join_position,
            "sm_position": join_position,
            "clean_position": join_position,
            "counted_loss_end": -1,
            "loss_entry_at": loss_report.NO_ENTRY,
            "first_subscriber": subscriber_positions.NONE,
            "is_rebuilding": 1,
        }
        fill_record(record, **values)

    def _fill_connection(
        self, slot: int, event: np.ndarray, endpoint: ChannelEndpoint, now_ns: int
    ) -> None:
        """Who sent the SETUP is who is answered, from the first status message on."""
        channel = self._parts.receiver.endpoints[endpoint.slot]
        name, length = channel["control"], int(channel["control_length"])
        if not channel["has_control"]:
            name, length = _source_name(event), int(event[dispatcher.SOURCE_LENGTH])
        self._parts.receiver.images[slot]["connection_count"] = 1
        row = slot * publication_image.CONNECTIONS_MAX
        connection = self._parts.receiver.connections[row]
        connection["control"], connection["control_length"] = name, length
        connection["is_known"], connection["is_eos"] = 1, 0
        connection["last_activity_ns"] = connection["last_frame_ns"] = now_ns

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

    def _shared(self, image: PublicationImage, field: int) -> int:
        return int(publication_image.shared_acquire(self._parts.receiver.words, image.slot, field))

    def _drain_if_over(self, image: PublicationImage, now_ns: int) -> None:
        is_revoked = bool(self._shared(image, publication_image.IS_REVOKED))
        is_eos = bool(self._shared(image, publication_image.IS_END_OF_STREAM))
        silence_ns = now_ns - self._shared(image, publication_image.LAST_PACKET_NS)
        is_complete = is_eos and image.rcv_position() >= image.hwm_position()
        is_silent = silence_ns > self._parts.context.image_liveness_timeout_ns
        if is_revoked or is_complete or is_silent or image.readers()[1] == 0:
            image.state, image.state_since_ns = State.DRAINING, now_ns
            self._parts.receiver_proxy.ask(
                receiver_state.START_DRAINING, image.slot, int(is_revoked)
            )

    def _linger_if_drained(self, image: PublicationImage, now_ns: int) -> None:
        context = self._parts.context
        is_revoked = bool(self._shared(image, publication_image.IS_REVOKED))
        lowest, _ = image.readers()
        is_drained = lowest >= image.rcv_position()
        eos_ns = EOS_STATUS_INTERVALS * context.status_message_timeout_ns
        if is_revoked or (is_drained and now_ns - image.state_since_ns >= eos_ns):
            is_eos = self._shared(image, publication_image.IS_END_OF_STREAM)
            image.state, image.state_since_ns = State.RELEASING, now_ns
            image.record["is_rebuilding"] = 0
            remove_slot(
                self._parts.conductor.active_images,
                self._parts.conductor.agent[0],
                "image_count",
                image.slot,
            )
            self._links.unlink_stream(image)
            # Without a rejoin the session stays in cool-down; with one it may come back at once.
            cool_down = int(not is_eos and not image.is_rejoin)
            self._parts.receiver_proxy.ask(receiver_state.REMOVE_IMAGE, image.slot, cool_down)

    def on_released(self, slot: int) -> None:
        """The receiver let go: everything of the image can be freed."""
        image = next(item for item in self.images if item.slot == slot)
        self.images.remove(image)
        for counter_id in image.counter_ids:
            self._parts.counters.free(counter_id)
        delete_log(self._parts, image.log)
        self._slots.give_back(slot)
        self._endpoints.release(image.endpoint)

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
                try:
                    self._links.link(subscription, image)
                except DriverError as error:
                    # The subscription was answered for already; it goes without this image.
                    self._parts.record_error(ErrorCode.GENERIC_ERROR, str(error))


def _source_name(event: np.ndarray) -> np.ndarray:
    words = event[dispatcher.SOURCE : dispatcher.SOURCE + dispatcher.SOURCE_WORDS]
    return np.array([int(wrap_i32(int(word))) for word in words], dtype=np.int32).view(np.uint8)


def _source_text(event: np.ndarray) -> str:
    address = read_name(_source_name(event), int(event[dispatcher.SOURCE_LENGTH]))
    return "unknown" if address is None else address.text
