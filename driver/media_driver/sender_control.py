"""What receivers tell the sender: status messages, NAKs and round-trip probes, one datagram at a
time.

A frame is checked once, here; what fails is counted as invalid and has no other effect. A frame of
a kind that does not belong on a control socket is ignored. Source: spec 1.4 to 1.10, 4.3 and 4.7,
Aeron 1.53.
"""

from driver.base.jit import kernel
from driver.cnc import counters
from driver.logbuffer import position
from driver.media import stream_map, transport
from driver.media_driver import flow_control, publication_sender, system_counters
from driver.media_driver import network_publication as publication
from driver.wire import error, frame_type, header, nak, rtt_measurement, status_message

TERM_LENGTH_MAX = 1 << 30


@kernel
def poll(state, endpoint_slot, now_ns):
    """Read one batch of datagrams from an endpoint's control socket. Returns datagrams read."""
    endpoint = state.endpoints[endpoint_slot]
    count = transport.receive(endpoint.control_fd, state.inbox, state.links)
    for index in range(count):
        _on_datagram(state, endpoint_slot, index, now_ns)
    return max(count, 0)


@kernel
def _count_invalid(state):
    counters.add_atomic(state.counters, system_counters.INVALID_PACKETS, 1)


@kernel
def _on_datagram(state, endpoint_slot, index, now_ns):
    frames = state.inbox.slots
    at = transport.incoming_at(state.inbox, index)
    length = transport.incoming_length(state.inbox, index)
    if transport.is_truncated(state.inbox, index) or header.check(frames, at, length) < 0:
        _count_invalid(state)
        return
    kind = header.frame_type(frames, at)
    if kind == frame_type.SM:
        _on_status_message(state, endpoint_slot, at, length, now_ns)
    elif kind == frame_type.NAK:
        _on_nak(state, endpoint_slot, at, length, now_ns)
    elif kind == frame_type.RTTM:
        _on_rtt_measurement(state, endpoint_slot, at, length)
    elif kind == frame_type.ERR:
        _on_error(state, at, length)


@kernel
def _on_error(state, at, length):
    if error.check(state.inbox.slots, at, length) < 0:
        _count_invalid(state)
        return
    counters.increment(state.counters, system_counters.ERROR_FRAMES_RECEIVED)


@kernel
def _on_nak(state, endpoint_slot, at, length, now_ns):
    frames = state.inbox.slots
    slot = stream_map.find(
        state.streams, endpoint_slot, nak.stream_id(frames, at), nak.session_id(frames, at)
    )
    term_length = TERM_LENGTH_MAX
    if slot != stream_map.ABSENT:
        term_length = state.publications[slot].term_length
    if nak.check(frames, at, length, term_length) < 0:
        _count_invalid(state)
        return
    if slot == stream_map.ABSENT:
        return
    counters.increment(state.counters, system_counters.NAKS_RECEIVED)
    counters.increment(state.counters, state.publications[slot].naks_received_id)
    publication_sender.on_nak(
        state,
        slot,
        nak.term_id(frames, at),
        nak.term_offset(frames, at),
        nak.gap_length(frames, at),
        now_ns,
    )


@kernel
def _on_rtt_measurement(state, endpoint_slot, at, length):
    """Answer a probe at once: the same frame without its request flag."""
    frames = state.inbox.slots
    if rtt_measurement.check(frames, at, length) < 0 or not rtt_measurement.is_request(frames, at):
        return
    reply_length = rtt_measurement.write(
        state.scratch,
        0,
        0,
        rtt_measurement.session_id(frames, at),
        rtt_measurement.stream_id(frames, at),
        rtt_measurement.echo_timestamp_ns(frames, at),
        0,
        rtt_measurement.receiver_id(frames, at),
    )
    publication_sender.send_control(state, endpoint_slot, reply_length)


@kernel
def _on_status_message(state, endpoint_slot, at, length, now_ns):
    frames = state.inbox.slots
    slot = stream_map.find(
        state.streams,
        endpoint_slot,
        status_message.stream_id(frames, at),
        status_message.session_id(frames, at),
    )
    term_length = TERM_LENGTH_MAX
    if slot != stream_map.ABSENT:
        term_length = state.publications[slot].term_length
    if status_message.check(frames, at, length, term_length) < 0:
        _count_invalid(state)
        return
    counters.increment(state.counters, system_counters.STATUS_MESSAGES_RECEIVED)
    if slot == stream_map.ABSENT:
        return
    flags = header.flags(frames, at)
    pub = state.publications[slot]
    if flags & frame_type.SEND_SETUP:
        if pub.is_end_of_stream == 0:
            pub.is_setup_elicited = 1
    elif not _apply_status(state, slot, at, flags, now_ns):
        counters.increment(state.counters, system_counters.STATUS_MESSAGES_REJECTED)
        return
    state.endpoints[endpoint_slot].last_status_ns = now_ns


@kernel
def _apply_status(state, slot, at, flags, now_ns):
    """Move the limit and note the receiver. Returns False for a position out of all proportion."""
    frames = state.inbox.slots
    pub = state.publications[slot]
    values = state.counters
    consumed = position.of(
        status_message.term_id(frames, at),
        status_message.term_offset(frames, at),
        pub.bits,
        pub.initial_term_id,
    )
    snd_pos = counters.get(values, pub.snd_pos_id)
    reach = pub.term_length // 2
    if consumed < snd_pos - reach or consumed > snd_pos + reach:
        return False
    limit = consumed + status_message.window_length(frames, at)
    receiver_id = status_message.receiver_id(frames, at)
    if flags & frame_type.SM_EOS:
        pub.receivers_count = flow_control.on_receiver_done(
            state.receivers, slot, pub.receivers_count, receiver_id
        )
        if not pub.is_group:
            publication.set_has_unicast_eos_release(state.words, slot, 1)
    else:
        pub.receivers_count = flow_control.on_receiver_alive(
            state.receivers, slot, pub.receivers_count, receiver_id, consumed, limit, now_ns
        )
        # Whoever comes after a receiver that was done must be lingered for as well.
        publication.set_has_unicast_eos_release(state.words, slot, 0)
    pub.has_initial_connection = 1
    publication.set_has_receivers_release(state.words, slot, int(pub.receivers_count > 0))
    sender_limit = counters.get(values, pub.snd_lmt_id)
    counters.set_release(
        values,
        pub.snd_lmt_id,
        flow_control.limit_after_status(pub.flow_control, sender_limit, limit),
    )
    publication_sender.refresh_connected(state, slot)
    return True
