"""Making an image: a SETUP and the subscriptions that want it become a log, counters and a record.

Whatever is taken is noted in an ExitStack, so that an image that cannot be finished leaves nothing
behind. Source: spec 3.2, Aeron 1.53.
"""

from contextlib import ExitStack

import numpy as np

from driver.base.arith import wrap_i32
from driver.channel.socket_address import read_name
from driver.logbuffer import descriptor, position
from driver.logbuffer.log_buffer import LogBuffer
from driver.logbuffer.parameters import LogParameters
from driver.media_driver import (
    congestion_control,
    dispatcher,
    loss_report,
    publication_image,
    stream_counters,
    subscriber_positions,
)
from driver.media_driver.agent_proxy import SlotPool, fill_record
from driver.media_driver.channel_endpoints import ChannelEndpoint
from driver.media_driver.command_error import CommandError
from driver.media_driver.facilities import Facilities
from driver.media_driver.live_image import PublicationImage
from driver.media_driver.publication_log import delete_log
from driver.media_driver.subscriptions import Subscription
from driver.wire import frame_type


class ImageMaker:
    """Makes images in slots that it gives out."""

    def __init__(self, parts: Facilities) -> None:
        self._parts = parts
        self.slots = SlotPool(parts.receiver.images.size, "images")

    def make(
        self,
        undo: ExitStack,
        event: np.ndarray,
        endpoint: ChannelEndpoint,
        wanting: list[Subscription],
        now_ns: int,
    ) -> PublicationImage:
        """One image, not yet linked to its readers nor known to the agents."""
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
        slot = self.slots.take()
        undo.callback(self.slots.give_back, slot)
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


def _source_name(event: np.ndarray) -> np.ndarray:
    words = event[dispatcher.SOURCE : dispatcher.SOURCE + dispatcher.SOURCE_WORDS]
    return np.array([int(wrap_i32(int(word))) for word in words], dtype=np.int32).view(np.uint8)


def _source_text(event: np.ndarray) -> str:
    address = read_name(_source_name(event), int(event[dispatcher.SOURCE_LENGTH]))
    return "unknown" if address is None else address.text
