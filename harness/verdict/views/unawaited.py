"""Receivers that joined after their sender had started, as their flow control permits.

receiver 1    joins, and the sender starts
receiver 2                  joins: it misses what was sent before
"""

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.resolved.unawaited import starts_with_all, waits_for
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing


def missed_start(evidence: Evidence, flow: TrafficCase) -> bool:
    """Return whether a receiver joined late because the sender had already started with another
    receiver.
    """
    own = evidence.subscriber(flow)
    if waits_for(flow) or starts_with_all(flow):
        return False
    if isinstance(own, Missing) or own.join_position <= flow.initial_position:
        return False
    for host in flow.subscribers:
        other = evidence.subscriber(flow.between(flow.from_host, host))
        if not isinstance(other, Missing) and other.join_position == flow.initial_position:
            return True
    return False
