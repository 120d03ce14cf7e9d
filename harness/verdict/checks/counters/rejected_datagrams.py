"""Checks that a receiver counts each datagram that it must reject, in the correct category.

    invalid     not a valid frame, given its bytes and its stream's term length
    over-run    ends more than half a term beyond the last acknowledged position
    under-run   begins before the last acknowledged position

A driver classifies a datagram when it reads its socket, some time after the capture saw it, and may
have acknowledged more in between. So each count has a lower and an upper bound. A socket examines
only frames that are meant for it: that of a publication ignores DATA, and that of a subscription
NAKs. A driver that was restarted has counted only what arrived since then.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import (
    DATA,
    HEARTBEAT,
    MALFORMED,
    NAK,
    OTHER,
    PAD,
    SETUP,
    SM,
)
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import aligned_lengths, positions
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, FRAME_ALIGNMENT, Frames
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import TOLERANCE_NS
from windtunnel.harness.verdict.checks.retransmission.recovery import (
    SHUTDOWN_NS,
    socket_drops,
    system_value,
)
from windtunnel.harness.verdict.core.archive_wires import (
    archive_wires,
    capture_of_archives,
    replays_to_itself,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    finding_of,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.wire import Wire, status_messages, unsound
from windtunnel.harness.verdict.views.pauses import counted_since_ns
from windtunnel.harness.verdict.views.series import known_at
from windtunnel.harness.verdict.views.sessions import sessions_sent

OVER_UNDER_RUNS = "over_under_runs_counted"
INVALID = "invalid_packets_counted"
_POSITION_FRAMES = (DATA, PAD, HEARTBEAT)
_OF_SENDER = (*_POSITION_FRAMES, SETUP)
_OF_RECEIVER = (NAK, SM)
_TERM_LENGTH_MIN, _TERM_LENGTH_MAX, _MTU_MAX = 1 << 16, 1 << 30, 65_504


@dataclass(frozen=True)
class _Datagrams:
    """The datagrams that reached a host, with the first frame of each."""

    heads: Frames
    starts: NDArray[np.int64]
    "Index of the first frame of each datagram."
    spans: NDArray[np.int64]
    "Number of stream bytes that each datagram's frames occupy."
    is_invalid: NDArray[np.bool_]
    is_odd: NDArray[np.bool_]
    "Whether a frame is shorter than its header. Not all drivers reject such a frame."


def _datagrams(frames: Frames, term_lengths: dict[tuple[int, int], int]) -> _Datagrams:
    """Classify the datagrams of one capture, given the term length of each known stream."""
    starts = np.flatnonzero(np.diff(frames["datagram"], prepend=-1))
    heads = frames[starts]
    if len(heads) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return _Datagrams(heads, nothing, nothing, nothing > 0, nothing > 0)
    kinds = frames["frame_type"]
    carrying = np.isin(kinds, (DATA, PAD))
    lengths = np.where(carrying, aligned_lengths(frames["frame_length"]), 0)
    spans = np.add.reduceat(lengths, starts)
    # The frames of a datagram are contiguous.
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
    """Return a mask of invalid SETUPs, and of frames whose position is invalid for the term length.

    A term length of 0 means that it is unknown. Then no position is invalid.
    """
    kinds = heads["frame_type"]
    offsets = heads["term_offset"].astype(np.int64)
    outside = (offsets < 0) | (offsets >= terms) | (offsets % FRAME_ALIGNMENT != 0)
    outside = np.isin(kinds, _POSITION_FRAMES) & (outside | (offsets + spans > terms))
    outside |= unsound(heads, terms)
    length, mtu = heads["term_length"].astype(np.int64), heads["mtu"].astype(np.int64)
    unfit = (length < _TERM_LENGTH_MIN) | (length > _TERM_LENGTH_MAX) | (length & (length - 1) != 0)
    unfit |= (offsets < 0) | (offsets >= length) | (offsets % FRAME_ALIGNMENT != 0)
    unfit |= (mtu < FRAME_ALIGNMENT) | (mtu > _MTU_MAX) | (mtu % FRAME_ALIGNMENT != 0)
    found: NDArray[np.bool_] = ((terms > 0) & outside) | ((kinds == SETUP) & unfit)
    return found


def invalid_packets_counted(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """Each driver counts all invalid datagrams as invalid, and no other datagrams."""
    hosts = sorted({host for each in traffics for host in (each.from_host, each.to_host)})
    return [finding_of(INVALID, host, _invalid_at, evidence, host) for host in hosts]


def _invalid_at(evidence: Evidence, host: str) -> Finding:
    case = present(evidence.case)
    value = system_value(evidence, host, counter_key.INVALID_PACKETS)
    wires = _wires(evidence, case, host)
    lengths = {
        (wire.facts.session_id, wire.facts.stream_id): wire.facts.term_length
        for _, wire in (*wires, *archive_wires(evidence))
    }
    capture = present(evidence.capture(host))
    sent, arrived = _counted(evidence, case, host, capture.frames)
    found = _datagrams(arrived, lengths)
    is_invalid = found.is_invalid & ~_is_unread(sent, found.heads)
    certain = np.zeros(len(found.heads), dtype=np.bool_)
    for traffic, wire in wires:
        certain |= _while_known(evidence, traffic, wire, found.heads, host)
    # Of an archive's own streams, it is not known when the driver knew them.
    apart = np.unique(capture_of_archives(evidence, host).frames["datagram"])
    certain &= ~np.isin(found.heads["datagram"], apart)
    most = int(is_invalid.sum())
    # A driver may not inspect datagrams that arrive before the stream is known, or after its end.
    refused = is_invalid & certain & ~found.is_odd
    least = max(0, int(refused.sum()) - socket_drops(evidence, host))
    where = (
        evidence.name_of(evidence.folder.host(host).counters),
        evidence.name_of(evidence.folder.capture(host)),
    )
    facts = {"counted": value, "least": least, "most": most}
    if not least <= value <= most:
        text = (
            f"counter {counter_key.INVALID_PACKETS} 'Invalid packets' is {value}, "
            f"expected {least} to {most} according to the capture"
        )
        return failed(INVALID, text, host, evidence=where, facts=facts)
    text = f"{value} invalid packets, expected {least} to {most} according to the capture"
    return passed(INVALID, text, host, evidence=where, facts=facts)


def _counted(evidence: Evidence, case: Case, host: str, frames: Frames) -> tuple[Frames, Frames]:
    """Return those of the frames captured at a host that it sent, and those that arrived there,
    since its driver started to count.
    """
    frames = frames[frames["time_ns"] >= counted_since_ns(evidence, host)]
    own = sent_by(frames, case.address(host))
    return frames[own], frames[~own]


def _is_unread(sent: Frames, heads: Frames) -> NDArray[np.bool_]:
    """Return a mask of the datagrams that arrived at a socket that ignores their frames, given the
    frames that the host's sockets have sent.
    """
    kinds, ports = sent["frame_type"], sent["source_port"]
    publishing = np.unique(ports[np.isin(kinds, _OF_SENDER)])
    reading = np.unique(ports[np.isin(kinds, _OF_RECEIVER)])
    at = heads["destination_port"]
    unread = np.isin(heads["frame_type"], _OF_SENDER)
    unread &= np.isin(at, np.setdiff1d(publishing, reading))
    other = np.isin(heads["frame_type"], _OF_RECEIVER)
    found: NDArray[np.bool_] = unread | other & np.isin(at, np.setdiff1d(reading, publishing))
    return found


def _wires(evidence: Evidence, case: Case, host: str) -> list[tuple[TrafficCase, Wire]]:
    """Return each stream that a host sends or receives, as captured. A stream occurs once for each
    pair of sending and receiving hosts, and for each of its sessions.
    """
    flows = (flow for each in case.traffic for flow in each.flows)
    own = (flow for flow in flows if host in (flow.from_host, flow.to_host))
    sessions = (each for flow in own for each in sessions_sent(evidence, flow))
    return [(each, present(evidence.wire(each))) for each in sessions]


def _while_known(
    evidence: Evidence, traffic: TrafficCase, wire: Wire, heads: Frames, host: str
) -> NDArray[np.bool_]:
    """Return a mask of the datagrams that arrived while the stream existed in the host's driver.

    The stream certainly exists from the first status message to the end of stream. A malformed
    frame counts for the streams of its port, because its ids are unreliable.
    """
    since_ns = counted_since_ns(evidence, host)
    sent = np.concatenate([wire.sent.frames, wire.heartbeats_sent])
    if host == traffic.from_host:
        acknowledged_ns = status_messages(wire.feedback_arrived)["time_ns"]
        until_ns = int(wire.sent.frames["time_ns"].max(initial=0))
        ports = np.append(np.unique(sent["source_port"]), traffic.all_ports)
    else:
        acknowledged_ns = status_messages(wire.feedback_sent)["time_ns"]
        until_ns = _end_ns(evidence, traffic, wire)
        ports = np.unique(sent["destination_port"])
    acknowledged_ns = acknowledged_ns[acknowledged_ns >= since_ns]
    if len(acknowledged_ns) == 0:
        return np.zeros(len(heads), dtype=np.bool_)
    is_malformed = heads["frame_type"] == MALFORMED
    of_session = heads["stream_id"] == traffic.stream_id
    of_session &= heads["session_id"] == wire.facts.session_id
    ours = np.where(is_malformed, np.isin(heads["destination_port"], ports), of_session)
    known: NDArray[np.bool_] = ours & (heads["time_ns"] > int(acknowledged_ns.min()))
    known &= heads["time_ns"] < until_ns
    if host == traffic.to_host:
        known &= _is_read(evidence, traffic, heads)
    return known


def _is_read(evidence: Evidence, traffic: TrafficCase, heads: Frames) -> NDArray[np.bool_]:
    """Return a mask of the datagrams that arrived while a subscriber that rejoins had an image, or
    of all if it does not rejoin.
    """
    subscriber = evidence.subscriber(traffic)
    parts = [] if isinstance(subscriber, Missing) else subscriber.parts
    found = np.full(len(heads), not parts)
    for each in parts:
        until_ns = each.left_ns - SHUTDOWN_NS
        found |= (heads["time_ns"] > each.joined_ns) & (heads["time_ns"] < until_ns)
    return found


def _end_ns(evidence: Evidence, traffic: TrafficCase, wire: Wire) -> int:
    """Return the time until which an image certainly existed."""
    subscriber = evidence.subscriber(traffic)
    last = 0 if isinstance(subscriber, Missing) else subscriber.ended_ns
    return wire.first_end_ns(wire.heartbeats_arrived, last)


def over_under_runs_counted(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """A driver counts frames beyond the window as over-runs, and already acknowledged frames as
    under-runs. The archive's streams count, too. What it replays to its own host is not captured,
    so there is no upper limit then.
    """
    return [
        finding_of(OVER_UNDER_RUNS, host, _over_under_runs_at, evidence, host)
        for host in sorted({each.to_host for each in traffics})
    ]


def _over_under_runs_at(evidence: Evidence, host: str) -> Finding:
    case = present(evidence.case)
    bounds = np.zeros((2, 2), dtype=np.int64)
    for wires, capture in (
        (_wires(evidence, case, host), present(evidence.capture_of_streams(host))),
        (archive_wires(evidence), capture_of_archives(evidence, host)),
    ):
        _, arrived = _counted(evidence, case, host, capture.frames)
        for traffic, wire in wires:
            # Several publishers of a stream share one image.
            if traffic.to_host == host and traffic.from_host == traffic.publishers[0]:
                bounds += _bounds(evidence, traffic, wire, arrived)
    is_open = replays_to_itself(case, host)
    where = (
        evidence.name_of(evidence.folder.host(host).counters),
        evidence.name_of(evidence.folder.capture(host)),
    )
    dropped = socket_drops(evidence, host)
    facts, texts = {}, []
    for counter_id, (least, most) in zip(
        (counter_key.OVER_RUNS, counter_key.UNDER_RUNS), bounds.tolist(), strict=True
    ):
        value = system_value(evidence, host, counter_id)
        name = counter_key.SYSTEM_NAMES[counter_id]
        facts[name] = value
        texts.append(f"{value} {name}, expected {least} to {most} according to the capture")
        if not least - dropped <= value <= (value if is_open else most):
            text = f"counter {counter_id} '{name}' is {value}, "
            text += f"expected {least} to {most} according to the capture"
            # A slow driver acknowledges more before it reads its socket, so it counts fewer
            # over-runs and more under-runs.
            slow = value > most if counter_id == counter_key.UNDER_RUNS else value < least
            kind = Kind.STATE if slow else Kind.PROTOCOL
            return failed(OVER_UNDER_RUNS, text, host, evidence=where, facts=facts, kind=kind)
    return passed(OVER_UNDER_RUNS, "; ".join(texts), host, evidence=where, facts=facts)


def _bounds(
    evidence: Evidence, traffic: TrafficCase, wire: Wire, arrived: Frames
) -> NDArray[np.int64]:
    """Return the valid [minimum, maximum] of a stream's over-run count and under-run count."""
    facts = wire.facts
    ours = arrived[np.isin(arrived["frame_type"], _POSITION_FRAMES)]
    ours = ours[(ours["session_id"] == facts.session_id) & (ours["stream_id"] == facts.stream_id)]
    found = _datagrams(ours, {(facts.session_id, facts.stream_id): facts.term_length})
    begins = positions(found.heads, facts.initial_term_id, facts.term_length)
    ends = begins + found.spans
    times_ns = found.heads["time_ns"].astype(np.int64)
    messages = status_messages(wire.feedback_sent)
    messages = messages[messages["time_ns"] >= counted_since_ns(evidence, traffic.to_host)]
    at = np.maximum.accumulate(positions(messages, facts.initial_term_id, facts.term_length))
    acknowledged_ns = messages["time_ns"].astype(np.int64)
    join = evidence.join_position(traffic)
    # On virtual time, a datagram and a status message can have the same timestamp, in either order.
    early = known_at(acknowledged_ns, at, times_ns - 1, join)
    late = known_at(acknowledged_ns, at, times_ns + TOLERANCE_NS, join)
    half = facts.term_length // 2
    sound = ~found.is_invalid & (begins >= 0)
    certain = sound & (times_ns < _end_ns(evidence, traffic, wire))
    certain &= times_ns > int(acknowledged_ns.min(initial=np.iinfo(np.int64).max))
    # A heartbeat is an under-run only if it is more than a term behind.
    behind = np.where(found.heads["frame_type"] == HEARTBEAT, facts.term_length, 0)
    if traffic.merges is not None:
        # The frames, and the status messages, are those of two images.
        certain[:] = False
    over = certain & (ends > late + half), sound & (ends > early + half)
    inside = ends <= early + half
    under = certain & inside & (begins < early - behind), sound & (begins < late - behind)
    return np.array([[each.sum() for each in over], [each.sum() for each in under]])
