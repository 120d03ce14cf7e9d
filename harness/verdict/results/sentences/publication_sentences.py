"""Sentences about what delayed a publication: offers that it refused, and the receiver's window.

the publisher fell 4.98 s behind its pace
the publication refused offers for 9.3 s: back pressure 8.2 s, not connected 1.1 s
the sender waited for a receiver window: 917 ms for that of far
the receiver window limits goodput: 131,072 B in one round trip of 20 ms are at most 6.55 MB/s
"""

from collections.abc import Iterator

import numpy as np

from windtunnel.harness.artifact.rate_text import rate_text
from windtunnel.harness.artifact.run.result_row import (
    causes_text,
    duration,
    listed,
)
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.units import BILLION
from windtunnel.harness.verdict.core.evidence import UNKNOWN_NS, Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.results.result_rows import Reading
from windtunnel.harness.verdict.views.stalls.awaited import awaited_ns, feedback_lost_ns

REFUSED_NS_MIN = 10_000_000
"""Shortest total time that is reported, and that of a stall."""
NAMED_MAX = 3
"""Maximum number of receivers that a sentence names."""
REFUSED_SHARE_MIN = 0.01
"""Minimum share of the publisher's time, since short waits are common without a pace."""


def publication_sentences(evidence: Evidence, traffic: TrafficCase) -> Iterator[str]:
    """Yield a sentence for each publisher of a stream whose offers were refused for long."""
    for host in traffic.publishers:
        facts = evidence.publisher(traffic.between(host, traffic.to_host))
        if isinstance(facts, Missing):
            continue
        refused_ns = {
            "back pressure": facts.back_pressured_ns,
            "not connected": facts.not_connected_ns,
        }
        total_ns = sum(refused_ns.values())
        least_ns = REFUSED_SHARE_MIN * (facts.ended_ns - facts.started_ns)
        if total_ns < max(REFUSED_NS_MIN, least_ns):
            continue
        name = f"{traffic.id} at {host}" if len(traffic.publishers) > 1 else traffic.id
        text = causes_text(refused_ns, REFUSED_NS_MIN) or causes_text(refused_ns, 1)
        yield f"{name}: the publication refused offers for {duration(total_ns)}: {text}"


def pace_sentence(evidence: Evidence, traffic: TrafficCase) -> Iterator[str]:
    """Yield a sentence if a stream's only publisher fell behind its pace.

    Latency begins with the first offer, which a publisher that had to wait makes later.
    """
    planned, due_ns = evidence.planned(traffic), evidence.due_ns(traffic)
    if isinstance(planned, Missing) or isinstance(due_ns, Missing) or len(traffic.publishers) > 1:
        return
    offered = np.flatnonzero(due_ns != UNKNOWN_NS)
    if not traffic.pace.bytes_per_s or len(offered) < 2:
        return
    first, last = int(offered[0]), int(offered[-1])
    earlier_bytes, pace = int(planned.plan.lengths[first:last].sum()), traffic.pace
    least_ns = earlier_bytes * BILLION // pace.bytes_per_s
    if pace.rest_every_bytes:
        least_ns += earlier_bytes // pace.rest_every_bytes * pace.rest_ns
    took_ns = int(due_ns[last] - due_ns[first])
    behind_ns = took_ns - least_ns
    if behind_ns >= max(REFUSED_NS_MIN, REFUSED_SHARE_MIN * took_ns):
        yield (
            f"{traffic.id}: the publisher fell {duration(behind_ns)} behind its pace; latency "
            "begins with the first offer of a message, and does not include this delay"
        )


def lost_feedback_sentence(evidence: Evidence, traffic: TrafficCase) -> Iterator[str]:
    """Yield a sentence if lost status messages delayed the sender of a stream with one receiver."""
    wire = evidence.wire(traffic)
    if isinstance(wire, Missing) or len(traffic.subscribers) + len(traffic.publishers) > 2:
        return
    lost_ns = feedback_lost_ns(wire)
    if lost_ns >= REFUSED_NS_MIN:
        yield (
            f"{traffic.id}: the sender waited {duration(lost_ns)} longer for the receiver window, "
            "because status messages were lost that would have made room"
        )


def awaited_sentence(evidence: Evidence, traffic: TrafficCase) -> Iterator[str]:
    """Yield a sentence that names the receivers for whose window the sender of a group waited."""
    found = sorted(awaited_ns(evidence, traffic).items(), key=lambda each: -each[1])
    if not found:
        return
    texts = [f"{duration(waited_ns)} for that of {host}" for host, waited_ns in found[:NAMED_MAX]]
    text = f"{traffic.id}: the sender waited for a receiver window: {listed(texts)}"
    yield text + (f"; less for {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else "")


def window_sentence(reading: Reading) -> Iterator[str]:
    """Yield a sentence about the receiver's window if it limited the rate of the stream."""
    limit = reading.window_limit
    if limit is None:
        return
    window, trip = f"{limit.window_bytes:,} B", duration(limit.round_trip_ns)
    if reading.row.kept_pace:
        yield (
            f"messages waited for the receiver window of {window}: this rate has "
            f"{limit.in_flight_bytes:,} B in flight in a round trip of {trip}, and status messages "
            "acknowledge up to a quarter of the window late; without losses, "
            f"{limit.sufficient_bytes:,} B would be enough"
        )
        return
    yield (
        f"the receiver window limits goodput: {window} in one round trip of {trip} are at most "
        f"{rate_text(limit.bytes_per_s)}, headers included"
    )
