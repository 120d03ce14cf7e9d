"""The world's turn: what lands is delivered, every agent works once, what they sent goes its way.

    flights --> mailboxes --> conductor, sender, receiver of a, then of b --> mailboxes
       ^                                                                          |
       +---------- engine's outbox <---- engine (the fault rules) <---------------+

`run` repeats turns without entering Python. While somebody has work, the clock moves by one turn;
when nobody has, by twice as much each time up to a bound, as idle agents sleep, but never past the
moment at which a datagram is due. Knows nothing of who publishes or reads.
"""

from typing import Any, NamedTuple

import numpy as np

from driver.base.atomics import put_i32
from driver.media import link
from driver.media.link import Links
from driver.media_driver import conductor_state, receiver, sender
from driver.media_driver.conductor_state import ConductorState
from driver.media_driver.receiver_state import ReceiverState
from driver.media_driver.sender_state import SenderState
from harness.kernel import bare_kernel
from harness.middlebox import engine as rules_engine
from harness.middlebox import outbox as out
from harness.middlebox.state import DECISIONS, Engine
from harness.middlebox.waiting import next_due_ns
from harness.simulator import event_log, flight, stream_audit, stream_traffic
from harness.simulator.event_log import RECEIVED, SENT, EventLog
from harness.simulator.flight import (
    DESTINATION,
    DESTINATION_LENGTH,
    ENVELOPE_LENGTH,
    SOURCE_LENGTH,
    Flight,
)
from harness.simulator.stream_audit import Audit

# Cells of `state`.
NOW, IDLE, TURN, IDLE_MAX, DELAY, COUNTERS_FROM, COUNTERS_END = range(7)
"""Time; the present sleep, the shortest and the longest; the wire's delay; the counters that are
watched."""

# Columns of `lost`, one row a host: what the engine never hears of.
UNHEARD, OVERFLOWS, FLOODED = range(3)
"""Datagrams that nobody at the host listened for, that found a mailbox full, that found the wire to
it full."""

# What `run` returns, as bits: which hosts' conductors need Python, whether a buffer is full,
# whether the audit has something to say.
LEFT, RIGHT, FULL, AUDIT = 1, 2, 4, 8
TIME_OVER = 0

_NS_PER_MS = 1_000_000


class Agents(NamedTuple):
    """One driver's agents and the mailboxes that are their sockets."""

    conductor: ConductorState
    sender: SenderState
    receiver: ReceiverState
    links: Links


class World(NamedTuple):
    """Everything that a turn touches."""

    left: Agents
    right: Agents
    engine: Engine
    there: Flight  # a->b
    back: Flight  # b->a
    events: EventLog
    audit: Audit
    scratch: Any  # uint8: an envelope and the longest datagram
    state: Any  # int64, one cell each
    lost: Any  # int64[host, 3]


@bare_kernel
def run(world: World, until_ns: int) -> int:
    """Take turns until a time, at least one, or until the shell is needed.

    Returns: TIME_OVER, or the bits LEFT, RIGHT, FULL and AUDIT
    """
    # One function on purpose: each level between this one and the agents' kernels would have the
    # compiler go through all of them once more.
    state, left, right = world.state, world.left, world.right
    while True:
        now_ns = state[NOW]
        work_count = _land(world, world.there, right.links, 1, now_ns)
        work_count += _land(world, world.back, left.links, 0, now_ns)
        work_count += _publish(world)
        now_ms = now_ns // _NS_PER_MS
        work_count += conductor_state.track(left.conductor, now_ns, now_ms)
        work_count += sender.do_work(left.sender, now_ns)
        work_count += receiver.do_work(left.receiver, now_ns)
        work_count += conductor_state.track(right.conductor, now_ns, now_ms)
        work_count += sender.do_work(right.sender, now_ns)
        work_count += receiver.do_work(right.receiver, now_ns)
        work_count += _depart(world, left.links, 0, now_ns)
        work_count += _depart(world, right.links, 1, now_ns)
        # Readers come last: what an agent sent is judged by what it could have seen.
        work_count += _read(world)
        while not rules_engine.release(world.engine, now_ns):
            _empty_outbox(world, now_ns)
        work_count += _empty_outbox(world, now_ns)
        stream_audit.note_decisions(world.audit, world.engine)
        _note_counters(world, now_ns)
        needs = _needed(world)
        _advance(world, work_count, until_ns)
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
def _read(world: World) -> int:
    """The turn of readers that are kernels; what must hold is looked at beside it."""
    audit, count = world.audit, 0
    for index in range(audit.streams.size):
        stream = audit.streams[index]
        if stream["is_flowing"]:
            near, far = world.left.conductor.counters, world.right.conductor.counters
            if stream["from_host"] != 0:
                near, far = far, near
            count += stream_traffic.read(audit, index, far)
            stream_audit.check_counters(audit, index, near, far)
    return count


@bare_kernel
def _note_counters(world: World, now_ns: int) -> None:
    """Take down what has changed in the counters of both hosts."""
    first, end = world.state[COUNTERS_FROM], world.state[COUNTERS_END]
    event_log.note_counters(world.events, now_ns, 0, world.left.conductor.counters, first, end)
    event_log.note_counters(world.events, now_ns, 1, world.right.conductor.counters, first, end)


@bare_kernel
def _needed(world: World) -> int:
    """Whether something waits that only Python can do."""
    needs = 0
    if conductor_state.needs_shell(world.left.conductor):
        needs |= LEFT
    if conductor_state.needs_shell(world.right.conductor):
        needs |= RIGHT
    if world.engine.state[DECISIONS] > len(world.engine.decisions) // 2:
        needs |= FULL
    if stream_audit.is_over(world.audit):
        needs |= AUDIT
    if not event_log.has_room(world.events, world.events.tape.size // 2):
        needs |= FULL
    return needs


@bare_kernel
def _advance(world: World, work_count: int, until_ns: int) -> None:
    """Move the clock to the next turn."""
    state = world.state
    if work_count > 0:
        state[IDLE] = state[TURN]
    else:
        state[IDLE] = min(2 * state[IDLE], state[IDLE_MAX])
    due_ns = min(
        next_due_ns(world.engine.waiting),
        min(
            flight.due_ns(world.there, flight.next_at(world.there)),
            flight.due_ns(world.back, flight.next_at(world.back)),
        ),
    )
    next_ns = min(state[NOW] + state[IDLE], max(due_ns, state[NOW] + state[TURN]))
    state[NOW] = min(next_ns, max(until_ns, state[NOW] + 1))


@bare_kernel
def _land(world: World, wire: Flight, links: Links, host: int, now_ns: int) -> int:
    """Deliver what has arrived at a host."""
    count = 0
    while True:
        at = flight.next_at(wire)
        if flight.due_ns(wire, at) > now_ns:
            return count
        count += 1
        envelope, length = flight.envelope_at(at), flight.length_of(wire, at)
        memory = wire.memory
        stream_audit.on_landed(world.audit, host, memory, envelope + ENVELOPE_LENGTH, length)
        event_log.note_datagram(world.events, now_ns, host, RECEIVED, memory, envelope, length)
        to = memory[envelope + DESTINATION :]
        mailbox = link.find(links, to, memory[envelope + DESTINATION_LENGTH])
        if mailbox == link.NOTHING:
            world.lost[host, UNHEARD] += 1
        else:
            source = memory[envelope:]
            source_length = memory[envelope + SOURCE_LENGTH]
            at_bytes = envelope + ENVELOPE_LENGTH
            if (
                link.deliver(links, mailbox, source, source_length, memory, at_bytes, length)
                == link.NOTHING
            ):
                world.lost[host, OVERFLOWS] += 1
        flight.take(wire, at)


@bare_kernel
def _depart(world: World, links: Links, host: int, now_ns: int) -> int:
    """Take what a host has sent to the middlebox."""
    count = 0
    buf, room = world.scratch, world.scratch.size - ENVELOPE_LENGTH
    for index in range(links.mailboxes.size):
        mailbox = links.mailboxes[index]
        while mailbox.is_open != 0:
            length, name_length = link.take(
                links, index, buf[DESTINATION:], buf, ENVELOPE_LENGTH, room
            )
            if length == link.NOTHING:
                break
            assert length <= room
            count += 1
            for at in range(mailbox.local.size):
                buf[at] = mailbox.local[at]
            put_i32(buf, SOURCE_LENGTH, mailbox.local_length)
            put_i32(buf, DESTINATION_LENGTH, name_length)
            event_log.note_datagram(world.events, now_ns, host, SENT, buf, 0, length)
            stream_audit.on_sent(world.audit, host, buf, ENVELOPE_LENGTH, length)
            if not rules_engine.has_room(world.engine, ENVELOPE_LENGTH, length):
                _empty_outbox(world, now_ns)
            rules_engine.offer(world.engine, buf, 0, ENVELOPE_LENGTH, length, host, now_ns)
    return count


@bare_kernel
def _empty_outbox(world: World, now_ns: int) -> int:
    """Send all that the middlebox lets go on its way. Returns how many datagrams."""
    outbox = world.engine.outbox
    count = outbox.counts[out.COUNT]
    due_ns = now_ns + world.state[DELAY]
    for index in range(count):
        datagram = outbox.datagrams[index]
        wire = world.there if datagram["link"] == 0 else world.back
        if not flight.put(
            wire,
            due_ns,
            outbox.buf,
            datagram["at"],
            datagram["envelope_length"],
            datagram["length"],
        ):
            world.lost[1 - datagram["link"], FLOODED] += 1
    out.empty(outbox)
    return int(count)


def make_state(delay_ns: int, turn_ns: int, idle_max_ns: int) -> Any:
    """The cells of a world whose clock has not begun."""
    state = np.zeros(7, dtype=np.int64)
    state[TURN] = state[IDLE] = turn_ns
    state[IDLE_MAX] = idle_max_ns
    state[DELAY] = delay_ns
    return state
