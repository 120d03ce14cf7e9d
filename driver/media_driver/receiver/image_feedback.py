"""Sends an image's status messages, NAKs, errors and RTT measurements on its live connections.

    status message timeout, or new position     SM, after a RSP_SETUP if one is due
    status message timeout of a rejected image  ERR with the reason, and nothing else
    NAK due                                     NAK, or padding over the gap if unreliable
    RTT measurement due                         RTTM

Source: spec 3.5, 3.6, 3.12 and 4.10, Aeron 1.53 (the C driver where the two differ).
"""

from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import (
    congestion_control,
    image_connections,
    open_gaps,
)
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.media_driver.receiver import (
    gap_filling,
    lost_range_feedback,
    receive_transport,
)
from windtunnel.driver.wire import (
    error,
    frame_type,
    nak,
    response_setup,
    rtt_measurement,
    status_message,
)

IMAGE_REJECTED = int(ErrorCode.IMAGE_REJECTED)


@kernel
def send_feedback(state, slot, now_ns):
    """Send an image's status messages, NAKs and RTT measurements that are due. Returns the work
    count.
    """
    work_count = _send_pending_status(state, slot, now_ns)
    work_count += _process_pending_loss(state, slot, now_ns)
    if congestion_control.should_measure_rtt(state.images[slot], now_ns):
        work_count += _measure_rtt(state, slot, now_ns)
    return work_count


@kernel
def _send_to_live(state, slot, length, is_nak, now_ns):
    """Send the frame in `state.scratch` on every live connection whose feedback limit permits the
    frame's length.

    Returns: the number of connections
    """
    first = slot * image.CONNECTIONS_MAX
    count = 0
    for index in range(first, first + state.images[slot].connection_count):
        connection = state.connections[index]
        if image_connections.is_live(connection, now_ns) and image_connections.spend(
            state, connection, length, 1, is_nak
        ):
            receive_transport.send_to(
                state, connection.transport, length, connection.control, connection.control_length
            )
            count += 1
    return count


@kernel
def _send_pending_status(state, slot, now_ns):
    rec = state.images[slot]
    is_timed_out = rec.is_status_silent == 0 and rec.next_status_ns - now_ns < 0
    if rec.is_rejected:
        if is_timed_out:
            _send_rejection(state, slot)
            rec.next_status_ns = now_ns + rec.status_timeout_ns
        return 0
    latest = image.status_change_acquire(state.words, slot)
    if latest == rec.last_status_change and not is_timed_out:
        return 0
    if is_timed_out and rec.has_response_session:
        length = response_setup.write(
            state.scratch, 0, rec.session_id, rec.stream_id, rec.response_session_id
        )
        _send_to_live(state, slot, length, False, now_ns)
    change, status_position, window = image.read_status(state.words, slot)
    if change < 0:
        return 0
    if rec.is_status_silent == 0:
        _send_status(state, slot, status_position, window, now_ns)
    rec.last_status_position = status_position
    rec.over_run_threshold = status_position + rec.term_length // 2
    rec.last_status_change = change
    rec.next_status_ns = now_ns + rec.status_timeout_ns
    image_connections.publish_active_transports(state, slot, now_ns)
    return 1


@kernel
def _send_status(state, slot, status_position, window, now_ns):
    rec = state.images[slot]
    endpoint = state.endpoints[rec.endpoint]
    length = status_message.write(
        state.scratch,
        0,
        frame_type.SM_EOS if rec.is_sending_eos else 0,
        rec.session_id,
        rec.stream_id,
        position.term_id(status_position, rec.bits, rec.initial_term_id),
        position.term_offset(status_position, rec.term_length),
        window,
        endpoint.receiver_id,
        endpoint.has_group_tag,
        endpoint.group_tag,
    )
    sent = _send_to_live(state, slot, length, False, now_ns)
    counters.add(state.counters, system_counters.STATUS_MESSAGES_SENT, sent)


@kernel
def _send_rejection(state, slot):
    """Send an ERR frame with the rejection reason on every connection of an image, including those
    that are not live.
    """
    rec = state.images[slot]
    endpoint = state.endpoints[rec.endpoint]
    reason = state.reasons[slot, rec.reason_row]
    length = error.write(
        state.scratch,
        0,
        rec.session_id,
        rec.stream_id,
        endpoint.receiver_id,
        endpoint.has_group_tag,
        endpoint.group_tag,
        IMAGE_REJECTED,
        reason,
        min(rec.reason_length, reason.size),
    )
    first = slot * image.CONNECTIONS_MAX
    for index in range(first, first + rec.connection_count):
        connection = state.connections[index]
        if connection.is_known == 0 or connection.control_length == 0:
            continue
        if receive_transport.send_to(
            state, connection.transport, length, connection.control, connection.control_length
        ):
            counters.increment(state.counters, system_counters.ERROR_FRAMES_SENT)


@kernel
def _process_pending_loss(state, slot, now_ns):
    rec = state.images[slot]
    if image.loss_change_acquire(state.words, slot) == rec.last_loss_change:
        return 0
    if open_gaps.is_tracking(rec):
        return lost_range_feedback.process(state, slot, now_ns)
    change, term_id, offset, length = image.read_loss(state.words, slot)
    if change < 0:
        return 0
    image.set_loss_taken_release(state.words, slot, change)
    if rec.is_revoked:
        return 1
    if not rec.is_reliable:
        gap_filling.fill(state, rec, term_id, offset, length)
        return 1
    is_repeated = rec.last_nak_term_id == term_id and rec.last_nak_offset == offset
    rec.last_nak_term_id, rec.last_nak_offset = term_id, offset
    nak_length = nak.write(state.scratch, 0, rec.session_id, rec.stream_id, term_id, offset, length)
    sent = _send_to_live(state, slot, nak_length, True, now_ns)
    counters.add(state.counters, system_counters.NAKS_SENT, sent)
    counters.add(state.counters, rec.naks_sent_id, sent)
    # A repeated NAK does not count as work, so the agent idles although a gap remains.
    return int(not is_repeated)


@kernel
def _measure_rtt(state, slot, now_ns):
    rec = state.images[slot]
    receiver_id = state.endpoints[rec.endpoint].receiver_id
    length = rtt_measurement.write(
        state.scratch, 0, frame_type.REPLY, rec.session_id, rec.stream_id, now_ns, 0, receiver_id
    )
    sent = _send_to_live(state, slot, length, False, now_ns)
    if sent > 0:
        rec.last_rtt_ns = now_ns
    return sent


@kernel
def echo_rtt(state, slot, transport_slot, echo_timestamp_ns, name, name_length):
    """Reply to an RTT measurement request with the sender's timestamp."""
    rec = state.images[slot]
    length = rtt_measurement.write(
        state.scratch,
        0,
        0,
        rec.session_id,
        rec.stream_id,
        echo_timestamp_ns,
        0,
        state.endpoints[rec.endpoint].receiver_id,
    )
    receive_transport.send_to(state, transport_slot, length, name, name_length)
