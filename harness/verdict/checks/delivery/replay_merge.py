"""Check that a ReplayMerge switched to the live stream and received the rest of the stream over the
link.

    replay, over the loopback   |------------------------|
    live, over the link                              |---------------------- end
                                                 merged |-- window --|

Another check verifies that the subscriber got every message, which the replay alone could achieve.
This check requires the capture to show, on the live stream's port, every position that the replay
cannot have delivered. The replay runs up to one receiver window ahead of the subscriber, so it may
fill losses on the link within one window of the merge.

A merge takes some requests to the archive, so it cannot precede the end of a stream that ends at
once.
"""

import numpy as np

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.validation import archive_validation
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    AtFault,
    Finding,
    Missing,
    failed,
    finding_of,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import Wire

MERGED = archive_validation.MERGED
MERGING_NS = 1_000_000_000
"""Time that a sound subscriber may need from its start until it has left its replay."""


def merged_into_live(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """A merging subscriber left its replay before the stream ended, and received the rest live.

    If the stream ended within a second of the subscriber's start, it need not have left it.
    """
    return [
        finding_of(MERGED, each.id, _merged, evidence, each)
        for each in traffics
        if each.merges is not None
    ]


def _merged(evidence: Evidence, traffic: TrafficCase) -> Finding:
    assert traffic.merges is not None
    subscriber, publisher, wire = present(
        evidence.subscriber(traffic), evidence.publisher(traffic), evidence.wire(traffic)
    )
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    capture = evidence.folder.capture(traffic.to_host)
    where = (evidence.name_of(files.document), evidence.name_of(capture))
    merged, end = subscriber.merged_position, publisher.end_position
    if merged < 0:
        return failed(MERGED, "the subscriber never left its replay", traffic.id, evidence=where)
    if merged >= end:
        text = f"the subscriber left its replay at {merged}, but the stream had ended at {end}"
        last_ns = int(wire.sent.frames["time_ns"][~wire.retransmitted()].max(initial=0))
        left_ns = last_ns - subscriber.started_ns
        if left_ns < MERGING_NS:
            text += f", {max(0, left_ns) // 1_000_000} ms after the subscriber began to merge"
            at_fault = AtFault.SCENARIO
            return Finding(MERGED, Outcome.INCONCLUSIVE, text, traffic.id, where, at_fault=at_fault)
        return failed(MERGED, text, traffic.id, evidence=where, position=merged)
    alone = merged + wire.max_window_bytes()
    if alone >= end:
        why = f"merged at {merged} of {end}, but the replay may have delivered data up to {alone}"
        return inconclusive(MERGED, Missing("data from the live stream only", why), traffic.id)
    reached = _reached(wire, traffic.merges.port, alone)
    if reached < end:
        text = f"merged at {merged}, but position {reached} of {end} never arrived over the link "
        text += f"on port {traffic.merges.port}"
        return failed(MERGED, text, traffic.id, evidence=where, position=reached)
    text = f"merged at {merged}; positions {alone} to {end} all arrived over the link"
    facts = {"merged_position": merged, "live_bytes": end - alone}
    return passed(MERGED, text, traffic.id, evidence=where, facts=facts)


def _reached(wire: Wire, port: int, position: int) -> int:
    """Return how far the data that arrived at a port extends from `position` without a gap."""
    live = wire.arrived.frames["destination_port"] == port
    order = np.argsort(wire.arrived.starts[live], kind="stable")
    starts, ends = wire.arrived.starts[live][order], wire.arrived.ends[live][order]
    reached = position
    for start, stop in zip(starts.tolist(), ends.tolist(), strict=True):
        if start > reached:
            break
        reached = max(reached, stop)
    return reached
