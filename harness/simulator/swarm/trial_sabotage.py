"""Doing harm to the first stream of a trial, to see the audit say no.

flip-byte       a bit of the next datagram that lands is flipped where no rule did it
lying-counter   the receiver's high-water mark is moved ahead
wide-window     the sender is told of a window that nobody has granted
never-heal      in place of healing, every rule strikes every frame that it may
"""

from __future__ import annotations

from windtunnel.driver.cnc import counters
from windtunnel.harness.simulator.audit.stream_record import CODE, FLIPS, NONE, Audit
from windtunnel.harness.simulator.swarm.trial_stream import record_of
from windtunnel.harness.simulator.world.world import SimulatedWorld

FLIP_BYTE = "flip-byte"
LYING_COUNTER = "lying-counter"
WIDE_WINDOW = "wide-window"
NEVER_HEAL = "never-heal"
SABOTAGES = (FLIP_BYTE, LYING_COUNTER, WIDE_WINDOW, NEVER_HEAL)
_FAR_BYTES = 1 << 20


def commit(sabotage: str, world: SimulatedWorld, audit: Audit) -> None:
    """Do the ordered harm in the middle of a trial, unless something is wrong already."""
    stream, traffic = audit.streams[0], world.case.traffic[0]
    if not stream["is_flowing"] or audit.state[CODE] != NONE:
        return
    if sabotage == FLIP_BYTE:
        audit.state[FLIPS] = 1
    elif sabotage == LYING_COUNTER:
        values = world.host(traffic.to_host).counter_values
        counters.add(values, int(stream["hwm_id"]), _FAR_BYTES)
    elif sabotage == WIDE_WINDOW:
        near = world.host(traffic.from_host)
        _, sender, _ = near.driver.agents
        found = record_of(sender.publications, {"session_id": int(stream["session_id"])})
        counters.add(near.counter_values, int(found["snd_lmt_id"]), _FAR_BYTES)
