"""Datagrams that a receiver must refuse, and whether it has counted each as what it is.

    invalid     what no frame can be, by its bytes and the length of its stream's term
    over-run    ends beyond what was acknowledged last, by more than half a term
    under-run   begins before what was acknowledged last

A driver judges when it takes a datagram from its socket, which is some time after the capture saw
it; meanwhile it may have acknowledged more. So there is a least and a most for each count.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import (
    DATA,
    HEARTBEAT,
    MALFORMED,
    OTHER,
    PAD,
    SETUP,
)
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import aligned_lengths, positions
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, FRAME_ALIGNMENT, Frames
from windtunnel.harness.dissect.frames.layout import FLAG_END_OF_STREAM
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import TOLERANCE_NS
from windtunnel.harness.verdict.checks.flow_control.window import status_messages
from windtunnel.harness.verdict.checks.retransmission.recovery import spilled, system_value
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, could_not_look, failed, passed
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.wire import Wire, unsound
from windtunnel.harness.verdict.views.series import known_at

RUNS = "over_under_runs_counted"
INVALID = "invalid_packets_counted"
_CARRYING = (DATA, PAD, HEARTBEAT)
_TERM_LENGTH_MIN, _TERM_LENGTH_MAX, _MTU_MAX = 1 << 16, 1 << 30, 65_504


@dataclass(frozen=True)
class _Datagrams:
    """The datagrams that reached a host, by their first frame."""

    heads: Frames
    starts: NDArray[np.int64]
    "Index of each one's first frame."
    spans: NDArray[np.int64]
    "How far its frames reach in the stream."
    is_invalid: NDArray[np.bool_]
    is_odd: NDArray[np.bool_]
    "A frame of it says that it is shorter than its header, which not all drivers mind."


def _datagrams(frames: Frames, term_lengths: dict[tuple[int, int], int]) -> _Datagrams:
    """Datagrams of one capture, each sound or not where its stream's term has that length."""
    starts = np.flatnonzero(np.diff(frames["datagram"], prepend=-1))
    heads = frames[starts]
    if len(heads) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return _Datagrams(heads, nothing, nothing, nothing > 0, nothing > 0)
    kinds = frames["frame_type"]
    carrying = np.isin(kinds, (DATA, PAD))
    lengths = np.where(carrying, aligned_lengths(frames["frame_length"]), 0)
    spans = np.add.reduceat(lengths, starts)
    # Of the frames of a datagram each begins where the one before it ends.
    own = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(frames))))
    before = np.cumsum(lengths) - lengths
    expected = heads["term_offset"].astype(np.int64)[own] + before - before[starts][own]
    broken = np.isin(kinds, (MALFORMED, OTHER)) | (carrying & (frames["term_offset"] != expected))
    invalid = np.bitwise_or.reduceat(broken, starts)
    terms = np.array(
        [
            term_lengths.get((int(each["session_id"]), int(each["stream_id"])), 0)
            for each in heads[["session_id", "stream_id"]]
        ],
        dtype=np.int64,
    )
    invalid |= _is_misplaced(heads, spans, terms)
    short = (frames["frame_length"] > 0) & (frames["frame_length"] < DATA_HEADER_LENGTH)
    short &= frames["datagram_length"] >= DATA_HEADER_LENGTH
    odd = np.bitwise_or.reduceat((kinds == MALFORMED) & short, starts)
    return _Datagrams(heads, starts, spans, invalid, odd)


def _is_misplaced(
    heads: Frames, spans: NDArray[np.int64], terms: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """What is no place in a term of that length; nothing where the length is 0."""
    kinds = heads["frame_type"]
    offsets = heads["term_offset"].astype(np.int64)
    outside = (offsets < 0) | (offsets >= terms) | (offsets % FRAME_ALIGNMENT != 0)
    outside = np.isin(kinds, _CARRYING) & (outside | (offsets + spans > terms))
    outside |= unsound(heads, terms)
    length, mtu = heads["term_length"].astype(np.int64), heads["mtu"].astype(np.int64)
    unfit = (length < _TERM_LENGTH_MIN) | (length > _TERM_LENGTH_MAX) | (length & (length - 1) != 0)
    unfit |= (offsets < 0) | (offsets >= length) | (offsets % FRAME_ALIGNMENT != 0)
    unfit |= (mtu < FRAME_ALIGNMENT) | (mtu > _MTU_MAX) | (mtu % FRAME_ALIGNMENT != 0)
    found: NDArray[np.bool_] = ((terms > 0) & outside) | ((kinds == SETUP) & unfit)
    return found


def invalid_packets_counted(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """Each driver counts as invalid just the datagrams that by their bytes are."""
    hosts = sorted({host for each in traffics for host in (each.from_host, each.to_host)})
    return [_invalid_at(evidence, host) for host in hosts]


def _invalid_at(evidence: Evidence, host: str) -> Finding:
    case, capture = evidence.case, evidence.capture(host)
    value = system_value(evidence, host, counter_key.INVALID_PACKETS)
    for part in (case, capture, value):
        if isinstance(part, Missing):
            return could_not_look(INVALID, part, host)
    assert not isinstance(case, Missing)
    assert not isinstance(capture, Missing)
    assert not isinstance(value, Missing)
    wires = _wires(evidence, case, host)
    if isinstance(wires, Missing):
        return could_not_look(INVALID, wires, host)
    lengths = {
        (wire.facts.session_id, wire.facts.stream_id): wire.facts.term_length for _, wire in wires
    }
    arrived = capture.frames[~sent_by(capture.frames, case.address(host))]
    found = _datagrams(arrived, lengths)
    surely = np.zeros(len(found.heads), dtype=np.bool_)
    for traffic, wire in wires:
        surely |= _while_known(evidence, traffic, wire, found.heads, host)
    most = int(found.is_invalid.sum())
    # What comes before its stream is known, or after its end, may not be looked into.
    refused = found.is_invalid & surely & ~found.is_odd
    least = max(0, int(refused.sum()) - spilled(evidence, host))
    where = (
        evidence.name_of(evidence.folder.host(host).counters),
        evidence.name_of(evidence.folder.capture(host)),
    )
    facts = {"counted": value, "least": least, "most": most}
    if not least <= value <= most:
        text = (
            f"counter {counter_key.INVALID_PACKETS} 'Invalid packets' is {value}, "
            f"{least} to {most} datagrams that came were invalid"
        )
        return failed(INVALID, text, host, evidence=where, facts=facts)
    text = f"{value} invalid packets, {least} to {most} in the capture"
    return passed(INVALID, text, host, evidence=where, facts=facts)


def _wires(evidence: Evidence, case: Case, host: str) -> list[tuple[TrafficCase, Wire]] | Missing:
    """The streams that end or begin at a host, once for each pair of their hosts."""
    wires = []
    for traffic in (flow for each in case.traffic for flow in each.flows):
        if host in (traffic.from_host, traffic.to_host):
            wire = evidence.wire(traffic)
            if isinstance(wire, Missing):
                return wire
            wires.append((traffic, wire))
    return wires


def _while_known(
    evidence: Evidence, traffic: TrafficCase, wire: Wire, heads: Frames, host: str
) -> NDArray[np.bool_]:
    """Which datagrams came to a host while it surely knew the stream: from its first answer on,
    until its end is told.

    A frame that is damaged may tell no stream; it belongs to each.
    """
    if host == traffic.from_host:
        told_ns, sent = status_messages(wire.answered)["time_ns"], wire.sent.frames["time_ns"]
        until_ns = int(sent.max(initial=0))
    else:
        told_ns = status_messages(wire.answering)["time_ns"]
        until_ns = _end_ns(evidence, traffic, wire)
    if len(told_ns) == 0:
        return np.zeros(len(heads), dtype=np.bool_)
    ours = (heads["stream_id"] == traffic.stream_id) | (heads["frame_type"] == MALFORMED)
    ours &= (heads["session_id"] == wire.facts.session_id) | (heads["frame_type"] == MALFORMED)
    known: NDArray[np.bool_] = ours & (heads["time_ns"] > int(told_ns.min()))
    return known & (heads["time_ns"] < until_ns)


def _end_ns(evidence: Evidence, traffic: TrafficCase, wire: Wire) -> int:
    """Up to when an image was surely there."""
    beats = wire.beats_arrived
    ends = beats["time_ns"][(beats["flags"] & FLAG_END_OF_STREAM) != 0]
    subscriber = evidence.subscriber(traffic)
    last = 0 if isinstance(subscriber, Missing) else subscriber.ended_ns
    return min(last, int(ends.min())) if len(ends) else last


def over_under_runs_counted(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """Frames beyond the window count as over-runs, acknowledged ones as under-runs."""
    return [_runs_at(evidence, host) for host in sorted({each.to_host for each in traffics})]


def _runs_at(evidence: Evidence, host: str) -> Finding:
    case, capture = evidence.case, evidence.capture(host)
    if isinstance(case, Missing):
        return could_not_look(RUNS, case, host)
    if isinstance(capture, Missing):
        return could_not_look(RUNS, capture, host)
    wires = _wires(evidence, case, host)
    if isinstance(wires, Missing):
        return could_not_look(RUNS, wires, host)
    arrived = capture.frames[~sent_by(capture.frames, case.address(host))]
    bounds = np.zeros((2, 2), dtype=np.int64)
    for traffic, wire in wires:
        # Several publishers of a stream make one image.
        if traffic.to_host == host and traffic.from_host == traffic.publishers[0]:
            bounds += _bounds(evidence, traffic, wire, arrived)
    where = (
        evidence.name_of(evidence.folder.host(host).counters),
        evidence.name_of(evidence.folder.capture(host)),
    )
    dropped = spilled(evidence, host)
    facts, texts = {}, []
    for counter_id, (least, most) in zip(
        (counter_key.OVER_RUNS, counter_key.UNDER_RUNS), bounds.tolist(), strict=True
    ):
        value = system_value(evidence, host, counter_id)
        if isinstance(value, Missing):
            return could_not_look(RUNS, value, host)
        name = counter_key.SYSTEM_NAMES[counter_id]
        facts[name] = value
        texts.append(f"{value} {name}, {least} to {most} by the capture")
        if not least - dropped <= value <= most:
            text = f"counter {counter_id} '{name}' is {value}, the capture shows {least} to {most}"
            # A driver that is slow looks when more was acknowledged, which makes other runs.
            slow = value > most if counter_id == counter_key.UNDER_RUNS else value < least
            kind = Kind.STATE if slow else Kind.PROTOCOL
            return failed(RUNS, text, host, evidence=where, facts=facts, kind=kind)
    return passed(RUNS, "; ".join(texts), host, evidence=where, facts=facts)


def _bounds(
    evidence: Evidence, traffic: TrafficCase, wire: Wire, arrived: Frames
) -> NDArray[np.int64]:
    """The least and the most of over-runs, then of under-runs, of one stream."""
    facts = wire.facts
    ours = arrived[np.isin(arrived["frame_type"], _CARRYING)]
    ours = ours[(ours["session_id"] == facts.session_id) & (ours["stream_id"] == facts.stream_id)]
    found = _datagrams(ours, {(facts.session_id, facts.stream_id): facts.term_length})
    begins = positions(found.heads, facts.initial_term_id, facts.term_length)
    ends = begins + found.spans
    times_ns = found.heads["time_ns"].astype(np.int64)
    told = status_messages(wire.answering)
    at = np.maximum.accumulate(positions(told, facts.initial_term_id, facts.term_length))
    told_ns = told["time_ns"].astype(np.int64)
    subscriber = evidence.subscriber(traffic)
    join = 0 if isinstance(subscriber, Missing) else subscriber.join_position
    # Of what comes in the same nanosecond either may have been first, as on virtual time.
    early = known_at(told_ns, at, times_ns - 1, join)
    late = known_at(told_ns, at, times_ns + TOLERANCE_NS, join)
    half = facts.term_length // 2
    sound = ~found.is_invalid & (begins >= 0)
    surely = sound & (times_ns < _end_ns(evidence, traffic, wire))
    surely &= times_ns > int(told_ns.min(initial=np.iinfo(np.int64).max))
    # A heartbeat may lie a term behind.
    behind = np.where(found.heads["frame_type"] == HEARTBEAT, facts.term_length, 0)
    over = surely & (ends > late + half), sound & (ends > early + half)
    inside = ends <= early + half
    under = surely & inside & (begins < early - behind), sound & (begins < late - behind)
    return np.array([[each.sum() for each in over], [each.sum() for each in under]])
