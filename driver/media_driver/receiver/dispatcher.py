"""Passes received packets to images, and tracks the state of sessions without an image.

    unknown --data--> PENDING_SETUP --SETUP--> INIT_IN_PROGRESS --image added--> image slot
       |                                            ^                              |
       +--SETUP------------------------------------+        removed, not at EOS --> COOL_DOWN
       +--no subscription--> NO_INTEREST

`new_sessions` may refuse a SETUP, which leaves the state as it is.

There is one state per endpoint, stream and session, independent of the socket that received the
packet. PENDING_SETUP means that a SETUP was elicited from the sender. If no SETUP is received
within a second, the state is removed, and the next packet elicits a SETUP again. Source: spec 3.1,
Aeron 1.53 (the C driver where the two differ).
"""

from windtunnel.driver.base import handoff
from windtunnel.driver.base.atomics import get_i32
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import receive_endpoint, stream_map, transport
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import congestion_control, image_connections
from windtunnel.driver.media_driver.receiver import (
    image_feedback,
    image_receiver,
    new_sessions,
    receive_transport,
    session_state,
)
from windtunnel.driver.media_driver.receiver.receiver_state import CREATE_IMAGE, SESSION_LIMIT
from windtunnel.driver.media_driver.receiver.session_state import INIT_IN_PROGRESS, PENDING_SETUP
from windtunnel.driver.wire import data, frame_type, header, rtt_measurement, setup

# Words of a CREATE_IMAGE event, after the operation.
ENDPOINT, STREAM_ID, SESSION_ID, INITIAL_TERM_ID, ACTIVE_TERM_ID = 1, 2, 3, 4, 5
TERM_OFFSET, TERM_LENGTH, MTU_LENGTH, SETUP_FLAGS, TTL = 6, 7, 8, 9, 10
SOURCE_LENGTH, SOURCE, SOURCE_WORDS = 11, 12, 7  # a sockaddr of 28 bytes, four to a word
TRANSPORT = 19  # slot of the socket that received the SETUP
LEVEL = 20  # see new_sessions


@kernel
def on_data(state, transport_slot, at, length, inbox_index, now_ns):
    """Process a received DATA or PAD datagram whose common header is valid."""
    packet = state.inbox.slots
    endpoint = state.endpoints[transport_slot].serves
    receive_endpoint.set_last_activity_release(state.endpoint_words, transport_slot, now_ns)
    stream_id, session_id = data.stream_id(packet, at), data.session_id(packet, at)
    session = stream_map.find(state.sessions, endpoint, stream_id, session_id)
    if session >= 0:
        image_receiver.insert_packet(
            state, session, transport_slot, at, length, inbox_index, now_ns
        )
        return
    is_ending = header.flags(packet, at) & frame_type.EOS != 0
    if session != stream_map.ABSENT or is_ending:
        return
    if stream_map.find(state.interests, endpoint, stream_id, 0) == stream_map.ABSENT:
        return
    if not session_state.is_subscribed(state, endpoint, stream_id, session_id):
        session_state.record_no_interest(state, endpoint, stream_id, session_id)
    elif session_state.add_pending(state, endpoint, stream_id, session_id, now_ns):
        _elicit_setup_at_source(state, transport_slot, stream_id, session_id, inbox_index)


@kernel
def _elicit_setup_at_source(state, transport_slot, stream_id, session_id, inbox_index):
    """Elicit a SETUP by sending a status message to a packet's source or, if the packet was sent by
    multicast, to the multicast group.
    """
    if state.endpoints[transport_slot].is_multicast:
        receive_transport.elicit_setup_at_control(state, transport_slot, stream_id, session_id)
        return
    receive_transport.elicit_setup(
        state,
        transport_slot,
        stream_id,
        session_id,
        state.inbox.names[inbox_index],
        transport.source_length(state.inbox, inbox_index),
    )


@kernel
def on_setup(state, transport_slot, at, length, inbox_index, now_ns):
    """Process a received SETUP frame whose common header is valid."""
    packet = state.inbox.slots
    if setup.check(packet, at, length) < 0:
        counters.add_atomic(state.counters, system_counters.INVALID_PACKETS, 1)
        return
    endpoint = state.endpoints[transport_slot].serves
    receive_endpoint.set_last_activity_release(state.endpoint_words, transport_slot, now_ns)
    stream_id, session_id = setup.stream_id(packet, at), setup.session_id(packet, at)
    if stream_map.find(state.interests, endpoint, stream_id, 0) == stream_map.ABSENT:
        return
    if _is_full(state, endpoint, stream_id):
        return
    session = stream_map.find(state.sessions, endpoint, stream_id, session_id)
    if session >= 0:
        image_connections.track(state, session, transport_slot, length, inbox_index, now_ns)
    elif session == PENDING_SETUP:
        level = new_sessions.admit(state, endpoint, stream_id, session_id, 1, now_ns)
        if level == new_sessions.REFUSED:
            counters.increment(state.counters, system_counters.CONDUCTOR_PROXY_FAILS)
            return
        channel = state.endpoints[transport_slot]
        if channel.is_multicast and channel.ttl < setup.ttl(packet, at):
            counters.increment(state.counters, system_counters.POSSIBLE_TTL_ASYMMETRY)
        session_state.remove_pending(state, endpoint, stream_id, session_id)
        _create_image(state, transport_slot, at, inbox_index, level)
    elif session == stream_map.ABSENT:
        if not session_state.is_subscribed(state, endpoint, stream_id, session_id):
            session_state.record_no_interest(state, endpoint, stream_id, session_id)
            return
        level = new_sessions.admit(state, endpoint, stream_id, session_id, 0, now_ns)
        if level == new_sessions.REFUSED:
            counters.increment(state.counters, system_counters.CONDUCTOR_PROXY_FAILS)
            return
        _create_image(state, transport_slot, at, inbox_index, level)


@kernel
def on_rtt_measurement(state, transport_slot, at, inbox_index, now_ns):
    """Process a received RTTM frame: either a request or a reply."""
    packet = state.inbox.slots
    endpoint = state.endpoints[transport_slot].serves
    receiver_id = rtt_measurement.receiver_id(packet, at)
    if receiver_id != 0 and receiver_id != state.endpoints[endpoint].receiver_id:
        return
    receive_endpoint.set_last_activity_release(state.endpoint_words, transport_slot, now_ns)
    stream_id = rtt_measurement.stream_id(packet, at)
    session_id = rtt_measurement.session_id(packet, at)
    slot = stream_map.find(state.sessions, endpoint, stream_id, session_id)
    if slot < 0:
        return
    image_connections.earn_on(state, slot, transport_slot, rtt_measurement.LENGTH)
    sent_ns = rtt_measurement.echo_timestamp_ns(packet, at)
    if not rtt_measurement.is_request(packet, at):
        rtt_ns = now_ns - sent_ns - rtt_measurement.reception_delta_ns(packet, at)
        congestion_control.on_rtt(state, slot, now_ns, rtt_ns)
        return
    channel = state.endpoints[transport_slot]
    if channel.is_multicast:
        image_feedback.echo_rtt(
            state, slot, transport_slot, sent_ns, channel.control, channel.control_length
        )
    else:
        source = state.inbox.names[inbox_index]
        source_length = transport.source_length(state.inbox, inbox_index)
        image_feedback.echo_rtt(state, slot, transport_slot, sent_ns, source, source_length)


@kernel
def _is_full(state, endpoint, stream_id):
    """Return whether a stream has reached its session limit, and inform the conductor if it has."""
    limit = state.agent[0].session_limit
    if limit > state.agent[0].image_count:
        return False
    images = 0
    for index in range(state.agent[0].image_count):
        slot = state.active[index]
        rec = state.images[slot]
        if rec.endpoint == endpoint and rec.stream_id == stream_id:
            current = stream_map.find(state.sessions, endpoint, stream_id, rec.session_id)
            images += int(current == slot)
    if images < limit:
        return False
    if handoff.is_empty(state.events):
        state.record[0] = SESSION_LIMIT
        state.record[ENDPOINT] = endpoint
        state.record[STREAM_ID] = stream_id
        handoff.put(state.events, state.record)
    return True


@kernel
def _create_image(state, transport_slot, at, inbox_index, level):
    """Request an image from the conductor, and ignore the session's packets until the image is
    added.
    """
    packet = state.inbox.slots
    record = state.record
    endpoint = state.endpoints[transport_slot].serves
    stream_id, session_id = setup.stream_id(packet, at), setup.session_id(packet, at)
    record[0] = CREATE_IMAGE
    record[ENDPOINT] = endpoint
    record[TRANSPORT] = transport_slot
    record[LEVEL] = level
    record[STREAM_ID] = stream_id
    record[SESSION_ID] = session_id
    record[INITIAL_TERM_ID] = setup.initial_term_id(packet, at)
    record[ACTIVE_TERM_ID] = setup.active_term_id(packet, at)
    record[TERM_OFFSET] = setup.term_offset(packet, at)
    record[TERM_LENGTH] = setup.term_length(packet, at)
    record[MTU_LENGTH] = setup.mtu_length(packet, at)
    record[SETUP_FLAGS] = header.flags(packet, at)
    record[TTL] = setup.ttl(packet, at)
    source = state.inbox.names[inbox_index]
    record[SOURCE_LENGTH] = transport.source_length(state.inbox, inbox_index)
    for word in range(SOURCE_WORDS):
        record[SOURCE + word] = get_i32(source, 4 * word)
    # Any number of sessions may arrive from the network, so reserve a record per slot for
    # acknowledgements.
    reserved = state.images.size + state.endpoints.size
    has_capacity = handoff.free_record_count(state.events) > reserved
    # Insert the state first: without it every SETUP of the session would create an image.
    if has_capacity and stream_map.insert(
        state.sessions, endpoint, stream_id, session_id, INIT_IN_PROGRESS
    ):
        handoff.put(state.events, record)
    else:
        session_state.remove_in_state(state, endpoint, stream_id, session_id, PENDING_SETUP)
        counters.increment(state.counters, system_counters.CONDUCTOR_PROXY_FAILS)
