"""Whether a late reader really came to the live stream, and what the link brought it from there.

    replay, over the loopback   |------------------------|
    live, over the link                              |---------------------- end
                                                 merged |-- window --|

That it got every message is another check's affair, and could be the replay's doing alone. Here the
capture has to show, on the port of the live stream, every position that the replay cannot have
brought: it runs up to a receiver window ahead of the reader, so what the link loses within a window
of the merge may be filled without the link.
"""

import numpy as np

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.validation import archive_validation
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.core.wire import Wire

MERGED = archive_validation.MERGED


def merged_into_live(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """A reader that merges left its replay before the end, and the link brought all after that."""
    return [_merged(evidence, each) for each in traffics if each.merges is not None]


def _merged(evidence: Evidence, traffic: TrafficCase) -> Finding:
    assert traffic.merges is not None
    found = together(
        evidence.subscriber(traffic), evidence.publisher(traffic), evidence.wire(traffic)
    )
    if isinstance(found, Missing):
        return could_not_look(MERGED, found, traffic.id)
    subscriber, publisher, wire = found
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    capture = evidence.folder.capture(traffic.to_host)
    where = (evidence.name_of(files.document), evidence.name_of(capture))
    merged, end = subscriber.merged_position, publisher.end_position
    if merged < 0:
        return failed(MERGED, "the reader never left its replay", traffic.id, evidence=where)
    if merged >= end:
        text = f"the reader left its replay at {merged}, where the stream had ended"
        return failed(MERGED, text, traffic.id, evidence=where, position=merged)
    alone = merged + wire.widest_window_bytes()
    if alone >= end:
        why = f"merged at {merged} of {end}, and the replay may have brought all up to {alone}"
        return could_not_look(MERGED, Missing("what the link alone brought", why), traffic.id)
    reached = _reached(wire, traffic.merges.port, alone)
    if reached < end:
        text = f"merged at {merged}, but the link brought port {traffic.merges.port} nothing of "
        text += f"position {reached}, of {end}"
        return failed(MERGED, text, traffic.id, evidence=where, position=reached)
    text = f"left the replay at {merged}; the link brought all from {alone} to the end at {end}"
    facts = {"merged_position": merged, "live_bytes": end - alone}
    return passed(MERGED, text, traffic.id, evidence=where, facts=facts)


def _reached(wire: Wire, port: int, position: int) -> int:
    """Up to where the link brought everything to a port, from a position on."""
    live = wire.arrived.frames["destination_port"] == port
    order = np.argsort(wire.arrived.starts[live], kind="stable")
    starts, ends = wire.arrived.starts[live][order], wire.arrived.ends[live][order]
    reached = position
    for start, stop in zip(starts.tolist(), ends.tolist(), strict=True):
        if start > reached:
            break
        reached = max(reached, stop)
    return reached
