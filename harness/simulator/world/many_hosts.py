"""Advances several simulated hosts, each of which sleeps and wakes independently and can be paused.

    wires --> mailboxes --> conductor, sender, receiver of one host --> mailboxes --> middlebox
     ^          for each host that is due, and for frames that the middlebox holds          |
     +-------------------------------------------------------------------------------------+

A host that did work takes another turn at once. A host without work doubles its sleep each time up
to a limit, as idle agents do, but wakes for an arriving datagram. The sockets of a paused host keep
working. A world of two hosts without events has a faster kernel, see `turn`.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.conductor import conductor_state
from windtunnel.driver.media_driver.receiver import receiver
from windtunnel.driver.media_driver.sender import sender
from windtunnel.harness.simulator.network import crossing, datagram_delivery, in_flight
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.world import event_log, native_call, step
from windtunnel.harness.simulator.world.saved_states import load_state
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS, NS_PER_MS
from windtunnel.harness.simulator.world.world_state import (
    ALL_AGENTS,
    CONDUCTOR,
    COUNTERS_END,
    COUNTERS_FROM,
    CURRENT_AGENT,
    CURRENT_HOST,
    HAS_WORKED,
    IDLE_MAX,
    NEEDS_PYTHON,
    NO_AGENT,
    NOW,
    RECEIVER,
    SENDER,
    STEP_END,
    TURN,
    TURNS,
    Agents,
    Between,
)

# Columns of `sleepers`: one row per host, and a last row for the middlebox.
ADDRESS, IS_RUNNING, WAKES, IDLE, NATIVE, NATIVE_DRIVER, DUE = range(7)
"""Per host: address of its agents; whether its driver is running; time of its next turn; length of
its last sleep; for a real driver, the addresses of the function that runs its duty cycle and of the
driver, else 0; arrival time of its next datagram. The last row has only DUE: time of the world's
next turn.
"""

_NEVER = NEVER


@kernel
def run(like: Agents, between: Between, sleepers: Any, until_ns: int) -> int:
    """Advance the world turn by turn until a given time, until the end of a step in which a host
    has worked, or until Python code must run.

    Takes at least one turn.
    Shapes:  sleepers int64[hosts + 1, DUE + 1]; `like` are the agents of any host
    Returns: TIME_OVER, or the bits FULL, and NEEDS_PYTHON << host
    """
    # One flat function, for the same reason as in `turn.run`.
    state, events = between.state, between.events
    first, end = state[COUNTERS_FROM], state[COUNTERS_END]
    while True:
        now_ns = state[NOW]
        state[TURNS] += 1
        needs = 0
        for host in range(sleepers.shape[0] - 1):
            sleeper = sleepers[host]
            if not _is_due(sleeper, now_ns):
                continue
            agents: Agents = load_state(like, sleeper[ADDRESS])
            work_count = 0
            for way in range(between.routes.targets.size):
                if between.routes.targets[way] == host:
                    work_count += datagram_delivery.land(
                        between.wires,
                        way,
                        agents.links,
                        between.audit,
                        events,
                        between.lost,
                        host,
                        now_ns,
                    )
            if sleeper[IS_RUNNING] != 0:
                state[CURRENT_HOST] = host
                if sleeper[NATIVE] != 0:
                    state[CURRENT_AGENT] = ALL_AGENTS
                    work_count += native_call.call(sleeper[NATIVE], sleeper[NATIVE_DRIVER])
                else:
                    epoch_ns = EPOCH_NS + now_ns + between.clock_steps_ns[host]
                    now_ms = epoch_ns // NS_PER_MS
                    state[CURRENT_AGENT] = CONDUCTOR
                    work_count += conductor_state.track(agents.conductor, now_ns, now_ms)
                    state[CURRENT_AGENT] = SENDER
                    work_count += sender.do_work(agents.sender, now_ns)
                    state[CURRENT_AGENT] = RECEIVER
                    work_count += receiver.do_work(agents.receiver, now_ns)
                    if conductor_state.needs_python(agents.conductor):
                        needs |= NEEDS_PYTHON << host
                state[CURRENT_AGENT] = NO_AGENT
                if datagram_delivery.has_sent(agents.links):
                    work_count += crossing.cross(agents.links, between, host, now_ns)
            if work_count > 0:
                values = agents.conductor.counters
                event_log.note_counters(events, now_ns, host, values, first, end)
                state[HAS_WORKED] = 1
            _sleep(sleeper, state, work_count)
        if crossing.next_release_ns(between) <= now_ns:
            crossing.release_due(between, now_ns)
        needs |= crossing.fullness(between)
        sleepers[-1, DUE] = _next_ns(between, sleepers)
        next_ns = max(sleepers[-1, DUE], now_ns + state[TURN])
        state[NOW] = min(next_ns, max(min(until_ns, state[STEP_END]), now_ns + 1))
        if needs != 0 or step.is_over(state, until_ns):
            return needs


@kernel
def _is_due(sleeper: Any, now_ns: int) -> bool:
    """Return whether a host's next turn is due."""
    return bool(sleeper[DUE] <= now_ns or (sleeper[IS_RUNNING] and sleeper[WAKES] <= now_ns))


@kernel
def _sleep(sleeper: Any, state: Any, work_count: int) -> None:
    """Set the time of a host's next turn. Each turn without work doubles the host's sleep time, up
    to a limit.
    """
    if work_count > 0:
        sleeper[IDLE] = state[TURN]
    else:
        sleeper[IDLE] = min(2 * sleeper[IDLE], state[IDLE_MAX])
    sleeper[WAKES] = state[NOW] + sleeper[IDLE]


@kernel
def _next_ns(between: Between, sleepers: Any) -> int:
    """Return the time at which a host or the middlebox next has work to do. Also stores when the
    next datagram of each host arrives.
    """
    targets, hosts = between.routes.targets, sleepers.shape[0] - 1
    for host in range(hosts):
        sleepers[host, DUE] = _NEVER
    for way in range(targets.size):
        sleeper = sleepers[targets[way]]
        sleeper[DUE] = min(sleeper[DUE], in_flight.next_due_ns(between.wires, way))
    next_ns = crossing.next_release_ns(between)
    for host in range(hosts):
        sleeper = sleepers[host]
        next_ns = min(next_ns, sleeper[DUE])
        if sleeper[IS_RUNNING]:
            next_ns = min(next_ns, sleeper[WAKES])
    return int(next_ns)
