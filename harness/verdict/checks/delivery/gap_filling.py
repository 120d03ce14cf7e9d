"""Filled gaps: counted one by one, and nothing that came in time lies beneath them.

    counter 23      3
    read             | DATA | PAD | DATA | PAD | DATA | PAD |      three that nobody has written
    image's log      | DATA | PAD 0 0 0 0 | DATA ...            none was there, none came after

A frame that lies in the log keeps out the padding, and the padding keeps out a frame that comes
later for its own place. So behind a padding's header there is nothing of the frame that it stands
for; other frames that it covers may have come since.
"""

import numpy as np

from windtunnel.harness.artifact.host.held_log import IMAGES
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.log_buffer import TERM_COUNT
from windtunnel.harness.dissect.frames.flow import aligned_lengths
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.retransmission.recovery import system_value
from windtunnel.harness.verdict.core.evidence import Evidence, KeptLog
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.views.coverage import filled_gaps, fills_seen
from windtunnel.harness.verdict.views.losses import frame_index, lost_on_the_way

COUNTED = "gap_fills_counted"
EMPTY = "gap_fills_cover_nothing"


def gap_fills_counted(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """A driver's counter of filled gaps is their number in the logs of its images."""
    hosts = sorted({each.to_host for each in traffics})
    return [_host_counts(evidence, host) for host in hosts]


def _host_counts(evidence: Evidence, host: str) -> Finding:
    case, value = evidence.case, system_value(evidence, host, counter_key.LOSS_GAP_FILLS)
    if isinstance(case, Missing):
        return could_not_look(COUNTED, case, host)
    if isinstance(value, Missing):
        return could_not_look(COUNTED, value, host)
    where = [evidence.name_of(evidence.folder.host(host).counters)]
    least, most, is_whole = 0, 0, True
    # Of several publishers one reader has one image.
    read = [each for each in case.traffic if host in each.subscribers]
    for traffic in (each.between(each.from_host, host) for each in read):
        found = together(
            evidence.planned(traffic), evidence.frames_seen(traffic), evidence.subscriber(traffic)
        )
        if isinstance(found, Missing):
            return could_not_look(COUNTED, found, host)
        planned, frames, subscriber = found
        where.append(evidence.name_of(evidence.folder.host(host).subscriber(traffic.id).frames))
        # A reliable stream's late PAD was asked for again, and is the publisher's own.
        lost = None if traffic.reliable else lost_on_the_way(evidence, traffic)
        if isinstance(lost, Missing):
            return could_not_look(COUNTED, lost, host)
        sure, possible = fills_seen(frames, planned, lost)
        least, most = least + sure, most + possible
        is_whole &= subscriber.end_position == planned.log.end_position
    name = counter_key.SYSTEM_NAMES[counter_key.LOSS_GAP_FILLS]
    facts = {"counted": value, "seen": least}
    seen = str(least)
    if most > least:
        facts["may_be_seen"], seen = most, f"{least} to {most}"
    # What nobody read to its end may hold more.
    if value < least or (is_whole and value > most):
        text = f"counter {counter_key.LOSS_GAP_FILLS} '{name}' says {value}, readers found {seen}"
        return failed(COUNTED, text, host, evidence=tuple(where), facts=facts)
    text = f"{seen} filled gaps in the logs, as counted"
    return passed(COUNTED, text, host, evidence=tuple(where), facts=facts)


def gap_fills_cover_nothing(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Beneath a filled gap lies nothing of the frame for which it was filled."""
    wire = evidence.wire(traffic)
    if isinstance(wire, Missing):
        return could_not_look(EMPTY, wire, traffic.id)
    found = together(
        evidence.planned(traffic),
        evidence.frames_seen(traffic),
        evidence.log_of(traffic.to_host, IMAGES, wire.facts.session_id, wire.facts.stream_id),
    )
    if isinstance(found, Missing):
        return could_not_look(EMPTY, found, traffic.id)
    planned, frames, kept = found
    where = (evidence.name_of(kept.path),)
    starts, spans = filled_gaps(frames, planned)
    # What lies further back may have been wiped, and written anew.
    recent = starts >= planned.log.end_position - kept.log.term_length
    index, matched = frame_index(planned.log, starts)
    looked = np.flatnonzero(recent & matched)
    lengths = aligned_lengths(planned.log.frames["frame_length"])
    for fill in looked.tolist():
        position = int(starts[fill])
        length = min(int(spans[fill]), int(lengths[index[fill]]))
        first = _first_byte(kept, position, length)
        if first >= 0:
            text = (
                f"the gap at position {position} was filled though its frame had come: "
                f"byte {first} of it lies beneath the padding"
            )
            return failed(EMPTY, text, traffic.id, evidence=where, position=position)
    text = f"{len(looked)} filled gaps in the last term's length, nothing beneath them"
    return passed(EMPTY, text, traffic.id, evidence=where, facts={"filled_gaps": len(looked)})


def _first_byte(kept: KeptLog, position: int, length: int) -> int:
    """The first byte behind a header that is not zero, or -1."""
    term_length = kept.log.term_length
    at = position // term_length % TERM_COUNT * term_length + position % term_length
    written = np.flatnonzero(kept.buf[at + DATA_HEADER_LENGTH : at + length])
    return DATA_HEADER_LENGTH + int(written[0]) if len(written) else -1
