"""Counts of planned messages that a subscriber did not receive.

    plan         | m0 | m1 | m2 | m3 | m4 | m5 |
    delivered    | m0 | m1 |         | m4 | m5 |     2 of 6 messages were not delivered

A check may permit such losses: of an unreliable stream, of an image that was lost and replaced, of
a receiver that joined late. Even so, a passing verdict names them, and `undelivered_at_most` in
`expect` limits their bytes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import Delivered, Planned
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.limit import Limit

AT_MOST = "undelivered_at_most"
"""The argument of a check that limits the bytes of undelivered messages."""
MESSAGES, BYTES, PLANNED = "undelivered_messages", "undelivered_bytes", "planned_messages"
"""Names of a finding's facts: undelivered messages, their bytes, and planned messages."""


def undelivered_facts(planned: Planned, delivered: Delivered) -> dict[str, int]:
    """Return how many planned messages, and how many of their bytes, were never delivered.

    A delivered message is identified by its last position, in whichever session it was delivered.
    """
    ends = planned.log.message_ends
    positions = delivered.deliveries["position"].astype(np.int64)
    is_missing = ~np.isin(ends, positions)
    lengths = planned.plan.lengths.astype(np.int64)
    return {
        MESSAGES: int(is_missing.sum()),
        BYTES: int(lengths[is_missing].sum()),
        PLANNED: planned.plan.count,
    }


def undelivered_notes(evidence: Evidence, case: Case) -> Iterator[str]:
    """Yield one note for each subscriber with undelivered messages, for a verdict's first line.

    The notes depend on the subscribers' records alone, not on the checks of the scenario.
    """
    for traffic in case.traffic:
        for host in traffic.subscribers:
            flow = traffic.between(traffic.from_host, host)
            planned, delivered = evidence.planned(flow), evidence.delivered(flow)
            if isinstance(planned, Missing) or isinstance(delivered, Missing):
                continue
            facts = undelivered_facts(planned, delivered)
            if facts[MESSAGES]:
                name = f"{flow.id} at {host}" if len(traffic.subscribers) > 1 else flow.id
                yield f"{name}: {_counted(facts)} were not delivered"


def _counted(facts: Mapping[str, Any]) -> str:
    return f"{facts[MESSAGES]:,} of {facts[PLANNED]:,} messages ({facts[BYTES]:,} bytes)"


LIMIT = Limit(AT_MOST, BYTES, lambda facts: f"{_counted(facts)} were not delivered")
