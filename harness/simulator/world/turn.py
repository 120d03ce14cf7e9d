"""One simulation turn of two hosts: deliver datagrams, run every agent once, and forward what the
agents sent. A real driver's agents run in one call by address.

    wires --> mailboxes --> conductor, sender, receiver of a, then of b --> mailboxes
     ^                                                                        |
     +--- impairments <----- engine's outbox <------ engine (the rules) <-----+

`run` repeats turns without entering Python. While any agent has work, the clock advances by one
turn. Otherwise the step doubles each time up to a limit, as idle agents sleep, but never passes the
arrival time of a datagram. For other worlds see `many_hosts`.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.conductor import conductor_state
from windtunnel.driver.media_driver.receiver import receiver
from windtunnel.driver.media_driver.sender import sender
from windtunnel.harness.simulator.audit import stream_audit, stream_record, stream_traffic
from windtunnel.harness.simulator.network import crossing, datagram_delivery, in_flight
from windtunnel.harness.simulator.network.in_flight import Wires
from windtunnel.harness.simulator.world import event_log, native_call, step
from windtunnel.harness.simulator.world.saved_states import load_state, save_state, size_of
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS, NS_PER_MS
from windtunnel.harness.simulator.world.world_state import (
    ALL_AGENTS,
    AUDIT,
    CONDUCTOR,
    COUNTERS_END,
    COUNTERS_FROM,
    CURRENT_AGENT,
    CURRENT_HOST,
    HAS_WORKED,
    IDLE,
    IDLE_MAX,
    NATIVE,
    NATIVE_CELLS,
    NATIVE_DRIVER,
    NEEDS_PYTHON,
    NO_AGENT,
    NOW,
    RECEIVER,
    SENDER,
    STEP_END,
    TURN,
    TURNS,
    Agents,
    World,
)

_THERE, _BACK = 0, 1
"""The wires from the first host to the second, and back."""


@kernel
def run(world: World, until_ns: int) -> int:
    """Advance the world turn by turn until a given time, until the end of a step in which an agent
    has worked, or until Python code must run.

    Takes at least one turn.
    Returns: TIME_OVER, or the bits FULL, AUDIT, and NEEDS_PYTHON << host
    """
    # One function on purpose: each level between this one and the agents' kernels would make the
    # compiler go through all of them once more. A state is passed array by array, which costs more
    # than most calls do. So each agent is called in one place, which the compiler replaces by the
    # agent's kernel: it loads the arrays that it needs.
    like, between = world.left, world.between
    state, wires = between.state, between.wires
    saved, saved_bytes = world.saved.ctypes.data, world.saved.strides[0]
    assert size_of(world.left) <= saved_bytes
    save_state(world.left, saved)
    save_state(world.right, saved + saved_bytes)
    while True:
        now_ns = state[NOW]
        state[TURNS] += 1
        work_count = 0
        for way in range(2):
            if in_flight.next_due_ns(wires, way) <= now_ns:
                host = 1 - way
                there: Agents = load_state(like, saved + host * saved_bytes)
                work_count += datagram_delivery.land(
                    wires, way, there.links, between.audit, between.events, between.lost, host,
                    now_ns,
                )  # fmt: skip
        if stream_traffic.has_messages(between.audit.streams):
            work_count += _publish(world)
        now_ms = (EPOCH_NS + now_ns) // NS_PER_MS
        for host in range(2):
            state[CURRENT_HOST] = host
            native = NATIVE + host * NATIVE_CELLS
            if state[native] != 0:
                state[CURRENT_AGENT] = ALL_AGENTS
                driver = state[native + NATIVE_DRIVER - NATIVE]
                work_count += native_call.call(state[native], driver)
            else:
                agents: Agents = load_state(like, saved + host * saved_bytes)
                state[CURRENT_AGENT] = CONDUCTOR
                work_count += conductor_state.track(agents.conductor, now_ns, now_ms)
                state[CURRENT_AGENT] = SENDER
                work_count += sender.do_work(agents.sender, now_ns)
                state[CURRENT_AGENT] = RECEIVER
                work_count += receiver.do_work(agents.receiver, now_ns)
        state[CURRENT_AGENT] = NO_AGENT
        for host in range(2):
            here: Agents = load_state(like, saved + host * saved_bytes)
            if datagram_delivery.has_sent(here.links):
                work_count += crossing.cross(here.links, between, host, now_ns)
        # Readers run last, because what an agent sent is checked against what it had received.
        if work_count > 0 or stream_traffic.has_slow_reader(between.audit.streams):
            work_count += _read(world, now_ns)
        if crossing.next_release_ns(between) <= now_ns:
            work_count += crossing.release_due(between, now_ns)
        # A turn without work has changed nothing that `_look` records.
        needs = _look(world, now_ns) if work_count > 0 else 0
        end_ns = min(until_ns, state[STEP_END])
        _advance(state, wires, crossing.next_release_ns(between), work_count, end_ns)
        if needs != 0 or step.is_over(state, until_ns):
            return needs


@kernel
def _publish(world: World) -> int:
    """Run the publishers that are compiled kernels. Returns the number of accepted messages."""
    audit, count = world.between.audit, 0
    for index in range(audit.streams.size):
        stream = audit.streams[index]
        if stream["is_flowing"]:
            near = world.left.conductor.counters
            if stream["from_host"] != 0:
                near = world.right.conductor.counters
            count += stream_traffic.publish(audit, index, near)
    return count


@kernel
def _read(world: World, now_ns: int) -> int:
    """Run the readers that are compiled kernels, and check the counters.

    Returns the number of frames read.
    """
    audit, count = world.between.audit, 0
    for index in range(audit.streams.size):
        stream = audit.streams[index]
        if stream["is_flowing"]:
            near, far = world.left.conductor.counters, world.right.conductor.counters
            if stream["from_host"] != 0:
                near, far = far, near
            count += stream_traffic.read(audit, index, far, now_ns)
            stream_audit.check_counters(audit, index, near, far)
    return count


@kernel
def _look(world: World, now_ns: int) -> int:
    """Record the turn's counter changes and middlebox decisions. Returns a bit mask of the tasks
    for which Python code must run.
    """
    between = world.between
    stream_audit.note_decisions(between.audit, between.engine)
    events = between.events
    first, end = between.state[COUNTERS_FROM], between.state[COUNTERS_END]
    event_log.note_counters(events, now_ns, 0, world.left.conductor.counters, first, end)
    event_log.note_counters(events, now_ns, 1, world.right.conductor.counters, first, end)
    needs = crossing.fullness(between)
    if between.state[NATIVE] == 0 and conductor_state.needs_python(world.left.conductor):
        needs |= NEEDS_PYTHON
    is_right_built_in = between.state[NATIVE + NATIVE_CELLS] == 0
    if is_right_built_in and conductor_state.needs_python(world.right.conductor):
        needs |= NEEDS_PYTHON << 1
    if stream_record.needs_shell(between.audit):
        needs |= AUDIT
    return needs


@kernel
def _advance(state: Any, wires: Wires, due_ns: int, work_count: int, until_ns: int) -> None:
    """Advance the clock to the next turn. `due_ns` is the middlebox's next release time."""
    if work_count > 0:
        state[IDLE] = state[TURN]
        state[HAS_WORKED] = 1
    else:
        state[IDLE] = min(2 * state[IDLE], state[IDLE_MAX])
    due_ns = min(due_ns, in_flight.next_due_ns(wires, _THERE))
    due_ns = min(due_ns, in_flight.next_due_ns(wires, _BACK))
    next_ns = min(state[NOW] + state[IDLE], max(due_ns, state[NOW] + state[TURN]))
    state[NOW] = min(next_ns, max(until_ns, state[NOW] + 1))
