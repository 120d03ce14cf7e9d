"""Check of the end of stream: EOS heartbeats have the last position, and the subscriber sees EOS.

DATA ... DATA | heartbeat 0xC0 ... | heartbeat 0xE0 at the end, repeatedly
                                     ^ publisher closed, all sent

A driver that has sent everything when a publication is closed signals the end with the next
heartbeat. Otherwise its timer notices later that everything was sent. In real time, threads may be
late. Source: Aeron 1.53, `aeron_network_publication_handle_managed_resource_event`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import PublisherFacts
from windtunnel.harness.artifact.host.log_index import IMAGES, PUBLICATIONS
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.dissect.frames.layout import FLAG_END_OF_STREAM
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    EvidenceMissing,
    Finding,
    Missing,
    failed,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.pauses import pauses_of

EOS = "eos_reaches_end"

HEARTBEAT_NS = 100_000_000
TIMER_NS = 1_000_000_000
"""Default interval of the timer of Aeron's drivers."""
TIMER_SETTING = "AERON_TIMER_INTERVAL"
CLOSED_NS = 5_000_000
"""Time in which a simulated driver processes a client's command, or sends what is due."""


def eos_reaches_end(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """EOS heartbeats carry the stream's last position, and the subscriber's image reaches it; in a
    simulation, the first one is sent in time.
    """
    wire, publisher, subscriber = present(
        evidence.wire(traffic), evidence.publisher(traffic), evidence.subscriber(traffic)
    )
    end = publisher.end_position
    near, far = (
        evidence.name_of(evidence.folder.capture(host))
        for host in (traffic.from_host, traffic.to_host)
    )
    eos_sent, eos_positions = wire.end_of_stream_heartbeats(wire.heartbeats_sent)
    eos_arrived, _ = wire.end_of_stream_heartbeats(wire.heartbeats_arrived)
    more: dict[str, Any] = {
        "facts": {"sent": len(eos_sent), "arrived": len(eos_arrived), "end": end}
    }
    violation = _wrong_end(wire, eos_sent, eos_positions, end)
    if violation is not None:
        position, text = violation
        return failed(EOS, text, traffic.id, evidence=(near,), position=position, **more)
    signals = parse_channel(traffic.channel).signals_end
    if not signals and not len(eos_sent):
        text = "no EOS heartbeat was sent, as the channel specifies"
        return passed(EOS, text, traffic.id, evidence=(near,), **more)
    if not signals or not len(eos_sent):
        expected = "at least one" if signals else "none"
        text = f"{len(eos_sent)} EOS heartbeats were sent, expected {expected}"
        return failed(EOS, text, traffic.id, evidence=(near,), position=end, **more)
    late = _late_signal(evidence, traffic, eos_sent, publisher)
    if late:
        return failed(EOS, late, traffic.id, evidence=(near,), position=end, **more)
    if not len(eos_arrived):
        text = f"the link dropped all {len(eos_sent)} EOS heartbeats"
        return Finding(EOS, Outcome.INCONCLUSIVE, text, traffic.id, (near, far), **more)
    if not subscriber.eos_seen or subscriber.end_position != end:
        seen = "saw" if subscriber.eos_seen else "did not see"
        text = f"the subscriber {seen} EOS and stopped at {subscriber.end_position}, expected {end}"
        files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
        where = (evidence.name_of(files.document), far)
        position = subscriber.end_position
        return failed(EOS, text, traffic.id, evidence=where, position=position, **more)
    for text, path, position in _wrong_log_ends(evidence, traffic, wire, end):
        return failed(EOS, text, traffic.id, evidence=(path,), position=position, **more)
    text = (
        f"{len(eos_sent)} EOS heartbeats were sent at position {end}, {len(eos_arrived)} of them "
        "arrived, and the subscriber stopped there"
    )
    return passed(EOS, text, traffic.id, evidence=(near, far), **more)


def _wrong_end(
    wire: Wire, eos_sent: Frames, eos_positions: NDArray[np.int64], end: int
) -> tuple[int, str] | None:
    """Return the position and description of the first EOS flag at a wrong position, too early, or
    on a data frame.
    """
    flagged = np.flatnonzero(wire.sent.frames["flags"] & FLAG_END_OF_STREAM)
    if len(flagged):
        position = int(wire.sent.starts[flagged[0]])
        text = f"the data frame at position {position} has the EOS flag, which is valid only on "
        return position, f"{text}heartbeats"
    elsewhere = np.flatnonzero(eos_positions != end)
    if len(elsewhere):
        position = int(eos_positions[elsewhere[0]])
        return position, f"an EOS heartbeat has position {position}, expected {end}"
    first_sent = wire.sent.frames["time_ns"][~wire.retransmitted()]
    if len(eos_sent) and len(first_sent) and eos_sent["time_ns"].min() < first_sent.max():
        return end, "an EOS heartbeat was sent before the last data frame"
    return None


def _late_signal(
    evidence: Evidence, traffic: TrafficCase, eos_sent: Frames, publisher: PublisherFacts
) -> str:
    """Return what is wrong if the first EOS heartbeat was sent too late, or ""."""
    if publisher.error is not None:
        return ""
    try:
        wire, case, pauses = present(
            evidence.wire(traffic), evidence.case, pauses_of(evidence, traffic.from_host)
        )
    except EvidenceMissing:
        return ""
    if not is_virtual(case) or TIMER_SETTING in case.drivers.get(traffic.from_host, {}):
        return ""
    first = wire.sent.frames["time_ns"][~wire.retransmitted()].astype(np.int64)
    sent_ns, closed_ns = int(first.max(initial=0)), publisher.ended_ns
    limit_ns = HEARTBEAT_NS + CLOSED_NS
    if sent_ns > closed_ns - CLOSED_NS:
        limit_ns += TIMER_NS
    began_ns = np.array([max(sent_ns, closed_ns)], dtype=np.int64)
    until_ns = np.array([eos_sent["time_ns"].min()], dtype=np.int64)
    waited_ns = int((until_ns - began_ns - pauses.within_ns(began_ns, until_ns))[0])
    if waited_ns <= limit_ns:
        return ""
    return (
        f"the first EOS heartbeat was sent {waited_ns // 1_000_000} ms after the publication had "
        f"been closed and everything sent, expected {limit_ns // 1_000_000} ms at most"
    )


def _wrong_log_ends(
    evidence: Evidence, traffic: TrafficCase, wire: Wire, end: int
) -> list[tuple[str, str, int]]:
    """Return the logs whose end-of-stream position is wrong, as (description, path, position)."""
    stream = wire.facts.session_id, wire.facts.stream_id
    found = []
    for host, folder in ((traffic.from_host, PUBLICATIONS), (traffic.to_host, IMAGES)):
        kept = evidence.log_of(host, folder, *stream)
        if isinstance(kept, Missing):
            continue
        position = kept.log.metadata["end_of_stream_position"]
        if position != end:
            text = f"the log in {folder} on {host} has end-of-stream position {position}"
            found.append((f"{text}, expected {end}", evidence.name_of(kept.path), position))
    return found
