"""Sends frames from the receiver's sockets, and elicits SETUPs.

A new socket with an explicit control address elicits a SETUP from that address, and again every
second, with a status message for session 0 of stream 0. No publication has that stream, but a
publication with dynamic destinations adds the receiver. Source: spec 3.1 and 3.7, Aeron 1.53.
"""

from windtunnel.driver.base import handoff
from windtunnel.driver.base.atomics import copy
from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import transport
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.receiver.receiver_state import SEND_FAILED
from windtunnel.driver.wire import frame_type, status_message

ELICIT_INTERVAL_NS = NS_PER_SECOND


@kernel
def send_to(state, slot, length, name, name_length):
    """Send the frame in `state.scratch` to an address. Returns whether it was sent."""
    result = transport.send_frame(
        state.endpoints[slot].fd, state.scratch, 0, length, name, name_length, state.links
    )
    if result < 0:
        _report_failure(state, slot, result)
    elif result < length:
        counters.add_atomic(state.counters, system_counters.SHORT_SENDS, 1)
    return result == length


@kernel
def send_gathered(state, slot, count, name, name_length):
    """Send the first `count` NAKs of the outbox to an address in one system call. Returns how many
    were sent.
    """
    result = transport.send_gathered(
        state.endpoints[slot].fd, state.outbox, 0, count, name, name_length, state.links
    )
    if result < 0:
        _report_failure(state, slot, result)
        return 0
    if result < count:
        counters.add_atomic(state.counters, system_counters.SHORT_SENDS, 1)
    return result


@kernel
def _report_failure(state, slot, error):
    # Sending may fail in every duty cycle, so keep space for acknowledgements.
    if not handoff.is_empty(state.events):
        return
    state.record[0] = SEND_FAILED
    state.record[1] = slot
    state.record[2] = error
    handoff.put(state.events, state.record)


@kernel
def elicit_setup(state, slot, stream_id, session_id, name, name_length):
    """Elicit a SETUP by sending a status message that has the SEND_SETUP flag and no position."""
    endpoint = state.endpoints[state.endpoints[slot].serves]
    length = status_message.write(
        state.scratch,
        0,
        frame_type.SEND_SETUP,
        session_id,
        stream_id,
        0,
        0,
        0,
        endpoint.receiver_id,
        endpoint.has_group_tag,
        endpoint.group_tag,
    )
    send_to(state, slot, length, name, name_length)


@kernel
def elicit_setup_at_control(state, slot, stream_id, session_id):
    """Elicit a SETUP from the control address of a socket."""
    endpoint = state.endpoints[slot]
    elicit_setup(state, slot, stream_id, session_id, endpoint.control, endpoint.control_length)


@kernel
def elicit_setup_at_all_controls(state, endpoint_slot, stream_id, session_id):
    """Elicit a SETUP from the explicit control addresses of all sockets of an endpoint."""
    for index in range(state.agent[0].endpoint_count):
        slot = state.polled[index]
        endpoint = state.endpoints[slot]
        if endpoint.solicits_setup and endpoint.serves == endpoint_slot:
            elicit_setup_at_control(state, slot, stream_id, session_id)


@kernel
def on_socket_added(state, slot, now_ns):
    """Elicit a SETUP immediately if a new socket has an explicit control address."""
    endpoint = state.endpoints[slot]
    if endpoint.solicits_setup:
        state.agent[0].eliciting_count += 1
        endpoint.next_elicit_ns = now_ns + ELICIT_INTERVAL_NS
        elicit_setup_at_control(state, slot, 0, 0)


@kernel
def on_socket_removed(state, slot):
    """Stop eliciting SETUPs on a removed socket."""
    if state.endpoints[slot].solicits_setup:
        state.agent[0].eliciting_count -= 1


@kernel
def repeat_elicitations(state, now_ns):
    """Elicit the SETUPs that are due on endpoints with subscriptions. Returns the number of
    elicited SETUPs.
    """
    count = 0
    for index in range(state.agent[0].endpoint_count):
        slot = state.polled[index]
        endpoint = state.endpoints[slot]
        if endpoint.solicits_setup == 0 or now_ns - endpoint.next_elicit_ns <= 0:
            continue
        if _has_interest(state, endpoint.serves):
            endpoint.next_elicit_ns = now_ns + ELICIT_INTERVAL_NS
            elicit_setup_at_control(state, slot, 0, 0)
            count += 1
    return count


@kernel
def _has_interest(state, endpoint_slot):
    for index in range(state.interests.size):
        entry = state.interests[index]
        if entry.used and entry.endpoint == endpoint_slot:
            return True
    return False


@kernel
def change_control(state, slot, name, name_length):
    """Change the control address of a socket and of its connections, after the address's host name
    was re-resolved.
    """
    endpoint = state.endpoints[slot]
    if endpoint.solicits_setup == 0:
        return
    copy(endpoint.control, 0, name, 0, NAME_LENGTH_MAX)
    endpoint.control_length = name_length
    # Atomic, since the sender increments this counter too.
    counters.add_atomic(state.counters, system_counters.RESOLUTION_CHANGES, 1)
    for row in range(state.connections.size):
        connection = state.connections[row]
        if connection.is_known and connection.transport == slot:
            copy(connection.control, 0, name, 0, NAME_LENGTH_MAX)
            connection.control_length = name_length
