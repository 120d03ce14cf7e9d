"""What is wrong with the number of destinations of a publication with control-mode=dynamic.

    SM of b        |   |   |                          5 s after its last status message, a
    SM of c        |   |   |   |   |   |   |   |      receiver is no destination any more
    mdc-num-dest   1 2 ......................1

Compared in a simulation: only there, nothing but the driver can be late.
"""

import numpy as np

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.schema.channel import Channel
from windtunnel.harness.verdict.core.evidence import HostCounters
from windtunnel.harness.verdict.core.wire import Wire, status_messages

DYNAMIC = "dynamic"
TIMEOUT_NS = 5_000_000_000
"""Time after which a silent receiver is no destination. Source: Aeron 1.53."""
TOLERANCE_NS = 500_000_000
"""Ours and the real C driver remove a receiver 20 ms after its timeout. Before a receiver knows the
session, its status messages are not among the stream's.
"""
STEP_NS = 100_000_000


def wrong_destinations(wire: Wire, counted: HostCounters, channel: Channel) -> str:
    """Return what is wrong with the counter of a publication's destinations at some time, or "".

    Only compared if the host has one such counter.
    """
    counters = [each for each in counted.counters if each.type_id == counter_key.DESTINATIONS]
    if channel.control_mode != DYNAMIC or len(counters) != 1:
        return ""
    messages = status_messages(wire.feedback_arrived_from_all)
    samples = counted.samples_of(counters[0])
    if len(messages) == 0 or len(samples) == 0:
        return ""
    names = ("source_high", "source_low", "source_port")
    addresses = np.stack([messages[each].astype(np.int64) for each in names], axis=1)
    _, rows = np.unique(addresses, axis=0, return_inverse=True)
    times_ns, row = messages["time_ns"].astype(np.int64), rows.reshape(-1)
    changed_ns, values = samples["time_ns"].astype(np.int64), samples["value"].astype(np.int64)
    last_ns = int(times_ns.max())
    for now_ns in range(int(changed_ns[0]), last_ns, STEP_NS):
        value = int(values[np.searchsorted(changed_ns, now_ns, side="right") - 1])
        least, most = (
            len(np.unique(row[(times_ns >= since_ns) & (times_ns <= until_ns)]))
            for since_ns, until_ns in (
                (now_ns - TIMEOUT_NS + TOLERANCE_NS, now_ns - TOLERANCE_NS),
                (now_ns - TIMEOUT_NS - TOLERANCE_NS, now_ns + TOLERANCE_NS),
            )
        )
        if not least <= value <= most:
            after_ms = (now_ns - int(times_ns.min())) // 1_000_000
            return (
                f"mdc-num-dest is {value} {after_ms} ms after the first status message, expected "
                f"{least} to {most} receivers according to the capture"
            )
    return ""
