"""The sender's duty cycle, which executes commands, sends data and polls control sockets.

A duty cycle executes one command and runs each publication. The command that adds a socket is
followed by the one that adds its publication, which is executed in the same duty cycle: a status
message that is received before is ignored. Some duty cycles also poll the control sockets. `run`
repeats duty cycles in compiled code, which enters Python only to start and to stop. `do_work` is
one duty cycle with the time as an argument, for tests and the simulator. Source: spec 4.1, Aeron
1.53.
"""

from windtunnel.driver.base import handoff, idle, system
from windtunnel.driver.channel import socket_address
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import inlined_kernel, kernel
from windtunnel.driver.media import socket_gate, stream_map
from windtunnel.driver.media_driver.agent import duty_cycle, slot_list, system_counters
from windtunnel.driver.media_driver.sender import (
    destination_tracker,
    publication_sender,
    retransmit_handler,
    sender_control,
    sender_events,
)
from windtunnel.driver.media_driver.sender import network_publication as publication
from windtunnel.driver.media_driver.sender.sender_state import (
    ADD_DESTINATION,
    ADD_ENDPOINT,
    ADD_PUBLICATION,
    CHANGE_DESTINATION_ADDRESS,
    CHANGE_ENDPOINT_ADDRESS,
    END_PUBLICATION,
    ENDPOINT_RELEASED,
    NAME,
    NAME_WORDS,
    PUBLICATION_RELEASED,
    REMOVE_DESTINATION,
    REMOVE_DESTINATION_BY_ID,
    REMOVE_ENDPOINT,
    REMOVE_PUBLICATION,
    RESOLVE_DESTINATION,
)


@inlined_kernel
def do_work(state, now_ns):
    """Run one duty cycle of the sender.

    Units:   now_ns is monotonic
    Returns: the work count, or 0 if there was no work
    """
    agent = state.agent[0]
    work_count = _on_command(state, now_ns)
    sent_bytes = _send_all(state, now_ns)
    short_sends = counters.get(state.counters, system_counters.SHORT_SENDS)
    agent.turns_since_poll += 1
    is_poll_due = (
        sent_bytes == 0
        or agent.turns_since_poll >= agent.poll_ratio
        or now_ns - agent.poll_deadline_ns >= 0
        or short_sends != agent.last_short_sends
    )
    if is_poll_due:
        work_count += _poll_all(state, now_ns)
        agent.turns_since_poll = 0
        agent.poll_deadline_ns = now_ns + agent.status_timeout_ns // 2
        agent.last_short_sends = short_sends
    if agent.resolution_interval_ns > 0 and now_ns - agent.resolution_deadline_ns > 0:
        agent.resolution_deadline_ns = now_ns + agent.resolution_interval_ns
        _report_silent_destinations(state, now_ns)
    return work_count + sent_bytes


@kernel
def run(state, quantum_ns):
    """Run duty cycles for a limited time, idling between them, then return to Python.

    Memory:  `is_stopping` is set by another thread, which waits for this one to end; it is not
             ordered with anything
    """
    began_ns = system.monotonic_ns()
    now_ns = began_ns
    while now_ns - began_ns < quantum_ns and state.agent[0].is_stopping == 0:
        duty_cycle.measure(state.cycle, state.counters, now_ns)
        work_count = do_work(state, now_ns)
        socket_gate.park(state.gate, idle.park_ns(state.idle, work_count))
        now_ns = system.monotonic_ns()


@kernel
def _poll_all(state, now_ns):
    """Poll the control sockets, unless none has received anything. Returns the number of
    datagrams.
    """
    if socket_gate.is_quiet(state.gate):
        return 0
    count = 0
    for index in range(state.agent[0].endpoint_count):
        count += sender_control.poll(state, state.polled[index], now_ns)
    socket_gate.after_poll(state.gate, count)
    return count


@kernel
def _send_all(state, now_ns):
    """Run every publication's part of the duty cycle, starting with a different publication each
    time.
    """
    agent = state.agent[0]
    count = agent.publication_count
    if count == 0:
        return 0
    agent.round_robin += 1
    if agent.round_robin >= count:
        agent.round_robin = 0
    sent_bytes = 0
    for step in range(count):
        index = agent.round_robin + step
        if index >= count:
            index -= count
        sent_bytes += publication_sender.do_work(state, state.active[index], now_ns)
    return sent_bytes


@kernel
def _on_command(state, now_ns):
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
    if operation == ADD_ENDPOINT:
        state.polled[state.agent[0].endpoint_count] = slot
        state.agent[0].endpoint_count += 1
        socket_gate.add(state.gate, state.endpoints[slot].control_fd)
    elif operation == REMOVE_ENDPOINT:
        slot_list.remove(state.polled, state.agent[0].endpoint_count, slot)
        state.agent[0].endpoint_count -= 1
        socket_gate.remove(state.gate, state.endpoints[slot].control_fd)
        slot_list.acknowledge(state, ENDPOINT_RELEASED, slot)
    elif operation == ADD_PUBLICATION:
        _add_publication(state, slot)
    elif operation == REMOVE_PUBLICATION:
        _remove_publication(state, slot)
    elif operation == END_PUBLICATION:
        state.publications[slot].is_end_of_stream = 1
        state.publications[slot].is_revoked = state.record[2]
    elif operation == CHANGE_ENDPOINT_ADDRESS:
        endpoint = state.endpoints[slot]
        if not endpoint.is_connected:
            name, length = _name_in_command(state)
            endpoint.name_length = socket_address.copy_name(endpoint.name, name, length)
        counters.increment(state.counters, system_counters.RESOLUTION_CHANGES)
    else:
        _on_destination_command(state, operation, slot, now_ns)


@kernel
def _name_in_command(state):
    """Return the socket address that a command contains, and the address length."""
    return state.record_bytes[8 * NAME : 8 * (NAME + NAME_WORDS)], state.record[NAME - 1]


@kernel
def _on_destination_command(state, operation, slot, now_ns):
    endpoints, destinations, values = state.endpoints, state.destinations, state.counters
    registration_id = state.record[2]
    name, length = _name_in_command(state)
    if operation == ADD_DESTINATION:
        destination_tracker.add(
            endpoints, destinations, slot, values, registration_id, name, length, now_ns
        )
    elif operation == REMOVE_DESTINATION:
        destination_tracker.remove(endpoints, destinations, slot, values, name, length)
    elif operation == REMOVE_DESTINATION_BY_ID:
        destination_tracker.remove_by_id(endpoints, destinations, slot, values, registration_id)
    elif operation == CHANGE_DESTINATION_ADDRESS:
        destination_tracker.change_address(
            endpoints, destinations, slot, registration_id, name, length
        )
        counters.increment(values, system_counters.RESOLUTION_CHANGES)


@kernel
def _report_silent_destinations(state, now_ns):
    """Ask the conductor to resolve again the name of each `control-mode=manual` destination that
    has sent no status messages for some time.
    """
    for index in range(state.agent[0].endpoint_count):
        slot = state.polled[index]
        if state.endpoints[slot].destinations_mode != destination_tracker.MANUAL:
            continue
        found = slot * destination_tracker.DESTINATIONS_MAX - 1
        for _ in range(destination_tracker.DESTINATIONS_MAX):
            if not sender_events.has_capacity(state):
                return
            found = destination_tracker.next_silent(
                state.endpoints, state.destinations, slot, found, now_ns
            )
            if found == destination_tracker.NOT_FOUND:
                break
            registration_id = state.destinations[found].registration_id
            sender_events.put_event(state, RESOLVE_DESTINATION, slot, registration_id, 0, 0)


@kernel
def _add_publication(state, slot):
    pub = state.publications[slot]
    retransmit_handler.clear(state.resends, slot)
    state.active[state.agent[0].publication_count] = slot
    state.agent[0].publication_count += 1
    stream_map.insert(state.streams, pub.endpoint, pub.stream_id, pub.session_id, slot)


@kernel
def _remove_publication(state, slot):
    pub = state.publications[slot]
    slot_list.remove(state.active, state.agent[0].publication_count, slot)
    state.agent[0].publication_count -= 1
    stream_map.remove(state.streams, pub.endpoint, pub.stream_id, pub.session_id)
    publication.set_has_receivers_release(state.words, slot, 0)
    publication.set_has_required_receivers_release(state.words, slot, 0)
    slot_list.acknowledge(state, PUBLICATION_RELEASED, slot)
