"""Check that all data of an observed session arrived, and is what was sent.

    captured at the publication's host    |####|####|####|####| EOS at the end
    captured at the subscription's host   |####|    |####|####| ... |####|    later, all of it

What the applications offered, and what they did with the data, is unknown to a capture.
"""

from typing import Any

import numpy as np

from windtunnel.harness.dissect.frames.flow import lengths_on_wire
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.compare import first_differing_pair
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import MAY_HAVE_LEFT, FrameSequence, Wire
from windtunnel.harness.verdict.views.series import contiguous_by

ARRIVED = "observed_data_arrived"
EOS = "observed_end_of_stream"
UNREAD = "no client there subscribed to the stream on its channel"


def observed_data_arrived(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """All data of a session arrived at the subscription's host, byte for byte as it was sent."""
    wire, planned, far = present(
        evidence.wire(traffic), evidence.planned(traffic), evidence.capture(traffic.to_host)
    )
    start = planned.log.start_position
    where = tuple(
        evidence.name_of(evidence.folder.capture(host))
        for host in (traffic.from_host, traffic.to_host)
    )
    arrived = wire.arrived_at(traffic.session_port)
    position = _first_difference(wire, arrived, far.buf)
    if position is not None:
        text = f"the frame at position {position} arrived with other bytes than were sent"
        return failed(ARRIVED, text, traffic.id, evidence=where, position=position, conclusive=True)
    end = int(wire.sent.ends.max(initial=start))
    if end == start and len(wire.feedback_sent) == 0:
        text = f"no data was sent, and {traffic.to_host} sent no status message: {UNREAD}"
        return passed(ARRIVED, text, traffic.id, evidence=where, facts={"bytes": 0})
    if not traffic.reliable:
        count = len(np.unique(arrived.starts))
        text = f"{count} of {len(np.unique(wire.sent.starts))} frames arrived, each as it was sent"
        return passed(ARRIVED, f"{text}; the stream is unreliable", traffic.id, evidence=where)
    whole = int(contiguous_by(wire, start)[1][-1:].max(initial=start))
    if whole >= end:
        text = f"all {end - start} bytes from position {start} to {end} arrived, as they were sent"
        return passed(ARRIVED, text, traffic.id, evidence=where, facts={"bytes": end - start})
    if wire.may_have_left_at(whole, closing_ns=0):
        text = f"all {whole - start} bytes from position {start} to {whole} arrived, as they were "
        facts = {"bytes": whole - start}
        return passed(
            ARRIVED, f"{text}sent{MAY_HAVE_LEFT}", traffic.id, evidence=where, facts=facts
        )
    text = f"the data from position {whole} on never arrived completely; {end} was the end of "
    is_requested = len(wire.naks(wire.feedback_sent)) > 0
    if has_ended(wire) and traffic.found and not is_requested:
        text += "the stream; no NAK was sent, so the stream may be unreliable: name it "
        text += "in `observe` with its channel"
        return Finding(ARRIVED, Outcome.INCONCLUSIVE, text, traffic.id, where, position=whole)
    if has_ended(wire):
        text += "the stream"
        return failed(ARRIVED, text, traffic.id, evidence=where, position=whole, kind=Kind.LIVENESS)
    text += "what was sent, but the publication was not closed, so the rest is unknown"
    return Finding(ARRIVED, Outcome.INCONCLUSIVE, text, traffic.id, where, position=whole)


def _first_difference(wire: Wire, arrived: FrameSequence, far: Any) -> int | None:
    """Return the position of the first frame that arrived with other bytes than were first sent."""
    sent = wire.sent
    known, firsts = np.unique(sent.starts, return_index=True)
    arrived = arrived.where(np.isin(arrived.starts, known))
    if len(arrived.starts) == 0:
        return None
    first = firsts[np.searchsorted(known, arrived.starts)]
    frames = arrived.frames
    sent_at = sent.frames["at"][first].astype(np.int64)
    arrived_at = frames["at"].astype(np.int64)
    pair, _ = first_differing_pair(
        wire.sender_buf, sent_at, far, arrived_at, lengths_on_wire(frames)
    )
    return None if pair < 0 else int(arrived.starts[pair])


def has_ended(wire: Wire) -> bool:
    """Return whether the publication has signalled the end of its stream."""
    return len(wire.end_of_stream_heartbeats(wire.heartbeats_sent)[0]) > 0


def observed_end_of_stream(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A closed publication has signalled the end of its stream at its last position."""
    wire = present(evidence.wire(traffic))
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    _, ends = wire.end_of_stream_heartbeats(wire.heartbeats_sent)
    top = int(wire.sent.ends.max(initial=0))
    if len(ends) == 0:
        text = "the publication has not signalled the end of its stream"
        return Finding(EOS, Outcome.INCONCLUSIVE, text, traffic.id, where)
    # A receiver that joined late has not seen an earlier position, so nothing was sent to it.
    wrong = ends[(ends != ends[0]) | ((ends < top) & (top > 0))]
    if len(wrong):
        position = int(wrong[0])
        text = f"an EOS heartbeat has position {position}, but data was sent up to {top}"
        if position >= top:
            text = f"EOS heartbeats have the positions {int(ends[0])} and {position}"
        return failed(EOS, text, traffic.id, evidence=where, position=position)
    text = f"{len(ends)} EOS heartbeats were sent at position {int(ends[0])}"
    return passed(EOS, text, traffic.id, evidence=where)
