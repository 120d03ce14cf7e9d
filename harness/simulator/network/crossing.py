"""The middlebox's part of a simulation turn: forwards what a host has sent, and releases held
frames that are due.

    mailboxes --cross--> engine (the rules) --> outbox --> impairments --> wires
                            ^- holds, go_on -^

The compiled kernels for two and for many hosts share this module.
"""

from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media.link import Links
from windtunnel.harness.middlebox.engine import engine as rules_engine
from windtunnel.harness.middlebox.engine.held_frames import next_due_ns
from windtunnel.harness.middlebox.engine.state import DECISIONS
from windtunnel.harness.simulator.network import datagram_delivery
from windtunnel.harness.simulator.world import event_log
from windtunnel.harness.simulator.world.world_state import FULL, LEFT_OVER, Between


@kernel
def cross(links: Links, between: Between, host: int, now_ns: int) -> int:
    """Pass all datagrams that a host has sent through the middlebox.

    Returns the number of datagrams.
    """
    count = 0
    while True:
        taken = datagram_delivery.depart(
            links,
            between.engine,
            between.routes,
            between.audit,
            between.events,
            between.scratch,
            between.state,
            between.ports,
            between.lost,
            host,
            now_ns,
        )
        send_out(between, now_ns)
        count += taken
        if taken == 0 or (between.state[LEFT_OVER] == 0 and not datagram_delivery.has_sent(links)):
            return count


@kernel
def release_due(between: Between, now_ns: int) -> int:
    """Release the held frames and delayed packets that are due. Returns the number of datagrams
    sent.
    """
    count = 0
    if next_due_ns(between.engine.held) <= now_ns:
        while not rules_engine.release(between.engine, now_ns):
            count += send_out(between, now_ns)
        count += send_out(between, now_ns)
    if next_due_ns(between.impairments.held) <= now_ns:
        count += datagram_delivery.send_impaired(
            between.impairments, between.wires, between.packet, between.state, now_ns
        )
    return count


@kernel
def send_out(between: Between, now_ns: int) -> int:
    """Send all datagrams in the engine's outbox. Returns their number."""
    return datagram_delivery.send_out(
        between.engine.outbox,
        between.rewritten_ports,
        between.impairments,
        between.wires,
        between.packet,
        between.state,
        now_ns,
    )


@kernel
def next_release_ns(between: Between) -> int:
    """Return the virtual time in nanoseconds at which the next held frame or delayed packet is
    due.
    """
    return min(next_due_ns(between.engine.held), next_due_ns(between.impairments.held))


@kernel
def fullness(between: Between) -> int:
    """Return FULL if the buffer of decisions or of recorded datagrams is half full and must be
    drained, else 0.
    """
    needs = 0
    if between.engine.state[DECISIONS] > len(between.engine.decisions) // 2:
        needs |= FULL
    if not event_log.has_room(between.events, between.events.tape.size // 2):
        needs |= FULL
    return needs
