"""Fills the record of a new image before the agents receive it.

Source: spec 3.2, Aeron 1.53 (the C driver where the two differ).
"""

import numpy as np

from windtunnel.driver.base.arith import I64_MAX, wrap_i32
from windtunnel.driver.channel.socket_address import read_name
from windtunnel.driver.channel.subscription_parameters import (
    DEFAULT_FILL_DELAY_NS,
    SubscriptionParameters,
)
from windtunnel.driver.logbuffer import position
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.agent.agent_proxy import fill_record
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.context import Context
from windtunnel.driver.media_driver.image import (
    congestion_control,
    image_connections,
    loss_report,
    nak_delay,
    publication_image,
)
from windtunnel.driver.media_driver.receiver import dispatcher
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState

_DELAY_NS_MAX = I64_MAX // 2
"""Maximum NAK delay, chosen so that adding it to a time cannot overflow."""


def start_position(event: np.ndarray, log: LogBuffer) -> int:
    """Return the stream position at which an image starts, given the CREATE_IMAGE event."""
    term_id, offset = int(event[dispatcher.ACTIVE_TERM_ID]), int(event[dispatcher.TERM_OFFSET])
    return int(position.of(term_id, offset, log.bits, log.initial_term_id))


def fill_image_record(
    record: np.record,
    log: LogBuffer,
    endpoint_slot: int,
    parameters: SubscriptionParameters,
    context: Context,
    start: int,
    now_ns: int,
) -> None:
    """Set the record fields that depend on the log and the subscription, and zero all others."""
    channel_stamp = parameters.channel_receive_timestamp_offset
    media_stamp = parameters.media_receive_timestamp_offset
    window = congestion_control.initial_window(parameters.initial_window_length, log.term_length)
    values = {
        "endpoint": endpoint_slot,
        "log_address": log.address,
        "log_length": log.length,
        "meta_at": log.meta_at,
        "initial_term_id": log.initial_term_id,
        "term_length": log.term_length,
        "bits": log.bits,
        "mtu": log.mtu_length,
        "window_max": int(window),
        "is_reliable": int(parameters.is_reliable),
        "status_timeout_ns": context.status_message_timeout_ns,
        "is_stamping": int(channel_stamp is not None or media_stamp is not None),
        "channel_stamp_offset": _stamp_offset(channel_stamp),
        "media_stamp_offset": _stamp_offset(media_stamp),
        "last_status_position": start,
        "over_run_threshold": start + log.term_length // 2,
        # An image whose session sent only SETUPs is younger than its last packet (image_admission).
        "last_packet_ns": now_ns - 1,
        "next_status_position": start,
        "sm_position": start,
        "clean_position": start,
        "scanned_position": start,
        "last_nak_offset": -1,
        "counted_loss_end": -1,
        "loss_entry_at": loss_report.NO_ENTRY,
        "first_subscriber": subscriber_positions.NONE,
        "is_rebuilding": 1,
    }
    fill_record(record, **values)


def _stamp_offset(offset: int | None) -> int:
    return publication_image.NO_STAMP if offset is None else offset


def fill_feedback(
    record: np.record,
    parameters: SubscriptionParameters,
    context: Context,
    seed: int,
    *,
    is_group: bool,
) -> None:
    """Set when an image sends NAKs, or fills gaps, and whether it sends NAKs for all gaps."""
    record["is_nak_all_gaps"] = int(parameters.is_reliable and parameters.is_nak_all_gaps)
    if not parameters.is_reliable:
        nak_delay.fill_static(record, 0, 0)
        record["is_fill_delayed"] = int(parameters.is_fill_delayed)
        record["fill_datagrams"] = parameters.gap_fill_datagrams
        record["fill_delay_ns"] = min(
            parameters.gap_fill_delay_ns or DEFAULT_FILL_DELAY_NS, _DELAY_NS_MAX
        )
    elif is_group:
        backoff_ns, size = context.nak_multicast_max_backoff_ns, context.nak_multicast_group_size
        nak_delay.fill_backoff(record, backoff_ns, size, seed)
    else:
        delay_ns = parameters.nak_delay_ns
        delay_ns = context.nak_unicast_delay_ns if delay_ns is None else delay_ns
        retry_ns = delay_ns * context.nak_unicast_retry_delay_ratio
        nak_delay.fill_static(record, min(delay_ns, _DELAY_NS_MAX), min(retry_ns, _DELAY_NS_MAX))


def fill_connection(receiver: ReceiverState, slot: int, event: np.ndarray, now_ns: int) -> None:
    """Set the first connection of an image. Feedback is sent to the channel's control address if it
    has one, otherwise to the source of the SETUP.
    """
    transport = int(event[dispatcher.TRANSPORT])
    first = slot * publication_image.CONNECTIONS_MAX
    receiver.connections[first : first + publication_image.CONNECTIONS_MAX] = np.zeros(
        (), dtype=publication_image.CONNECTION
    )
    channel = receiver.endpoints[transport]
    name, length = channel["control"], int(channel["control_length"])
    if not channel["has_control"]:
        name, length = _source_name(event), int(event[dispatcher.SOURCE_LENGTH])
    number = int(channel["connection"])
    receiver.images[slot]["connection_count"] = number + 1
    connection = receiver.connections[first + number]
    connection["control"], connection["control_length"] = name, length
    connection["is_known"], connection["transport"] = 1, transport
    connection["last_activity_ns"] = now_ns
    connection["last_frame_ns"] = publication_image.NEVER_NS
    connection["unspent_bytes"] = image_connections.UNSPENT_BYTES_FIRST


def _source_name(event: np.ndarray) -> np.ndarray:
    words = event[dispatcher.SOURCE : dispatcher.SOURCE + dispatcher.SOURCE_WORDS]
    return np.array([int(wrap_i32(int(word))) for word in words], dtype=np.int32).view(np.uint8)


def source_text(event: np.ndarray) -> str:
    """Return an image's source identity: the address from which its SETUP frame was received."""
    address = read_name(_source_name(event), int(event[dispatcher.SOURCE_LENGTH]))
    return "unknown" if address is None else address.text
