"""Frames that the receiver sends from one of its sockets, and the asking for SETUPs.

A socket with an explicit control address asks there by itself, at first and then every second, with
a status message about session 0 of stream 0: no publication has it, but a publication that finds
its receivers by their status messages learns of us. Source: spec 3.1 and 3.7, Aeron 1.53.
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
    """Send the frame in `state.scratch` to a socket address. Returns whether all of it left."""
    result = transport.send_frame(
        state.endpoints[slot].fd, state.scratch, 0, length, name, name_length, state.links
    )
    if result < 0:
        _report_failure(state, slot, result)
    elif result < length:
        counters.add_atomic(state.counters, system_counters.SHORT_SENDS, 1)
    return result == length


@kernel
def _report_failure(state, slot, error):
    # Sending may fail at every turn; the queue belongs first to answers that must not be lost.
    if not handoff.is_empty(state.events):
        return
    state.record[0] = SEND_FAILED
    state.record[1] = slot
    state.record[2] = error
    handoff.put(state.events, state.record)


@kernel
def ask_for_setup(state, slot, stream_id, session_id, name, name_length):
    """Ask somebody for a SETUP, with a status message that says nothing else."""
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
def ask_control(state, slot, stream_id, session_id):
    """Ask at the control address of a socket."""
    endpoint = state.endpoints[slot]
    ask_for_setup(state, slot, stream_id, session_id, endpoint.control, endpoint.control_length)


@kernel
def ask_every_control(state, endpoint_slot, stream_id, session_id):
    """Ask at the explicit control address of every socket that serves an endpoint."""
    for index in range(state.agent[0].endpoint_count):
        slot = state.polled[index]
        endpoint = state.endpoints[slot]
        if endpoint.solicits_setup and endpoint.serves == endpoint_slot:
            ask_control(state, slot, stream_id, session_id)


@kernel
def begin(state, slot, now_ns):
    """A socket is in service: an explicit control address hears of it at once."""
    endpoint = state.endpoints[slot]
    if endpoint.solicits_setup:
        state.agent[0].eliciting_count += 1
        endpoint.next_elicit_ns = now_ns + ELICIT_INTERVAL_NS
        ask_control(state, slot, 0, 0)


@kernel
def end(state, slot):
    """A socket is out of service."""
    if state.endpoints[slot].solicits_setup:
        state.agent[0].eliciting_count -= 1


@kernel
def ask_again(state, now_ns):
    """Repeat what is due, while anything is wanted. Returns how often."""
    asked = 0
    for index in range(state.agent[0].endpoint_count):
        slot = state.polled[index]
        endpoint = state.endpoints[slot]
        if endpoint.solicits_setup == 0 or now_ns - endpoint.next_elicit_ns <= 0:
            continue
        if _has_interest(state, endpoint.serves):
            endpoint.next_elicit_ns = now_ns + ELICIT_INTERVAL_NS
            ask_control(state, slot, 0, 0)
            asked += 1
    return asked


@kernel
def _has_interest(state, endpoint_slot):
    for index in range(state.interests.size):
        entry = state.interests[index]
        if entry.used and entry.endpoint == endpoint_slot:
            return True
    return False


@kernel
def change_control(state, slot, name, name_length):
    """The name of an explicit control address has another address now; connections follow it."""
    endpoint = state.endpoints[slot]
    if endpoint.solicits_setup == 0:
        return
    copy(endpoint.control, 0, name, 0, NAME_LENGTH_MAX)
    endpoint.control_length = name_length
    # The sender counts its own changes in the same place.
    counters.add_atomic(state.counters, system_counters.RESOLUTION_CHANGES, 1)
    for row in range(state.connections.size):
        connection = state.connections[row]
        if connection.is_known and connection.transport == slot:
            copy(connection.control, 0, name, 0, NAME_LENGTH_MAX)
            connection.control_length = name_length
