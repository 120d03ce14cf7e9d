"""The end of a stream: told by heartbeats, at the last position, and heard by the subscriber.

DATA ... DATA | heartbeat 0xC0 ... | heartbeat 0xE0 at the end, again and again
                                     ^ publisher closed, all sent
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.held_log import IMAGES, PUBLICATIONS
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.dissect.frames.layout import FLAG_END_OF_STREAM
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import Wire

EOS = "eos_reaches_end"


def eos_reaches_end(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Heartbeats tell the end of the stream at its last position, and the subscriber hears it."""
    found = together(
        evidence.wire(traffic), evidence.publisher(traffic), evidence.subscriber(traffic)
    )
    if isinstance(found, Missing):
        return could_not_look(EOS, found, traffic.id)
    wire, publisher, subscriber = found
    end = publisher.end_position
    near, far = (
        evidence.name_of(evidence.folder.capture(host))
        for host in (traffic.from_host, traffic.to_host)
    )
    told, told_at = wire.ends_told(wire.beats_sent)
    heard, _ = wire.ends_told(wire.beats_arrived)
    more: dict[str, Any] = {"facts": {"sent": len(told), "arrived": len(heard), "end": end}}
    offence = _told_wrong(wire, told, told_at, end)
    if offence is not None:
        position, text = offence
        return failed(EOS, text, traffic.id, evidence=(near,), position=position, **more)
    signals = parse_channel(traffic.channel).signals_end
    if not signals and not len(told):
        text = "no heartbeat told the end of the stream, as the channel asks for"
        return passed(EOS, text, traffic.id, evidence=(near,), **more)
    if not signals or not len(told):
        count, asked = len(told), "not to be told" if not signals else "to be told"
        text = f"{count} heartbeats told the end of the stream, which was {asked}"
        return failed(EOS, text, traffic.id, evidence=(near,), position=end, **more)
    if not len(heard):
        text = f"the link took all {len(told)} heartbeats that told the end of the stream"
        return Finding(EOS, Outcome.INCONCLUSIVE, text, traffic.id, (near, far), **more)
    if not subscriber.eos_seen or subscriber.end_position != end:
        seen = "saw the end of the stream" if subscriber.eos_seen else "saw no end of the stream"
        text = f"the subscriber {seen} and stopped at {subscriber.end_position}, the end is {end}"
        files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
        where = (evidence.name_of(files.document), far)
        position = subscriber.end_position
        return failed(EOS, text, traffic.id, evidence=where, position=position, **more)
    for text, path, position in _logs_disagree(evidence, traffic, wire, end):
        return failed(EOS, text, traffic.id, evidence=(path,), position=position, **more)
    text = (
        f"{len(told)} heartbeats told the end at {end}, {len(heard)} arrived, "
        "and the subscriber stopped there"
    )
    return passed(EOS, text, traffic.id, evidence=(near, far), **more)


def _told_wrong(
    wire: Wire, told: Frames, told_at: NDArray[np.int64], end: int
) -> tuple[int, str] | None:
    """The first time that the end was told elsewhere, or too early, or by data."""
    flagged = np.flatnonzero(wire.sent.frames["flags"] & FLAG_END_OF_STREAM)
    if len(flagged):
        position = int(wire.sent.starts[flagged[0]])
        return position, f"the frame at position {position} has the flag of the stream's end"
    elsewhere = np.flatnonzero(told_at != end)
    if len(elsewhere):
        position = int(told_at[elsewhere[0]])
        return position, f"a heartbeat told the end at position {position}, it is {end}"
    first_sent = wire.sent.frames["time_ns"][~wire.resent()]
    if len(told) and len(first_sent) and told["time_ns"].min() < first_sent.max():
        return end, "a heartbeat told the end of the stream before the last frame was sent"
    return None


def _logs_disagree(
    evidence: Evidence, traffic: TrafficCase, wire: Wire, end: int
) -> list[tuple[str, str, int]]:
    """Logs whose metadata tell another end: what, where, and which position."""
    stream = wire.facts.session_id, wire.facts.stream_id
    found = []
    for host, folder in ((traffic.from_host, PUBLICATIONS), (traffic.to_host, IMAGES)):
        kept = evidence.log_of(host, folder, *stream)
        if isinstance(kept, Missing):
            continue
        position = kept.log.metadata["end_of_stream_position"]
        if position != end:
            text = f"the log in {folder} at {host} says that the stream ends at {position}"
            found.append((f"{text}, it is {end}", evidence.name_of(kept.path), position))
    return found
