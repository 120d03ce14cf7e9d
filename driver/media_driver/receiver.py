"""The receiver's turn: commands, what every socket has, then what every image owes.

`run` repeats turns inside one kernel, so that Python is entered only to start and to stop;
`do_work` is one turn with the time as an argument, which is what tests and the simulator call.
Source: spec 3.1 and 3.6, Aeron 1.53.
"""

from driver.base import handoff, idle, system
from driver.base.jit import kernel
from driver.cnc import counters
from driver.media import stream_map, transport
from driver.media_driver import (
    dispatcher,
    duty_cycle,
    image_receiver,
    publication_image,
    slot_list,
    system_counters,
)
from driver.media_driver.receiver_state import (
    ADD_ENDPOINT,
    ADD_IMAGE,
    ADD_INTEREST,
    END_COOL_DOWN,
    ENDPOINT_RELEASED,
    IMAGE_FAILED,
    IMAGE_RELEASED,
    REMOVE_ENDPOINT,
    REMOVE_IMAGE,
    REMOVE_INTEREST,
    START_DRAINING,
)
from driver.wire import frame_type, header


@kernel
def do_work(state, now_ns):
    """One turn.

    Units:   now_ns is monotonic
    Returns: an amount of work, 0 when there was none
    """
    agent = state.agent[0]
    work_count = _on_command(state, now_ns)
    for index in range(agent.endpoint_count):
        work_count += _poll(state, state.polled[index], now_ns)
    for index in range(agent.image_count):
        work_count += image_receiver.answer(state, state.active[index], now_ns)
    if agent.pending_count > 0:
        work_count += dispatcher.expire_pending(state, now_ns)
    return work_count


@kernel
def run(state, quantum_ns):
    """Take turns until the quantum is over, idling in between; then the shell has its turn."""
    began_ns = system.monotonic_ns()
    now_ns = began_ns
    while now_ns - began_ns < quantum_ns:
        duty_cycle.measure(state.cycle, state.counters, now_ns)
        work_count = do_work(state, now_ns)
        idle.after_turn(state.idle, work_count)
        now_ns = system.monotonic_ns()


@kernel
def _poll(state, endpoint_slot, now_ns):
    endpoint = state.endpoints[endpoint_slot]
    count = transport.receive(endpoint.fd, state.inbox, state.links)
    received_bytes = 0
    for index in range(count):
        received_bytes += transport.incoming_length(state.inbox, index)
        _on_datagram(state, endpoint_slot, index, now_ns)
    if received_bytes > 0:
        counters.add(state.counters, system_counters.BYTES_RECEIVED, received_bytes)
    return max(count, 0)


@kernel
def _on_datagram(state, endpoint_slot, index, now_ns):
    frames = state.inbox.slots
    at = transport.incoming_at(state.inbox, index)
    length = transport.incoming_length(state.inbox, index)
    if transport.is_truncated(state.inbox, index) or header.check(frames, at, length) < 0:
        counters.add_atomic(state.counters, system_counters.INVALID_PACKETS, 1)
        return
    kind = header.frame_type(frames, at)
    if kind == frame_type.DATA or kind == frame_type.PAD:
        dispatcher.on_data(state, endpoint_slot, at, length, index, now_ns)
    elif kind == frame_type.SETUP:
        dispatcher.on_setup(state, endpoint_slot, at, length, index, now_ns)


@kernel
def _on_command(state, now_ns):
    record = state.record
    if not handoff.take(state.commands, record):
        return 0
    operation, slot = record[0], record[1]
    agent = state.agent[0]
    if operation == ADD_ENDPOINT:
        state.polled[agent.endpoint_count] = slot
        agent.endpoint_count += 1
    elif operation == REMOVE_ENDPOINT:
        _remove_endpoint(state, slot)
    elif operation == ADD_INTEREST:
        dispatcher.add_interest(state, slot, record[2], record[3], record[4])
    elif operation == REMOVE_INTEREST:
        dispatcher.remove_interest(state, slot, record[2], record[3], record[4])
    elif operation == ADD_IMAGE:
        _add_image(state, slot)
    elif operation == REMOVE_IMAGE:
        _remove_image(state, slot, record[2])
    elif operation == IMAGE_FAILED:
        dispatcher.forget(state, slot, record[2], record[3], dispatcher.INIT_IN_PROGRESS)
    elif operation == END_COOL_DOWN:
        dispatcher.forget(state, slot, record[2], record[3], dispatcher.COOL_DOWN)
    elif operation == START_DRAINING:
        state.images[slot].is_sending_eos = 1
        if record[2]:
            state.images[slot].next_status_ns = now_ns - 1
    return 1


@kernel
def _add_image(state, slot):
    rec = state.images[slot]
    # An older image of the session that is on its way out must not speak against the new one.
    for index in range(state.agent[0].image_count):
        other = state.images[state.active[index]]
        same = other.endpoint == rec.endpoint and other.stream_id == rec.stream_id
        if same and other.session_id == rec.session_id:
            other.is_status_silent = 1
    state.active[state.agent[0].image_count] = slot
    state.agent[0].image_count += 1
    stream_map.insert(state.sessions, rec.endpoint, rec.stream_id, rec.session_id, slot)


@kernel
def _remove_image(state, slot, cool_down):
    rec = state.images[slot]
    slot_list.forget(state.active, state.agent[0].image_count, slot)
    state.agent[0].image_count -= 1
    if stream_map.find(state.sessions, rec.endpoint, rec.stream_id, rec.session_id) == slot:
        stream_map.remove(state.sessions, rec.endpoint, rec.stream_id, rec.session_id)
        if cool_down:
            stream_map.insert(
                state.sessions, rec.endpoint, rec.stream_id, rec.session_id, dispatcher.COOL_DOWN
            )
    first = slot * publication_image.CONNECTIONS_MAX
    for index in range(first, first + publication_image.CONNECTIONS_MAX):
        state.connections[index].is_known = 0
        state.connections[index].is_eos = 0
        state.connections[index].control_length = 0
    slot_list.answer(state, IMAGE_RELEASED, slot)


@kernel
def _remove_endpoint(state, slot):
    slot_list.forget(state.polled, state.agent[0].endpoint_count, slot)
    state.agent[0].endpoint_count -= 1
    kept = 0
    for index in range(state.agent[0].pending_count):
        if state.pending[index].endpoint != slot:
            state.pending[kept] = state.pending[index]
            kept += 1
    state.agent[0].pending_count = kept
    _forget_streams(state.sessions, slot)
    _forget_streams(state.interests, slot)
    _forget_streams(state.wanted, slot)
    slot_list.answer(state, ENDPOINT_RELEASED, slot)


@kernel
def _forget_streams(table, endpoint):
    index = 0
    while index < table.size:
        entry = table[index]
        if entry.used and entry.endpoint == endpoint:
            # A removal may move another entry here, so the same index is looked at again.
            stream_map.remove(table, endpoint, entry.stream_id, entry.session_id)
        else:
            index += 1
