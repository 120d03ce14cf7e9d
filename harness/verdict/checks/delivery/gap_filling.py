"""Checks of gap filling: each filled gap is counted, and none covers a frame that had arrived.

    counter 23      3
    read             | DATA | PAD | DATA | PAD | DATA | PAD |    3 PADs not sent by the publisher
    image's log      | DATA | PAD 0 0 0 0 | DATA ...             zeros after the PAD's header

A frame in the log prevents padding over it, and padding prevents a later frame from being inserted
at the same position. So no bytes of the frame that the padding replaces follow the padding's
header. Other frames that it covers may have arrived since.
"""

import numpy as np

from windtunnel.harness.artifact.host.log_index import IMAGES
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.log_buffer import TERM_COUNT
from windtunnel.harness.dissect.frames.flow import aligned_lengths
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.retransmission.recovery import system_value
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, finding_of, passed, present
from windtunnel.harness.verdict.core.saved_logs import SavedLog
from windtunnel.harness.verdict.views.coverage import fill_bounds, filled_gaps
from windtunnel.harness.verdict.views.losses import frame_index, link_losses

COUNTED = "gap_fills_counted"
EMPTY = "gap_fills_cover_nothing"


def gap_fills_counted(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """A driver's counter of filled gaps equals the number of filled gaps in its images' logs."""
    hosts = sorted({each.to_host for each in traffics})
    return [finding_of(COUNTED, host, _check_host, evidence, host) for host in hosts]


def _check_host(evidence: Evidence, host: str) -> Finding:
    case = present(evidence.case)
    value = system_value(evidence, host, counter_key.LOSS_GAP_FILLS)
    where = [evidence.name_of(evidence.folder.host(host).counters)]
    least, most, is_whole = 0, 0, True
    # Several publishers of a stream share one image at a subscriber.
    read = [each for each in case.traffic if host in each.subscribers]
    for traffic in (each.between(each.from_host, host) for each in read):
        planned, frames, subscriber = present(
            evidence.planned(traffic), evidence.frames_seen(traffic), evidence.subscriber(traffic)
        )
        where.append(evidence.name_of(evidence.folder.host(host).subscriber(traffic.id).frames))
        # A late PAD of a reliable stream was retransmitted, so it is the publisher's.
        lost = None if traffic.reliable else link_losses(evidence, traffic)
        sure, possible = fill_bounds(frames, planned, lost)
        least, most = least + sure, most + possible
        is_whole &= subscriber.end_position == planned.log.end_position
    name = counter_key.SYSTEM_NAMES[counter_key.LOSS_GAP_FILLS]
    facts = {"counted": value, "seen": least}
    seen = str(least)
    if most > least:
        facts["may_be_seen"], seen = most, f"{least} to {most}"
    # A log that was not read to its end may contain more filled gaps.
    if value < least or (is_whole and value > most):
        text = f"counter {counter_key.LOSS_GAP_FILLS} '{name}' is {value}, but subscribers saw "
        text += f"{seen} filled gaps"
        return failed(COUNTED, text, host, evidence=tuple(where), facts=facts)
    text = f"counter '{name}' is {value}, subscribers saw {seen} filled gaps"
    return passed(COUNTED, text, host, evidence=tuple(where), facts=facts)


def gap_fills_cover_nothing(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The padding in a filled gap contains no bytes of the frame that it replaces."""
    wire = present(evidence.wire(traffic))
    planned, frames, kept = present(
        evidence.planned(traffic),
        evidence.frames_seen(traffic),
        evidence.log_of(traffic.to_host, IMAGES, wire.facts.session_id, wire.facts.stream_id),
    )
    where = (evidence.name_of(kept.path),)
    starts, spans, _ = filled_gaps(frames, planned)
    # Older parts of the log may have been cleaned and overwritten.
    recent = starts >= planned.log.end_position - kept.log.term_length
    index, matched = frame_index(planned.log, starts)
    checked = np.flatnonzero(recent & matched)
    lengths = aligned_lengths(planned.log.frames["frame_length"])
    for fill in checked.tolist():
        position = int(starts[fill])
        length = min(int(spans[fill]), int(lengths[index[fill]]))
        first = _first_byte(kept, position, length)
        if first >= 0:
            text = (
                f"the gap at position {position} was filled although its frame had arrived: "
                f"byte {first} of the frame is in the log after the padding's header"
            )
            return failed(EMPTY, text, traffic.id, evidence=where, position=position)
    text = f"{len(checked)} filled gaps in the last term length, none with bytes of the frame that "
    text += "it replaces"
    return passed(EMPTY, text, traffic.id, evidence=where, facts={"filled_gaps": len(checked)})


def _first_byte(kept: SavedLog, position: int, length: int) -> int:
    """Return the offset of the first nonzero byte after a frame's header, or -1 if all are zero."""
    term_length = kept.log.term_length
    at = position // term_length % TERM_COUNT * term_length + position % term_length
    written = np.flatnonzero(kept.buf[at + DATA_HEADER_LENGTH : at + length])
    return DATA_HEADER_LENGTH + int(written[0]) if len(written) else -1
