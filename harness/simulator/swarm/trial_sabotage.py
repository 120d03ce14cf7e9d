"""Injects a fault into a trial's first stream, to check that the audit detects it.

flip-byte       flips a bit of the next datagram that arrives, without a rule
lying-counter   moves the receiver's high-water mark ahead
wide-window     raises the sender limit past the end of the receiver window
never-heal      makes every rule match all its frames, instead of entering the recovery phase
"""

from __future__ import annotations

from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.conductor.stream_counters import SENDER_LIMIT
from windtunnel.harness.simulator.audit.stream_record import CODE, FLIPS, NONE, Audit
from windtunnel.harness.simulator.world.world import SimulatedWorld

FLIP_BYTE = "flip-byte"
LYING_COUNTER = "lying-counter"
WIDE_WINDOW = "wide-window"
NEVER_HEAL = "never-heal"
SABOTAGES = (FLIP_BYTE, LYING_COUNTER, WIDE_WINDOW, NEVER_HEAL)
_FAR_BYTES = 1 << 20


def sabotage_stream(sabotage: str, world: SimulatedWorld, audit: Audit) -> None:
    """Inject the chosen fault in the middle of a trial, unless a violation was already found."""
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
        registration_id = counters.registration_id(near.counter_values, int(stream["snd_pos_id"]))
        limit_id = near.client.counters.find(SENDER_LIMIT, int(registration_id))
        assert limit_id is not None
        counters.add(near.counter_values, limit_id, _FAR_BYTES)
