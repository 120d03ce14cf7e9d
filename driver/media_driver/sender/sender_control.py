"""Processes control frames from receivers: status messages, NAKs, errors, RTTM and RSP_SETUP.

Each frame is validated only here. Invalid frames are counted and dropped. Other frame types are
ignored. Source: spec 1.4 to 1.10, 4.3 and 4.7, Aeron 1.53.
"""

from windtunnel.driver.channel import socket_address
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media import send_endpoint, stream_map, transport
from windtunnel.driver.media_driver.agent import loss_interceptor, system_counters
from windtunnel.driver.media_driver.sender import (
    destination_tracker,
    error_frames,
    flow_control,
    publication_sender,
    receiver_liveness,
    round_trip,
    send_route,
    sender_events,
)
from windtunnel.driver.media_driver.sender import network_publication as publication
from windtunnel.driver.media_driver.sender.sender_state import (
    GROUP_TAG_MALFORMED,
    PUBLICATION_ERROR,
    RESPONSE_CONNECTED,
    RESPONSE_SETUP,
)
from windtunnel.driver.wire import (
    error,
    frame_type,
    header,
    nak,
    response_setup,
    rtt_measurement,
    status_message,
)

TERM_LENGTH_MAX = 1 << 30


@kernel
def poll(state, endpoint_slot, now_ns):
    """Process datagrams from an endpoint's control socket. Returns the number of datagrams."""
    endpoint = state.endpoints[endpoint_slot]
    count = transport.receive(endpoint.control_fd, state.inbox, state.links)
    for index in range(count):
        if state.losses.rules.size > 0:
            at = transport.incoming_at(state.inbox, index)
            length = transport.incoming_length(state.inbox, index)
            if loss_interceptor.is_lost(state.losses, state.inbox.slots, at, length):
                continue
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
        _on_status_message(state, endpoint_slot, index, now_ns)
    elif kind == frame_type.NAK:
        _on_nak(state, endpoint_slot, at, length, now_ns)
    elif kind == frame_type.RTTM:
        _on_rtt_measurement(state, endpoint_slot, at, length, now_ns)
    elif kind == frame_type.ERR:
        _on_error(state, endpoint_slot, index)
    elif kind == frame_type.RSP_SETUP:
        _on_response_setup(state, endpoint_slot, at, length)


@kernel
def _on_error(state, endpoint_slot, index):
    """Process an error frame by removing the receiver and reporting the error to the conductor."""
    frames, at = state.inbox.slots, transport.incoming_at(state.inbox, index)
    if error.check(frames, at, transport.incoming_length(state.inbox, index)) < 0:
        _count_invalid(state)
        return
    counters.increment(state.counters, system_counters.ERROR_FRAMES_RECEIVED)
    stream_id, session_id = error.stream_id(frames, at), error.session_id(frames, at)
    slot = stream_map.find(state.streams, endpoint_slot, stream_id, session_id)
    if slot == stream_map.ABSENT:
        return
    receiver_id = error.receiver_id(frames, at)
    flow_control.on_error(state.flows, state.flow_receivers, slot, receiver_id)
    pub = state.publications[slot]
    # Only an error from a live receiver is reported, and only once. If the event cannot be queued,
    # the receiver is kept, because it sends the error frame again.
    found = receiver_liveness.find(state.receivers, slot, pub.receivers_count, receiver_id)
    if found != receiver_liveness.NOT_FOUND and _report_error(state, endpoint_slot, slot, index):
        pub.receivers_count = receiver_liveness.on_receiver_done(
            state.receivers, slot, pub.receivers_count, receiver_id
        )


@kernel
def _report_error(state, endpoint_slot, slot, index):
    if not sender_events.has_capacity(state) or not error_frames.has_free_slot(state.error_frames):
        return False
    frames, at = state.inbox.slots, transport.incoming_at(state.inbox, index)
    name = state.inbox.names[index]
    name_length = transport.source_length(state.inbox, index)
    destination_id = destination_tracker.NULL_REGISTRATION_ID
    if state.endpoints[endpoint_slot].destinations_mode != 0:
        receiver_id = error.receiver_id(frames, at)
        found = destination_tracker.find(
            state.endpoints, state.destinations, endpoint_slot, receiver_id, name, name_length
        )
        if found != destination_tracker.NOT_FOUND:
            destination_id = state.destinations[found].registration_id
    length = error.LENGTH + error.text_length(frames, at)
    place = error_frames.put(state.error_frames, frames, at, length, name, name_length)
    return sender_events.put_event(
        state, PUBLICATION_ERROR, slot, destination_id, place, name_length
    )


@kernel
def _on_response_setup(state, endpoint_slot, at, length):
    frames = state.inbox.slots
    if response_setup.check(frames, at, length) < 0:
        _count_invalid(state)
        return
    slot = stream_map.find(
        state.streams,
        endpoint_slot,
        response_setup.stream_id(frames, at),
        response_setup.session_id(frames, at),
    )
    if slot == stream_map.ABSENT or state.publications[slot].has_response_correlation == 0:
        return
    sender_events.put_event(
        state,
        RESPONSE_SETUP,
        slot,
        state.publications[slot].response_correlation_id,
        response_setup.response_session_id(frames, at),
        0,
    )


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
def _on_rtt_measurement(state, endpoint_slot, at, length, now_ns):
    """Process an RTTM frame. The reply to a request is the same frame with the request flag
    cleared.
    """
    frames = state.inbox.slots
    if rtt_measurement.check(frames, at, length) < 0:
        return
    session_id = rtt_measurement.session_id(frames, at)
    stream_id = rtt_measurement.stream_id(frames, at)
    slot = stream_map.find(state.streams, endpoint_slot, stream_id, session_id)
    if slot == stream_map.ABSENT:
        return
    if not rtt_measurement.is_request(frames, at):
        round_trip.on_reply(state, slot, rtt_measurement.echo_timestamp_ns(frames, at), now_ns)
        return
    reply_length = rtt_measurement.write(
        state.scratch,
        0,
        0,
        session_id,
        stream_id,
        rtt_measurement.echo_timestamp_ns(frames, at),
        0,
        rtt_measurement.receiver_id(frames, at),
    )
    send_route.send_frame(state, slot, reply_length, now_ns)


@kernel
def _on_status_message(state, endpoint_slot, index, now_ns):
    frames, at = state.inbox.slots, transport.incoming_at(state.inbox, index)
    length = transport.incoming_length(state.inbox, index)
    stream_id = status_message.stream_id(frames, at)
    session_id = status_message.session_id(frames, at)
    slot = stream_map.find(state.streams, endpoint_slot, stream_id, session_id)
    term_length = TERM_LENGTH_MAX
    if slot != stream_map.ABSENT:
        term_length = state.publications[slot].term_length
    if status_message.check(frames, at, length, term_length) < 0:
        _count_invalid(state)
        return
    counters.increment(state.counters, system_counters.STATUS_MESSAGES_RECEIVED)
    is_elicitation = header.flags(frames, at) & frame_type.SEND_SETUP != 0
    if slot != stream_map.ABSENT and not is_elicitation and not _is_in_range(state, slot, at):
        counters.increment(state.counters, system_counters.STATUS_MESSAGES_REJECTED)
        return
    is_replacement = False
    if state.endpoints[endpoint_slot].destinations_mode != 0:
        is_replacement = destination_tracker.on_status(
            state.endpoints,
            state.destinations,
            endpoint_slot,
            state.counters,
            status_message.receiver_id(frames, at),
            state.inbox.names[index],
            transport.source_length(state.inbox, index),
            slot != stream_map.ABSENT and not is_elicitation,
            now_ns,
        )
    if is_replacement and is_elicitation:
        _answer_elicitation(state, endpoint_slot, slot, index)
    if slot == stream_map.ABSENT:
        return
    if is_elicitation:
        _on_setup_elicited(state, slot, index)
    else:
        _on_status(state, slot, at, now_ns)
    send_endpoint.set_last_status_release(state.endpoint_words, endpoint_slot, now_ns)


@kernel
def _answer_elicitation(state, endpoint_slot, slot, index):
    """Send one SETUP immediately to a receiver that requested it, because its destination may be
    replaced before the next regular SETUP is due.

    If the status message names no publication (ABSENT), the SETUP describes the endpoint's
    publications in turn. New receivers are therefore served even during a flood of elicitations,
    in which all receivers compete for the destination records.
    """
    if slot == stream_map.ABSENT:
        slot = _next_publication(state, endpoint_slot)
    if slot == stream_map.ABSENT or state.publications[slot].is_end_of_stream:
        return
    length = publication_sender.write_setup(state, slot)
    name, name_length = state.inbox.names[index], transport.source_length(state.inbox, index)
    endpoint = state.endpoints[endpoint_slot]
    transport.send_frame(endpoint.fd, state.scratch, 0, length, name, name_length, state.links)


@kernel
def _next_publication(state, endpoint_slot):
    """Return the index (slot) of the next publication that sends on an endpoint, in round-robin
    order, or ABSENT if there is none.
    """
    endpoint, count = state.endpoints[endpoint_slot], state.agent[0].publication_count
    for step in range(count):
        index = (endpoint.next_publication + step) % count
        if state.publications[state.active[index]].endpoint == endpoint_slot:
            endpoint.next_publication = index + 1
            return state.active[index]
    return stream_map.ABSENT


@kernel
def _consumed_position(pub, frames, at):
    term_id = status_message.term_id(frames, at)
    offset = status_message.term_offset(frames, at)
    return position.of(term_id, offset, pub.bits, pub.initial_term_id)


@kernel
def _is_in_range(state, slot, at):
    """Return whether a status message's position is within half a term of the sender position."""
    pub = state.publications[slot]
    consumed = _consumed_position(pub, state.inbox.slots, at)
    snd_pos = counters.get(state.counters, pub.snd_pos_id)
    range_length = pub.term_length // 2
    return snd_pos - range_length <= consumed <= snd_pos + range_length


@kernel
def _group_tag(state, slot, at):
    """Return whether a status message has a group tag, and the value of the tag."""
    frames = state.inbox.slots
    if status_message.has_group_tag(frames, at):
        return True, status_message.group_tag(frames, at)
    is_tagged = state.flows[slot].strategy == flow_control.TAGGED
    if is_tagged and status_message.feedback_length(frames, at) != 0:
        sender_events.put_event_if_empty(
            state, GROUP_TAG_MALFORMED, state.publications[slot].endpoint, 0
        )
    return False, 0


@kernel
def _on_setup_elicited(state, slot, index):
    pub = state.publications[slot]
    if pub.is_end_of_stream:
        return
    pub.is_setup_elicited = 1
    has_tag, tag = _group_tag(state, slot, transport.incoming_at(state.inbox, index))
    flow_control.on_setup_elicited(state.flows, slot, has_tag, tag)
    name = state.inbox.names[index]
    name_length = transport.source_length(state.inbox, index)
    if pub.route == publication.TO_REQUESTER and socket_address.is_name(name, name_length):
        pub.requester_length = socket_address.copy_name(pub.requester, name, name_length)


@kernel
def _on_status(state, slot, at, now_ns):
    """Process a status message: update the receiver's state and the sender limit."""
    frames, values = state.inbox.slots, state.counters
    pub = state.publications[slot]
    receiver_id = status_message.receiver_id(frames, at)
    consumed = _consumed_position(pub, frames, at)
    is_done = header.flags(frames, at) & frame_type.SM_EOS != 0
    if is_done:
        pub.receivers_count = receiver_liveness.on_receiver_done(
            state.receivers, slot, pub.receivers_count, receiver_id
        )
        if not pub.is_group:
            publication.set_has_unicast_eos_release(state.words, slot, 1)
    else:
        pub.receivers_count = receiver_liveness.on_receiver_alive(
            state.receivers, slot, pub.receivers_count, receiver_id, consumed, now_ns
        )
        # The publication must linger for a new receiver too, although an earlier receiver was done.
        publication.set_has_unicast_eos_release(state.words, slot, 0)
    pub.has_initial_connection = 1
    _report_response_connected(state, slot)
    has_tag, tag = _group_tag(state, slot, at)
    limit = flow_control.on_status(
        state.flows,
        state.flow_receivers,
        slot,
        values,
        counters.get(values, pub.snd_lmt_id),
        consumed,
        status_message.window_length(frames, at),
        receiver_id,
        is_done,
        has_tag,
        tag,
        now_ns,
    )
    counters.set_release(values, pub.snd_lmt_id, limit)
    publication_sender.refresh_connected(state, slot)


@kernel
def _report_response_connected(state, slot):
    """Report to the conductor that a response stream has its first receiver."""
    pub = state.publications[slot]
    if pub.receivers_count == 0:
        pub.is_response_reported = 0
    elif pub.has_response_correlation and not pub.is_response_reported:
        correlation_id = pub.response_correlation_id
        pub.is_response_reported = int(
            sender_events.put_event(state, RESPONSE_CONNECTED, slot, correlation_id, 0, 0)
        )
