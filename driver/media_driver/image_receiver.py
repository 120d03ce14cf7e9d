"""One image in the receiver: packets are filed, status messages and NAKs leave, lost ranges of
unreliable streams are padded.

    last status position        + term_length / 2
       |------------------------------|  a packet that ends beyond is an over-run: counted, dropped
       |   <- only packets that start at or behind it are filed; earlier ones are under-runs

Source: spec 3.3, 3.5, 3.6 and 3.8, Aeron 1.53.
"""

from driver.base import handoff
from driver.base.arith import wrap_i32
from driver.base.atomics import bytes_at, put_i32_release, put_i64_release, put_u8_release
from driver.base.jit import kernel
from driver.base.system import NS_PER_SECOND
from driver.cnc import counters
from driver.logbuffer import descriptor, gap_filler, position, rebuilder
from driver.media import transport
from driver.media_driver import publication_image as image
from driver.media_driver import system_counters
from driver.media_driver.receiver_state import SEND_FAILED
from driver.wire import data, frame_type, header, nak, status_message

CONNECTION_TIMEOUT_NS = 5 * NS_PER_SECOND
"""An answer goes to a connection only this long after its last packet. Source: Aeron 1.53 C."""


@kernel
def send_to(state, endpoint_slot, length, name, name_length):
    """Send the frame in `state.scratch` to a socket address. Returns whether all of it left."""
    endpoint = state.endpoints[endpoint_slot]
    result = transport.send_frame(
        endpoint.fd, state.scratch, 0, length, name, name_length, state.links
    )
    if result < 0:
        _report_failure(state, endpoint_slot, result)
    elif result < length:
        counters.add_atomic(state.counters, system_counters.SHORT_SENDS, 1)
    return result == length


@kernel
def _report_failure(state, endpoint_slot, error):
    # Sending may fail at every turn; the queue belongs first to answers that must not be lost.
    if not handoff.is_empty(state.events):
        return
    state.record[0] = SEND_FAILED
    state.record[1] = endpoint_slot
    state.record[2] = error
    handoff.put(state.events, state.record)


@kernel
def insert_packet(state, slot, connection_index, at, length, inbox_index, now_ns):
    """File one DATA or PAD datagram that passed the common check, or a heartbeat.

    Shapes:  the datagram is `state.inbox.slots[at : at + length]`
    """
    rec = state.images[slot]
    packet = state.inbox.slots
    term_id = data.term_id(packet, at)
    term_offset = data.term_offset(packet, at)
    if wrap_i32(term_id - rec.initial_term_id) < 0:
        return
    payload_length = data.validate(packet, at, length, rec.term_length)
    if payload_length < 0:
        counters.add_atomic(state.counters, system_counters.INVALID_PACKETS, 1)
        return
    begin = position.of(term_id, term_offset, rec.bits, rec.initial_term_id)
    end = begin + payload_length
    if end > rec.over_run_threshold:
        counters.increment(state.counters, system_counters.FLOW_CONTROL_OVER_RUNS)
    elif data.is_heartbeat(packet, at, length):
        if begin < max(0, rec.last_status_position - rec.term_length):
            counters.increment(state.counters, system_counters.FLOW_CONTROL_UNDER_RUNS)
            return
        track_connection(state, slot, connection_index, inbox_index, True, now_ns)
        _on_heartbeat(state, slot, connection_index, begin, header.flags(packet, at))
    elif begin >= rec.last_status_position:
        track_connection(state, slot, connection_index, inbox_index, True, now_ns)
        log = bytes_at(rec.log_address, rec.log_length)
        base = position.index(begin, rec.bits) * rec.term_length
        rebuilder.insert(log, base, term_offset, packet, at, length)
        # The frame is visible before the counter moves: the high-water mark points at something.
        counters.propose_max_release(state.counters, rec.hwm_id, end)
    else:
        counters.increment(state.counters, system_counters.FLOW_CONTROL_UNDER_RUNS)
        if end >= rec.last_status_position - rec.window_max:
            track_connection(state, slot, connection_index, inbox_index, False, now_ns)


@kernel
def track_connection(state, slot, connection_index, inbox_index, is_alive, now_ns):
    """Note where the other side of an image is, and that it was heard from."""
    connection = state.connections[slot * image.CONNECTIONS_MAX + connection_index]
    if connection.is_known == 0:
        rec = state.images[slot]
        endpoint = state.endpoints[rec.endpoint]
        if endpoint.has_control:
            connection.control[:] = endpoint.control
            connection.control_length = endpoint.control_length
        else:
            connection.control[:] = transport.source_name(state.inbox, inbox_index)
            connection.control_length = transport.source_length(state.inbox, inbox_index)
        connection.is_known = 1
        rec.connection_count = max(rec.connection_count, connection_index + 1)
    connection.last_activity_ns = now_ns
    if is_alive:
        connection.last_frame_ns = now_ns
        image.set_shared_release(state.words, slot, image.LAST_PACKET_NS, now_ns)


@kernel
def _on_heartbeat(state, slot, connection_index, begin, flags):
    rec = state.images[slot]
    counters.propose_max_release(state.counters, rec.hwm_id, begin)
    counters.increment(state.counters, system_counters.HEARTBEATS_RECEIVED)
    if flags & frame_type.EOS == 0 or rec.is_end_of_stream:
        return
    first = slot * image.CONNECTIONS_MAX
    state.connections[first + connection_index].is_eos = 1
    state.connections[first + connection_index].eos_position = begin
    eos_position = begin
    for index in range(first, first + rec.connection_count):
        if state.connections[index].is_eos == 0:
            return
        eos_position = max(eos_position, state.connections[index].eos_position)
    log = bytes_at(rec.log_address, rec.log_length)
    if flags & frame_type.REVOKED:
        put_u8_release(log, rec.meta_at + descriptor.IS_PUBLICATION_REVOKED, 1)
        counters.increment(state.counters, system_counters.PUBLICATION_IMAGES_REVOKED)
        image.set_shared_release(state.words, slot, image.IS_REVOKED, 1)
    put_i64_release(log, rec.meta_at + descriptor.END_OF_STREAM_POSITION, eos_position)
    image.set_shared_release(state.words, slot, image.IS_END_OF_STREAM, 1)


@kernel
def answer(state, slot, now_ns):
    """Send what is due for an image: a status message, a NAK, or padding over what was lost.

    Returns: an amount of work
    """
    return _send_pending_status(state, slot, now_ns) + _process_pending_loss(state, slot, now_ns)


@kernel
def _is_live(connection, now_ns):
    quiet_ns = now_ns - connection.last_activity_ns
    return connection.control_length > 0 and quiet_ns < CONNECTION_TIMEOUT_NS


@kernel
def _send_pending_status(state, slot, now_ns):
    rec = state.images[slot]
    if rec.is_status_silent:
        return 0
    is_timed_out = rec.next_status_ns - now_ns < 0
    latest = image.status_change_acquire(state.words, slot)
    if latest == rec.last_status_change and not is_timed_out:
        return 0
    change, status_position, window = image.read_status(state.words, slot)
    if change < 0:
        return 0
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
    first = slot * image.CONNECTIONS_MAX
    alive = 0
    for index in range(first, first + rec.connection_count):
        connection = state.connections[index]
        if _is_live(connection, now_ns):
            send_to(state, rec.endpoint, length, connection.control, connection.control_length)
            counters.increment(state.counters, system_counters.STATUS_MESSAGES_SENT)
        if now_ns - connection.last_frame_ns < state.agent[0].liveness_timeout_ns:
            alive += 1
    rec.last_status_position = status_position
    rec.over_run_threshold = status_position + rec.term_length // 2
    rec.last_status_change = change
    rec.next_status_ns = now_ns + rec.status_timeout_ns
    log = bytes_at(rec.log_address, rec.log_length)
    put_i32_release(log, rec.meta_at + descriptor.ACTIVE_TRANSPORT_COUNT, alive)
    return 1


@kernel
def _process_pending_loss(state, slot, now_ns):
    rec = state.images[slot]
    if image.loss_change_acquire(state.words, slot) == rec.last_loss_change:
        return 0
    change, term_id, offset, length = image.read_loss(state.words, slot)
    if change < 0:
        return 0
    rec.last_loss_change = change
    if rec.is_revoked:
        return 1
    if not rec.is_reliable:
        log = bytes_at(rec.log_address, rec.log_length)
        count = wrap_i32(term_id - rec.initial_term_id)
        base = position.index_of_count(count) * rec.term_length
        if gap_filler.try_fill(log, base, rec.meta_at, term_id, offset, length):
            counters.increment(state.counters, system_counters.LOSS_GAP_FILLS)
        return 1
    nak_length = nak.write(state.scratch, 0, rec.session_id, rec.stream_id, term_id, offset, length)
    first = slot * image.CONNECTIONS_MAX
    for index in range(first, first + rec.connection_count):
        connection = state.connections[index]
        if _is_live(connection, now_ns):
            send_to(state, rec.endpoint, nak_length, connection.control, connection.control_length)
            counters.increment(state.counters, system_counters.NAKS_SENT)
            counters.increment(state.counters, rec.naks_sent_id)
    return 1
