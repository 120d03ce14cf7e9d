"""The world's turn: what lands is delivered, every agent works once, what they sent goes its way.

    wire --> mailboxes --> conductor, sender, receiver of a, then of b --> mailboxes
     ^                                                                        |
     +------ weather <------ engine's outbox <------ engine (the rules) <-----+

`run` repeats turns without entering Python. While somebody has work, the clock moves by one turn;
when nobody has, by twice as much each time up to a bound, as idle agents sleep, but never past the
moment at which a datagram is due. Knows nothing of who publishes or reads.
"""

from typing import Any

from driver.media_driver import conductor_state, receiver, sender
from harness.kernel import bare_kernel
from harness.middlebox import engine as rules_engine
from harness.middlebox.state import DECISIONS
from harness.middlebox.waiting import next_due_ns
from harness.simulator import event_log, flight, passage, stream_audit, stream_traffic
from harness.simulator.flight import Flight
from harness.simulator.world_state import (
    AUDIT,
    COUNTERS_END,
    COUNTERS_FROM,
    FULL,
    IDLE,
    IDLE_MAX,
    LEFT,
    NOW,
    RIGHT,
    TURN,
    TURNS,
    World,
)

_NS_PER_MS = 1_000_000


@bare_kernel
def run(world: World, until_ns: int) -> int:
    """Take turns until a time, at least one, or until the shell is needed.

    Returns: TIME_OVER, or the bits LEFT, RIGHT, FULL and AUDIT
    """
    # One function on purpose: each level between this one and the agents' kernels would have the
    # compiler go through all of them once more. A state is handed down array by array, which costs
    # more than most calls do: so nobody is called who has nothing to do, and nobody is handed all.
    state, left, right = world.state, world.left, world.right
    there, back, engine = world.there, world.back, world.engine
    while True:
        now_ns = state[NOW]
        state[TURNS] += 1
        work_count = 0
        if flight.next_due_ns(there) <= now_ns:
            work_count += passage.land(
                there, right.links, world.audit, world.events, world.lost, 1, now_ns
            )
        if flight.next_due_ns(back) <= now_ns:
            work_count += passage.land(
                back, left.links, world.audit, world.events, world.lost, 0, now_ns
            )
        if stream_traffic.has_messages(world.audit.streams):
            work_count += _publish(world)
        now_ms = now_ns // _NS_PER_MS
        work_count += conductor_state.track(left.conductor, now_ns, now_ms)
        work_count += sender.do_work(left.sender, now_ns)
        work_count += receiver.do_work(left.receiver, now_ns)
        work_count += conductor_state.track(right.conductor, now_ns, now_ms)
        work_count += sender.do_work(right.sender, now_ns)
        work_count += receiver.do_work(right.receiver, now_ns)
        if passage.has_sent(left.links):
            work_count += _depart(world, 0, now_ns)
        if passage.has_sent(right.links):
            work_count += _depart(world, 1, now_ns)
        # Readers come last: what an agent sent is judged by what it could have seen.
        if work_count > 0 or stream_traffic.is_anybody_slow(world.audit.streams):
            work_count += _read(world, now_ns)
        if next_due_ns(engine.waiting) <= now_ns:
            while not rules_engine.release(engine, now_ns):
                work_count += _send_out(world, now_ns)
            work_count += _send_out(world, now_ns)
        if next_due_ns(world.weather.waiting) <= now_ns:
            work_count += passage.drift(
                world.weather, there, back, world.packet, state, world.lost, now_ns
            )
        # A turn without work has changed nothing that anybody here looks at.
        needs = _look(world, now_ns) if work_count > 0 else 0
        due_ns = min(next_due_ns(engine.waiting), next_due_ns(world.weather.waiting))
        _advance(state, there, back, due_ns, work_count, until_ns)
        if needs != 0 or state[NOW] >= until_ns:
            return needs


@bare_kernel
def _publish(world: World) -> int:
    """The turn of publishers that are kernels."""
    audit, count = world.audit, 0
    for index in range(audit.streams.size):
        stream = audit.streams[index]
        if stream["is_flowing"]:
            near = world.left.conductor.counters
            if stream["from_host"] != 0:
                near = world.right.conductor.counters
            count += stream_traffic.publish(audit, index, near)
    return count


@bare_kernel
def _read(world: World, now_ns: int) -> int:
    """The turn of readers that are kernels; what must hold is looked at beside it."""
    audit, count = world.audit, 0
    for index in range(audit.streams.size):
        stream = audit.streams[index]
        if stream["is_flowing"]:
            near, far = world.left.conductor.counters, world.right.conductor.counters
            if stream["from_host"] != 0:
                near, far = far, near
            count += stream_traffic.read(audit, index, far, now_ns)
            stream_audit.check_counters(audit, index, near, far)
    return count


@bare_kernel
def _depart(world: World, host: int, now_ns: int) -> int:
    """All that a host has sent goes through the middlebox."""
    links = world.left.links if host == 0 else world.right.links
    count = 0
    while True:
        taken = passage.depart(
            links,
            world.engine,
            world.audit,
            world.events,
            world.scratch,
            world.state,
            host,
            now_ns,
        )
        _send_out(world, now_ns)
        count += taken
        if taken == 0 or not passage.has_sent(links):
            return count


@bare_kernel
def _send_out(world: World, now_ns: int) -> int:
    return passage.send_out(
        world.engine.outbox,
        world.moved,
        world.weather,
        world.there,
        world.back,
        world.packet,
        world.state,
        world.lost,
        now_ns,
    )


@bare_kernel
def _look(world: World, now_ns: int) -> int:
    """Take down what has changed. Returns what waits that only Python can do."""
    stream_audit.note_decisions(world.audit, world.engine)
    events = world.events
    first, end = world.state[COUNTERS_FROM], world.state[COUNTERS_END]
    event_log.note_counters(events, now_ns, 0, world.left.conductor.counters, first, end)
    event_log.note_counters(events, now_ns, 1, world.right.conductor.counters, first, end)
    needs = 0
    if conductor_state.needs_shell(world.left.conductor):
        needs |= LEFT
    if conductor_state.needs_shell(world.right.conductor):
        needs |= RIGHT
    if world.engine.state[DECISIONS] > len(world.engine.decisions) // 2:
        needs |= FULL
    if stream_audit.is_over(world.audit):
        needs |= AUDIT
    if not event_log.has_room(events, events.tape.size // 2):
        needs |= FULL
    return needs


@bare_kernel
def _advance(
    state: Any, there: Flight, back: Flight, due_ns: int, work_count: int, until_ns: int
) -> None:
    """Move the clock to the next turn; `due_ns` is when the middlebox has something to do."""
    if work_count > 0:
        state[IDLE] = state[TURN]
    else:
        state[IDLE] = min(2 * state[IDLE], state[IDLE_MAX])
    due_ns = min(due_ns, min(flight.next_due_ns(there), flight.next_due_ns(back)))
    next_ns = min(state[NOW] + state[IDLE], max(due_ns, state[NOW] + state[TURN]))
    state[NOW] = min(next_ns, max(until_ns, state[NOW] + 1))
