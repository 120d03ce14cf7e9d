"""The turn of one host among several, and the middlebox's own between them.

    wires --> mailboxes --> conductor, sender, receiver --> mailboxes --> middlebox --> wires

A world of two sound hosts has a kernel for all of it, see `turn`; here each host takes its turn by
itself, so there may be any number of them, and one may stand still while the others go on. `due_ns`
tells when anybody is wanted: a cell for each host, for what arrives there, and behind them one for
what the middlebox keeps.
"""

from typing import Any

from driver.media_driver import conductor_state, receiver, sender
from harness.kernel import bare_kernel
from harness.simulator import crossing, event_log, flight, passage
from harness.simulator.flight import NEVER
from harness.simulator.world_state import (
    COUNTERS_END,
    COUNTERS_FROM,
    NOW,
    WANTED,
    Agents,
    Between,
)

_NS_PER_MS = 1_000_000
_NEVER = NEVER


@bare_kernel
def take_turn(
    agents: Agents, between: Between, due_ns: Any, host: int, is_working: bool
) -> tuple[int, int]:
    """What has arrived at a host is delivered; its agents work, unless their driver stands still.

    Shapes:  due_ns int64[hosts + 1]
    Returns: amount of work; the bits FULL, and WANTED << host
    """
    now_ns = between.state[NOW]
    work_count = 0
    for way in range(between.routes.targets.size):
        if between.routes.targets[way] != host:
            continue
        if flight.next_due_ns(between.wires, way) <= now_ns:
            work_count += passage.land(
                between.wires,
                way,
                agents.links,
                between.audit,
                between.events,
                between.lost,
                host,
                now_ns,
            )
    needs = 0
    if is_working:
        work_count += conductor_state.track(agents.conductor, now_ns, now_ns // _NS_PER_MS)
        work_count += sender.do_work(agents.sender, now_ns)
        work_count += receiver.do_work(agents.receiver, now_ns)
        if passage.has_sent(agents.links):
            work_count += crossing.cross(agents.links, between, host, now_ns)
        if conductor_state.needs_shell(agents.conductor):
            needs |= WANTED << host
    if work_count > 0:
        first, end = between.state[COUNTERS_FROM], between.state[COUNTERS_END]
        counters = agents.conductor.counters
        event_log.note_counters(between.events, now_ns, host, counters, first, end)
    _note_due(between, due_ns)
    return work_count, needs | crossing.fullness(between)


@bare_kernel
def take_middle_turn(between: Between, due_ns: Any) -> int:
    """What the middlebox has kept goes on where its time has come. Returns FULL or 0."""
    crossing.go_on(between, between.state[NOW])
    _note_due(between, due_ns)
    return crossing.fullness(between)


@bare_kernel
def _note_due(between: Between, due_ns: Any) -> None:
    """See when somebody is wanted next."""
    targets = between.routes.targets
    last = due_ns.size - 1
    for host in range(last):
        due_ns[host] = _NEVER
    for way in range(targets.size):
        host = targets[way]
        due_ns[host] = min(due_ns[host], flight.next_due_ns(between.wires, way))
    due_ns[last] = crossing.kept_until_ns(between)
