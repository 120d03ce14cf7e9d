"""The middlebox's part of a turn: what a host has sent crosses it, what it had kept goes on.

    mailboxes --cross--> engine (the rules) --> outbox --> weather --> wires
                            ^-- keeps, go_on -^

Shared by all ways of taking turns. Refuses to know who takes a turn, and when.
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
    """All that a host has sent goes through the middlebox. Returns how many datagrams."""
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
            host,
            now_ns,
        )
        send_out(between, now_ns)
        count += taken
        if taken == 0 or (between.state[LEFT_OVER] == 0 and not datagram_delivery.has_sent(links)):
            return count


@kernel
def go_on(between: Between, now_ns: int) -> int:
    """What rules and weather have kept goes on where its time has come."""
    count = 0
    if next_due_ns(between.engine.waiting) <= now_ns:
        while not rules_engine.release(between.engine, now_ns):
            count += send_out(between, now_ns)
        count += send_out(between, now_ns)
    if next_due_ns(between.weather.waiting) <= now_ns:
        count += datagram_delivery.drift(
            between.weather, between.wires, between.packet, between.state, now_ns
        )
    return count


@kernel
def send_out(between: Between, now_ns: int) -> int:
    """Empty the engine's outbox. Returns how many datagrams."""
    return datagram_delivery.send_out(
        between.engine.outbox,
        between.moved,
        between.weather,
        between.wires,
        between.packet,
        between.state,
        now_ns,
    )


@kernel
def kept_until_ns(between: Between) -> int:
    """When the middlebox has something to do by itself."""
    return min(next_due_ns(between.engine.waiting), next_due_ns(between.weather.waiting))


@kernel
def fullness(between: Between) -> int:
    """FULL when decisions or tape must be emptied, else 0."""
    needs = 0
    if between.engine.state[DECISIONS] > len(between.engine.decisions) // 2:
        needs |= FULL
    if not event_log.has_room(between.events, between.events.tape.size // 2):
        needs |= FULL
    return needs
