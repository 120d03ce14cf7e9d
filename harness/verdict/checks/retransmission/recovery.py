"""How lost frames were asked for and sent again, by the captures and by the counters."""

from dataclasses import replace

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import aligned_lengths
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, Frames
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.compare import first_differing_pair
from windtunnel.harness.verdict.core.evidence import Counted, Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.losses import losses_of

NO_NAKS = "no_naks"
AGREE = "naks_and_retransmits_agree"
IDENTICAL = "retransmits_identical"

LAST_MOMENTS_NS = 200_000_000
"""A sender looks at its control sockets at least every 100 ms, and sends a heartbeat as often; what
had come twice that time before its stream's last packet has surely been taken."""


def no_naks(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Nobody asked for a frame of this stream again, on the wire or by the counters."""
    wire = evidence.wire(traffic)
    if isinstance(wire, Missing):
        return could_not_look(NO_NAKS, wire, traffic.id)
    sides = ((wire.answering, traffic.to_host), (wire.answered, traffic.from_host))
    for frames, host in sides:
        naks = wire.naks(frames)
        if len(naks):
            where = (evidence.name_of(evidence.folder.capture(host)),)
            position = int(wire.nak_positions(naks)[0])
            text = (
                f"{len(naks)} NAKs in the capture at {host}, the first asks for "
                f"{int(naks['nak_length'][0])} bytes at position {position}"
            )
            return failed(
                NO_NAKS, text, traffic.id, evidence=where, position=position, conclusive=True
            )
    wanted = (
        (traffic.to_host, counter_key.RECEIVER_NAKS_SENT),
        (traffic.from_host, counter_key.SENDER_NAKS_RECEIVED),
    )
    others = len(wire.naks(wire.answered_by_all)) - len(wire.naks(wire.answered))
    for host, type_id in wanted:
        value = stream_total(evidence, host, type_id, wire)
        if isinstance(value, Missing):
            return could_not_look(NO_NAKS, value, traffic.id)
        if value > (others if host == traffic.from_host else 0):
            where = (evidence.name_of(evidence.folder.host(host).counters),)
            name = counter_key.STREAM_NAMES[type_id]
            shown = f"the captures show only {others} NAKs, of other readers"
            shown = shown if others else "no NAK is in any capture"
            text = f"{name} at {host} is {value}, though {shown}"
            return failed(NO_NAKS, text, traffic.id, evidence=where)
    text = "no NAK in any capture, none in the counters"
    if others:
        text = (
            f"no NAK of this reader in any capture, {others} of others; none else in the counters"
        )
    return passed(NO_NAKS, text, traffic.id)


def naks_and_retransmits_agree(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """NAKs and re-sent bytes are the same on the wire and in the counters, per stream and host."""
    case = evidence.case
    assert not isinstance(case, Missing)
    joined = [each for each in case.traffic if len(each.publishers) > 1]
    if joined:
        text = "its NAKs go to all publishers at once, and are not told apart"
        return [Finding(AGREE, Outcome.INCONCLUSIVE, text, each.id) for each in joined]
    findings = [replace(_stream_agrees(evidence, flow), about=flow.role) for flow in traffics]
    if any(finding.outcome != "PASS" for finding in findings):
        return findings
    flows = [flow for each in case.traffic for flow in each.flows]
    for host in case.hosts:
        findings += _host_agrees(evidence, host.name, flows)
    return findings


def _stream_agrees(evidence: Evidence, traffic: TrafficCase) -> Finding:
    found = together(
        evidence.wire(traffic), evidence.planned(traffic), evidence.case, evidence.decisions
    )
    if isinstance(found, Missing):
        return could_not_look(AGREE, found, traffic.id)
    wire, planned, case, decisions = found
    left, reached = len(wire.naks(wire.answering)), len(wire.naks(wire.answered_by_all))
    heard = _surely_heard(wire, wire.answered_by_all)
    wanted = (
        (traffic.to_host, counter_key.RECEIVER_NAKS_SENT, left, left, "left"),
        (traffic.from_host, counter_key.SENDER_NAKS_RECEIVED, heard, reached, "reached"),
    )
    for host, type_id, least, seen, verb in wanted:
        value = stream_total(evidence, host, type_id, wire)
        if isinstance(value, Missing):
            return could_not_look(AGREE, value, traffic.id)
        spared = spilled(evidence, host) if verb == "reached" else 0
        if not least - spared <= value <= seen:
            name = counter_key.STREAM_NAMES[type_id]
            text = f"{seen} NAKs {verb} {host} in its capture, but {name} says {value}"
            if least < seen:
                text += f"; {least} came while the stream surely was there"
            if spared:
                text += f", and its sockets dropped only {spared} datagrams"
            kind = _kind_of_lie(value, seen, is_received=verb == "reached")
            return failed(AGREE, text, traffic.id, evidence=_where(evidence, host), kind=kind)
    resent = resent_bytes(wire)
    dropped = losses_of(decisions, case, traffic, planned.log).dropped_count
    facts = {"naks_sent": left, "naks_received": reached, "resent_bytes": resent}
    if dropped and not (left and resent):
        text = f"{dropped} frames were dropped, but {left} NAKs and {resent} bytes re-sent"
        where = _where(evidence, traffic.to_host)
        return failed(AGREE, text, traffic.id, evidence=where, facts=facts)
    text = f"{left} NAKs sent, {reached} received, {resent} bytes re-sent; counters agree"
    return passed(AGREE, text, traffic.id, facts=facts)


def _host_agrees(evidence: Evidence, host: str, traffics: list[TrafficCase]) -> list[Finding]:
    """The host's system counters against the sum over all streams that end or begin there."""
    sums = {
        counter_key.NAKS_SENT_TOTAL: 0,
        counter_key.NAKS_RECEIVED_TOTAL: 0,
        counter_key.RETRANSMITTED_BYTES: 0,
    }
    heard = 0
    resent: dict[str, int] = {}
    for traffic in traffics:
        wire = evidence.wire(traffic)
        if isinstance(wire, Missing):
            return [could_not_look(AGREE, wire, host)]
        if traffic.to_host == host:
            sums[counter_key.NAKS_SENT_TOTAL] += len(wire.naks(wire.answering))
        if traffic.from_host == host:
            sums[counter_key.NAKS_RECEIVED_TOTAL] += len(wire.naks(wire.answered))
            heard += _surely_heard(wire, wire.answered)
            # What is sent again goes to every destination, and is counted once.
            resent[traffic.id] = max(resent.get(traffic.id, 0), resent_bytes(wire))
    sums[counter_key.RETRANSMITTED_BYTES] = sum(resent.values())
    where = _where(evidence, host)
    for counter_id, seen in sums.items():
        value = system_value(evidence, host, counter_id)
        if isinstance(value, Missing):
            return [could_not_look(AGREE, value, host)]
        is_received = counter_id == counter_key.NAKS_RECEIVED_TOTAL
        least = heard - spilled(evidence, host) if is_received else seen
        if not least <= value <= seen:
            name = counter_key.SYSTEM_NAMES[counter_id]
            text = f"counter {counter_id} '{name}' says {value}, the captures show {seen}"
            kind = _kind_of_lie(value, seen, is_received=is_received)
            return [failed(AGREE, text, host, evidence=where, kind=kind)]
    text = ", ".join(f"{counter_key.SYSTEM_NAMES[each]} {sums[each]}" for each in sums)
    return [passed(AGREE, f"{text}: captures and counters agree", host, evidence=where)]


def _kind_of_lie(value: int, seen: int, *, is_received: bool) -> Kind:
    """Slowness explains what came and was not counted, and nothing else that a counter says."""
    return Kind.STATE if is_received and value < seen else Kind.PROTOCOL


def retransmits_identical(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Bytes sent again for a position are the bytes first sent for it."""
    wire = evidence.wire(traffic)
    if isinstance(wire, Missing):
        return could_not_look(IDENTICAL, wire, traffic.id)
    frames, starts = wire.sent.frames, wire.sent.starts
    again = np.flatnonzero(wire.resent())
    positions, firsts = np.unique(starts, return_index=True)
    first = firsts[np.searchsorted(positions, starts[again])]
    on_wire = np.where(
        frames["frame_type"] == PAD, DATA_HEADER_LENGTH, aligned_lengths(frames["frame_length"])
    )
    lengths = np.minimum(on_wire[first], on_wire[again])
    at = frames["at"].astype(np.int64)
    pair, byte = first_differing_pair(wire.sender_buf, at[first], at[again], lengths)
    sized = np.flatnonzero(on_wire[first] != on_wire[again])
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    if pair < 0 and len(sized):
        pair, byte = int(sized[0]), int(lengths[sized[0]])
    if pair >= 0:
        position = int(starts[again[pair]])
        text = f"the frame at position {position} was sent again with another byte {int(byte)}"
        return failed(
            IDENTICAL, text, traffic.id, evidence=where, position=position, conclusive=True
        )
    text = f"{len(again)} of {len(frames)} frames were sent again, each the same"
    return passed(IDENTICAL, text, traffic.id, evidence=where)


def heard_until_ns(wire: Wire) -> int:
    """Up to when all that had reached a stream's sender was surely taken.

    What comes later may find that the publication is gone, and is then no longer its affair.
    """
    sent = (wire.sent.frames, wire.beats_sent)
    last_ns = max((int(part["time_ns"].max()) for part in sent if len(part)), default=0)
    return last_ns - LAST_MOMENTS_NS


def _surely_heard(wire: Wire, frames: Frames) -> int:
    """How many NAKs among frames that reached the sender it has surely taken."""
    return int((wire.naks(frames)["time_ns"] <= heard_until_ns(wire)).sum())


def spilled(evidence: Evidence, host: str) -> int:
    """Datagrams that reached a host and fell off a full socket, so that its driver never saw them.

    The capture is taken before the socket; a starved machine makes this more than 0.
    """
    snmp = evidence.snmp(host)
    return 0 if isinstance(snmp, Missing) else snmp.grown("RcvbufErrors") or 0


def resent_bytes(wire: Wire) -> int:
    """Positional bytes sent again, a PAD with its full span, as the driver counts them."""
    spans = wire.sent.ends - wire.sent.starts
    return int(spans[wire.resent()].sum())


def stream_total(evidence: Evidence, host: str, type_id: int, wire: Wire) -> int | Missing:
    """The final value of a stream's counter, summed if it was made more than once."""
    counted = evidence.counted(host)
    if isinstance(counted, Missing):
        return counted
    facts = wire.facts
    found = counter_key.of_stream(counted.counters, type_id, facts.session_id, facts.stream_id)
    if not found:
        name = counter_key.STREAM_NAMES[type_id]
        why = f"has no {name} of session {facts.session_id}, stream {facts.stream_id}"
        return Missing(evidence.name_of(evidence.folder.host(host).counters), why)
    return sum(counter.final_value for counter in found)


def system_value(evidence: Evidence, host: str, counter_id: int) -> int | Missing:
    """The final value of one of the driver's own counters."""
    counted: Counted | Missing = evidence.counted(host)
    if isinstance(counted, Missing):
        return counted
    counter = counter_key.system_counter(counted.counters, counter_id)
    if counter is None:
        name = counter_key.SYSTEM_NAMES[counter_id]
        path = evidence.name_of(evidence.folder.host(host).counters)
        return Missing(path, f"has no system counter {counter_id} '{name}'")
    return counter.final_value


def _where(evidence: Evidence, host: str) -> tuple[str, ...]:
    folder = evidence.folder
    return evidence.name_of(folder.capture(host)), evidence.name_of(folder.host(host).counters)
