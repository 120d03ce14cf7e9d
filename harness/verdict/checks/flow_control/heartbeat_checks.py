"""Check that a sender that cannot send data, or has none to send, sends its position in heartbeats.

    DATA DATA |<- 100 ms ->| heartbeat |<- 100 ms ->| heartbeat ... DATA
            ^ each heartbeat carries the end position of the data sent

Without heartbeats a receiver could not detect the loss of the last frame, and would time out the
image of an idle sender.
"""

import numpy as np

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import FrameSequence, Wire
from windtunnel.harness.verdict.views.pauses import pauses_of
from windtunnel.harness.verdict.views.sent_data import sent_to_any

SILENCE = "heartbeats_in_silence"

INTERVAL_NS = 100_000_000
"""Time without data after which a heartbeat is sent, and time between heartbeats."""
TOLERANCE_NS = 100_000_000
"""Tolerance for late heartbeats. Aeron's drivers count a longer duty cycle as exceeding their
threshold, so a healthy driver polls its publications again within this time."""


def heartbeats_in_silence(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """While no data is sent, a heartbeat with the last sent position is sent every 100 ms."""
    wire, publisher, planned, pauses = present(
        evidence.wire(traffic),
        evidence.publisher(traffic),
        evidence.planned(traffic),
        pauses_of(evidence, traffic.from_host),
    )
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    sent = sent_to_any(evidence, traffic, wire)
    misplaced = _misplaced(wire, sent, planned.log.start_position)
    if misplaced is not None:
        position, text = misplaced
        return failed(
            SILENCE, text, traffic.id, evidence=where, position=position, kind=Kind.PROTOCOL
        )
    first_sent = wire.sent.frames["time_ns"][~wire.retransmitted()].astype(np.int64)
    beats = wire.heartbeats_sent["time_ns"].astype(np.int64)
    marks = np.sort(np.concatenate([first_sent, beats]))
    ended_ns = _closed_ns(wire, publisher.ended_ns) if traffic.replays else publisher.ended_ns
    marks = marks[marks < ended_ns]
    if len(marks) == 0:
        gap = Missing(where[0], "has neither data nor heartbeats")
        return inconclusive(SILENCE, gap, traffic.id)
    ends = np.append(marks[1:], ended_ns)
    gaps = ends - marks - pauses.within_ns(marks, ends)
    late = np.flatnonzero(gaps > INTERVAL_NS + TOLERANCE_NS)
    if len(late):
        after_ms = int(marks[late[0]] - marks[0]) // 1_000_000
        text = (
            f"no data and no heartbeat for {int(gaps[late[0]]) // 1_000_000} ms, beginning "
            f"{after_ms} ms after the first frame; expected a heartbeat every "
            f"{INTERVAL_NS // 1_000_000} ms"
        )
        return failed(SILENCE, text, traffic.id, evidence=where)
    data = np.sort(np.append(first_sent[first_sent < ended_ns], ended_ns))
    silences = int((np.diff(data) > INTERVAL_NS).sum())
    if not silences:
        text = f"data never paused for {INTERVAL_NS // 1_000_000} ms, so no heartbeat was due"
        return Finding(SILENCE, Outcome.INCONCLUSIVE, text, traffic.id, where)
    text = f"{silences} {noun_for(silences, 'pause')} without data, {len(beats)} "
    text += f"{noun_for(len(beats), 'heartbeat')}, each with the last sent position"
    facts = {"silences": silences, "heartbeats": len(beats)}
    return passed(SILENCE, text, traffic.id, evidence=where, facts=facts)


def _closed_ns(wire: Wire, latest_ns: int) -> int:
    """Return a time until which the publication of a replay certainly existed. The archive closes
    it when everything is replayed, before the workload that requested the replay ends.
    """
    return wire.first_end_ns(wire.heartbeats_sent, latest_ns)


def _misplaced(wire: Wire, sent: FrameSequence, start_position: int) -> tuple[int, str] | None:
    """Return the first heartbeat whose position is not the end of the data sent before it, to any
    receiver.
    """
    facts = wire.facts
    heartbeat_positions = positions(wire.heartbeats_sent, facts.initial_term_id, facts.term_length)
    tops = np.concatenate([[start_position], np.maximum.accumulate(sent.ends)])
    before = np.searchsorted(
        sent.frames["time_ns"].astype(np.int64), wire.heartbeats_sent["time_ns"], side="right"
    )
    wrong = np.flatnonzero(heartbeat_positions != tops[before])
    if len(wrong) == 0:
        return None
    first = int(wrong[0])
    position = int(heartbeat_positions[first])
    return position, (
        f"a heartbeat has position {position}, expected {int(tops[before[first]])}, the end of "
        "the data sent"
    )
