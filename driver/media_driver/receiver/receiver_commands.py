"""Executes the conductor's commands in the receiver, one command per duty cycle.

The command that adds a socket is followed by the one that adds its subscription, which is executed
in the same duty cycle: a SETUP that is received before is ignored, and repeated only 100 ms later.
An event acknowledges each removal. Only then does the conductor free the removed resource.
Source: spec 3.1, 3.7, 3.9, 3.12 and 4.10, Aeron 1.53.
"""

from windtunnel.driver.base import handoff
from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.base.atomics import put_i32
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import socket_gate, stream_map
from windtunnel.driver.media_driver.agent import slot_list
from windtunnel.driver.media_driver.image import image_connections
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.media_driver.receiver import (
    new_sessions,
    receive_transport,
    session_state,
)
from windtunnel.driver.media_driver.receiver.receiver_state import (
    ADD_ENDPOINT,
    ADD_IMAGE,
    ADD_INTEREST,
    CHANGE_CONTROL_ADDRESS,
    END_COOL_DOWN,
    ENDPOINT_RELEASED,
    IMAGE_FAILED,
    IMAGE_RELEASED,
    REJECT_IMAGE,
    REMOVE_ENDPOINT,
    REMOVE_IMAGE,
    REMOVE_INTEREST,
    REQUEST_SETUP,
    SET_RESPONSE_SESSION,
    START_DRAINING,
)

NAME_WORDS = 7


@kernel
def on_command(state, now_ns):
    """Execute the next command from the queue, and after ADD_ENDPOINT also the one that follows.

    Returns: the number of executed commands
    """
    count = 0
    while handoff.take(state.commands, state.record):
        count += 1
        operation = state.record[0]
        _execute(state, operation, state.record[1], now_ns)
        if operation != ADD_ENDPOINT:
            break
    return count


@kernel
def _execute(state, operation, slot, now_ns):
    record = state.record
    if operation == ADD_ENDPOINT:
        _add_endpoint(state, slot, now_ns)
    elif operation == REMOVE_ENDPOINT:
        _remove_endpoint(state, slot, now_ns)
    elif operation == ADD_INTEREST:
        session_state.add_interest(state, slot, record[2], record[3], record[4])
    elif operation == REMOVE_INTEREST:
        session_state.remove_interest(state, slot, record[2], record[3], record[4])
    elif operation == REQUEST_SETUP:
        receive_transport.elicit_setup_at_all_controls(state, slot, record[2], record[3])
    elif operation == CHANGE_CONTROL_ADDRESS:
        _change_control_address(state, slot)
    elif operation == IMAGE_FAILED:
        session_state.remove_in_state(
            state, slot, record[2], record[3], session_state.INIT_IN_PROGRESS
        )
        new_sessions.restrict(state, slot, record[2], record[4], now_ns + record[5])
    elif operation == END_COOL_DOWN:
        session_state.remove_in_state(state, slot, record[2], record[3], session_state.COOL_DOWN)
    elif operation == ADD_IMAGE:
        _add_image(state, slot)
    elif operation == REMOVE_IMAGE:
        _remove_image(state, slot, record[2])
    else:
        _on_image_command(state, operation, slot, now_ns)


@kernel
def _on_image_command(state, operation, slot, now_ns):
    record = state.record
    rec = state.images[slot]
    if operation == START_DRAINING:
        rec.is_sending_eos = 1
        if record[2]:
            rec.next_status_ns = now_ns - 1
    elif operation == REJECT_IMAGE:
        rec.reason_length = record[2]
        rec.is_rejected = 1
        image.set_shared_release(state.words, slot, image.REASON_ROW, record[3])
    elif operation == SET_RESPONSE_SESSION:
        rec.response_session_id = record[3]
        rec.has_response_session = record[2]
        if record[2]:
            rec.next_status_ns = now_ns - 1


@kernel
def _add_endpoint(state, slot, now_ns):
    state.polled[state.agent[0].endpoint_count] = slot
    state.agent[0].endpoint_count += 1
    socket_gate.add(state.gate, state.endpoints[slot].fd)
    state.endpoints[slot].last_activity_ns = now_ns
    receive_transport.on_socket_added(state, slot, now_ns)
    image_connections.on_transport_added(state, slot, now_ns)


@kernel
def _remove_endpoint(state, slot, now_ns):
    slot_list.remove(state.polled, state.agent[0].endpoint_count, slot)
    state.agent[0].endpoint_count -= 1
    socket_gate.remove(state.gate, state.endpoints[slot].fd)
    receive_transport.on_socket_removed(state, slot)
    if state.endpoints[slot].serves == slot:
        session_state.remove_endpoint(state, slot)
    else:
        image_connections.on_transport_removed(state, slot, now_ns)
    slot_list.acknowledge(state, ENDPOINT_RELEASED, slot)


@kernel
def _change_control_address(state, slot):
    name = state.scratch
    for word in range(NAME_WORDS):
        put_i32(name, 4 * word, wrap_i32(state.record[3 + word]))
    receive_transport.change_control(state, slot, name[: 4 * NAME_WORDS], state.record[2])


@kernel
def _add_image(state, slot):
    rec = state.images[slot]
    # An older image of the session that is draining must no longer send status messages.
    for index in range(state.agent[0].image_count):
        other = state.images[state.active[index]]
        same = other.endpoint == rec.endpoint and other.stream_id == rec.stream_id
        if same and other.session_id == rec.session_id:
            other.is_status_silent = 1
    state.active[state.agent[0].image_count] = slot
    state.agent[0].image_count += 1
    # If the subscriptions have been removed, the image receives no packets.
    if stream_map.find(state.interests, rec.endpoint, rec.stream_id, 0) != stream_map.ABSENT:
        stream_map.insert(state.sessions, rec.endpoint, rec.stream_id, rec.session_id, slot)


@kernel
def _remove_image(state, slot, cool_down):
    rec = state.images[slot]
    slot_list.remove(state.active, state.agent[0].image_count, slot)
    state.agent[0].image_count -= 1
    if stream_map.find(state.sessions, rec.endpoint, rec.stream_id, rec.session_id) == slot:
        stream_map.remove(state.sessions, rec.endpoint, rec.stream_id, rec.session_id)
        if cool_down and rec.is_end_of_stream == 0:
            _begin_cool_down(state, rec)
    image_connections.reset(state, slot)
    slot_list.acknowledge(state, IMAGE_RELEASED, slot)


@kernel
def _begin_cool_down(state, rec):
    """Start to ignore the packets of a removed image's session. The cool-down ends early if a later
    session needs its entry in the ring of ignored sessions.

    Without rejoin, a cool-down lasts as long as the subscription. Aeron's table grows with the
    number of cool-downs. The fixed table here would become full and prevent new images on all
    endpoints.
    """
    count = state.agent[0].cooling_count
    entry = state.cooling[count % state.cooling.size]
    if count >= state.cooling.size:
        session_state.remove_in_state(
            state, entry.endpoint, entry.stream_id, entry.session_id, session_state.COOL_DOWN
        )
    entry.endpoint = rec.endpoint
    entry.stream_id = rec.stream_id
    entry.session_id = rec.session_id
    state.agent[0].cooling_count = count + 1
    stream_map.insert(
        state.sessions, rec.endpoint, rec.stream_id, rec.session_id, session_state.COOL_DOWN
    )
