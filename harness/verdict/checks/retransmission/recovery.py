"""Checks that the NAKs and retransmits in the captures agree with the drivers' counters."""

from dataclasses import replace

import numpy as np

from windtunnel.harness.artifact.middlebox.decision import DROP
from windtunnel.harness.artifact.middlebox.frame_class import POSITIONAL
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import lengths_on_wire
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.archive_wires import (
    NOT_CAPTURED,
    archive_wires,
    replays_to_itself,
)
from windtunnel.harness.verdict.core.compare import first_differing_pair
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import HostCounters
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    finding_of,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.losses import link_of
from windtunnel.harness.verdict.views.pauses import counted_since_ns
from windtunnel.harness.verdict.views.sessions import is_read_from_one_image, sessions_sent

NO_NAKS = "no_naks"
AGREE = "naks_and_retransmits_agree"
IDENTICAL = "retransmits_identical"

SHUTDOWN_NS = 200_000_000
"""A sender has certainly processed what arrived this long before its stream's last packet. It polls
its control sockets, and sends a heartbeat, at least every 100 ms."""


def no_naks(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """No NAK was sent for this stream, according to the captures and the counters."""
    wire = present(evidence.wire(traffic))
    sides = ((wire.feedback_sent, traffic.to_host), (wire.feedback_arrived, traffic.from_host))
    for frames, host in sides:
        naks = wire.naks(frames)
        if len(naks):
            where = (evidence.name_of(evidence.folder.capture(host)),)
            position = int(wire.nak_positions(naks)[0])
            text = (
                f"{len(naks)} NAKs in the capture at {host}, expected none; the first one is for "
                f"{int(naks['nak_length'][0])} bytes at position {position}"
            )
            return failed(
                NO_NAKS, text, traffic.id, evidence=where, position=position, conclusive=True
            )
    expected = (
        (traffic.to_host, counter_key.RECEIVER_NAKS_SENT),
        (traffic.from_host, counter_key.SENDER_NAKS_RECEIVED),
    )
    others = len(wire.naks(wire.feedback_arrived_from_all)) - len(wire.naks(wire.feedback_arrived))
    for host, type_id in expected:
        value = stream_total(evidence, host, type_id, wire)
        if value > (others if host == traffic.from_host else 0):
            where = (evidence.name_of(evidence.folder.host(host).counters),)
            name = counter_key.STREAM_NAMES[type_id]
            shown = f"the captures show only {others} NAKs, all from other subscribers"
            shown = shown if others else "no NAK is in any capture"
            text = f"{name} on {host} is {value}, but {shown}"
            return failed(NO_NAKS, text, traffic.id, evidence=where)
    text = "no NAKs in the captures or in the counters"
    if others:
        text = (
            f"no NAKs from this subscriber and {others} from others in the captures; "
            "the counters show no more"
        )
    return passed(NO_NAKS, text, traffic.id)


def naks_and_retransmits_agree(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """Captures and counters agree on the NAKs and retransmitted bytes of each stream and host."""
    case = present(evidence.case)
    joined = [each for each in case.traffic if len(each.publishers) > 1]
    if joined:
        text = "not applicable: NAKs go to all publishers of the stream"
        return [Finding(AGREE, Outcome.INCONCLUSIVE, text, each.id) for each in joined]
    findings = [
        replace(finding_of(AGREE, flow.id, _stream_agrees, evidence, flow), about=flow.role)
        for flow in traffics
    ]
    if any(finding.outcome != "PASS" for finding in findings):
        return findings
    flows = [flow for each in case.traffic for flow in each.flows]
    for host in (each.name for each in case.hosts):
        findings.append(finding_of(AGREE, host, _host_agrees, evidence, host, flows))
    return findings


def _stream_agrees(evidence: Evidence, traffic: TrafficCase) -> Finding:
    wire, case, decisions = present(evidence.wire(traffic), evidence.case, evidence.decisions)
    left, reached = (
        _naks_counted(evidence, traffic, wire),
        len(wire.naks(wire.feedback_arrived_from_all)),
    )
    processed = _certainly_processed(wire, wire.feedback_arrived_from_all)
    expected = (
        (traffic.to_host, counter_key.RECEIVER_NAKS_SENT, left, left, "left"),
        (traffic.from_host, counter_key.SENDER_NAKS_RECEIVED, processed, reached, "reached"),
    )
    for host, type_id, least, seen, verb in expected:
        value = stream_total(evidence, host, type_id, wire)
        drops = socket_drops(evidence, host) if verb == "reached" else 0
        # A subscriber that merges also sends NAKs over the loopback, which is not captured.
        is_open = traffic.merges is not None and verb == "left"
        if not least - drops <= value <= (value if is_open else seen):
            name = counter_key.STREAM_NAMES[type_id]
            text = f"{name} on {host} is {value}, but {seen} NAKs {verb} the host in the capture"
            if least < seen:
                text += f", {least} of them while the stream certainly existed"
            if drops:
                text += f"; the host's sockets dropped only {drops} datagrams"
            kind = _kind_of_mismatch(value, seen, is_received=verb == "reached")
            return failed(AGREE, text, traffic.id, evidence=_where(evidence, host), kind=kind)
    resent = resent_bytes(wire)
    dropped = _gap_count(evidence, case, traffic, decisions)
    facts = {"naks_sent": left, "naks_received": reached, "resent_bytes": resent}
    # Another member of a group may have requested what this one lacks.
    if dropped and not (resent and (left or len(traffic.subscribers) > 1)):
        text = f"{dropped} frames were dropped, but {left} NAKs were sent and {resent} bytes were "
        text += "retransmitted"
        where = _where(evidence, traffic.to_host)
        return failed(AGREE, text, traffic.id, evidence=where, facts=facts)
    text = f"{left} NAKs sent, {reached} received, {resent} bytes retransmitted; the counters agree"
    return passed(AGREE, text, traffic.id, facts=facts)


def _gap_count(evidence: Evidence, case: Case, traffic: TrafficCase, decisions: Records) -> int:
    """Return how many dropped frames certainly left a gap in a reliable stream's only image."""
    if not (traffic.reliable and is_read_from_one_image(evidence, traffic)):
        return 0
    found = decisions[decisions["action"] == DROP]
    found = found[found["link"] == link_of(case, traffic)]
    found = found[found["stream_id"] == traffic.stream_id]
    found = found[np.isin(found["frame_type"], POSITIONAL)]
    # A retransmit may be for another member of a group, and what was sent earlier is not missed.
    first = (found["attempt"] == 1) & (found["position"] >= evidence.join_position(traffic))
    return int(first.sum())


def _naks_counted(evidence: Evidence, traffic: TrafficCase, wire: Wire) -> int:
    """Return the number of NAKs sent that the receiver's driver has counted."""
    times_ns = wire.naks(wire.feedback_sent)["time_ns"]
    return int((times_ns >= counted_since_ns(evidence, traffic.to_host)).sum())


def _host_agrees(evidence: Evidence, host: str, traffics: list[TrafficCase]) -> Finding:
    """Compare the host's system counters with the sums over all its streams, and over those of its
    archive. Nothing shows how much it replayed to a subscriber on its own host.
    """
    sums = {
        counter_key.NAKS_SENT_TOTAL: 0,
        counter_key.NAKS_RECEIVED_TOTAL: 0,
        counter_key.RETRANSMITTED_BYTES: 0,
    }
    processed = 0
    resent: dict[tuple[str, int], int] = {}
    sessions = (each for flow in traffics for each in sessions_sent(evidence, flow))
    wires = ((each, present(evidence.wire(each))) for each in sessions)
    for traffic, wire in (*wires, *archive_wires(evidence)):
        if traffic.to_host == host:
            sums[counter_key.NAKS_SENT_TOTAL] += _naks_counted(evidence, traffic, wire)
        if traffic.from_host == host:
            sums[counter_key.NAKS_RECEIVED_TOTAL] += len(wire.naks(wire.feedback_arrived))
            processed += _certainly_processed(wire, wire.feedback_arrived)
            # A retransmit goes to every destination, and is counted once.
            publication = (traffic.id, wire.facts.session_id)
            resent[publication] = max(resent.get(publication, 0), resent_bytes(wire))
    sums[counter_key.RETRANSMITTED_BYTES] = sum(resent.values())
    where = _where(evidence, host)
    is_open = replays_to_itself(present(evidence.case), host)
    for counter_id, seen in sums.items():
        value = system_value(evidence, host, counter_id)
        is_received = counter_id == counter_key.NAKS_RECEIVED_TOTAL
        least = processed - socket_drops(evidence, host) if is_received else seen
        most = value if is_open else seen
        if not least <= value <= most:
            name = counter_key.SYSTEM_NAMES[counter_id]
            text = f"counter {counter_id} '{name}' is {value}, but the captures show {seen}"
            kind = _kind_of_mismatch(value, seen, is_received=is_received)
            return failed(AGREE, text, host, evidence=where, kind=kind)
    text = ", ".join(f"{counter_key.SYSTEM_NAMES[each]} {sums[each]}" for each in sums)
    text += NOT_CAPTURED if is_open else ": captures and counters agree"
    return passed(AGREE, text, host, evidence=where)


def _kind_of_mismatch(value: int, seen: int, *, is_received: bool) -> Kind:
    """Return STATE if a counter is lower than the number of captured arrivals, which a slow host
    can explain, or else PROTOCOL.
    """
    return Kind.STATE if is_received and value < seen else Kind.PROTOCOL


def retransmits_identical(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The bytes retransmitted for a position equal the bytes that were first sent."""
    wire = present(evidence.wire(traffic))
    frames, starts = wire.sent.frames, wire.sent.starts
    again = np.flatnonzero(wire.retransmitted())
    positions, firsts = np.unique(starts, return_index=True)
    first = firsts[np.searchsorted(positions, starts[again])]
    on_wire = lengths_on_wire(frames)
    lengths = np.minimum(on_wire[first], on_wire[again])
    at = frames["at"].astype(np.int64)
    pair, byte = first_differing_pair(
        wire.sender_buf, at[first], wire.sender_buf, at[again], lengths
    )
    sized = np.flatnonzero(on_wire[first] != on_wire[again])
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    if pair < 0 and len(sized):
        pair, byte = int(sized[0]), int(lengths[sized[0]])
    if pair >= 0:
        position = int(starts[again[pair]])
        text = f"the retransmit of the frame at position {position} differs from the original in "
        text += f"byte {int(byte)}"
        return failed(
            IDENTICAL, text, traffic.id, evidence=where, position=position, conclusive=True
        )
    text = f"{len(again)} of {len(frames)} frames are retransmits, each identical to the original"
    return passed(IDENTICAL, text, traffic.id, evidence=where)


def processed_until_ns(wire: Wire) -> int:
    """Return the time until which a stream's sender certainly processed all arrivals.

    Later arrivals may find the publication closed, and are then ignored.
    """
    sent = (wire.sent.frames, wire.heartbeats_sent)
    last_ns = max((int(part["time_ns"].max()) for part in sent if len(part)), default=0)
    return last_ns - SHUTDOWN_NS


def _certainly_processed(wire: Wire, frames: Frames) -> int:
    """Return how many of the given NAKs the sender certainly processed."""
    return int((wire.naks(frames)["time_ns"] <= processed_until_ns(wire)).sum())


def socket_drops(evidence: Evidence, host: str) -> int:
    """Return how many datagrams a host's full sockets dropped before its driver could read them.

    The capture contains these datagrams. More than 0 indicates an overloaded machine.
    """
    snmp = evidence.snmp(host)
    return 0 if isinstance(snmp, Missing) else snmp.grown("RcvbufErrors") or 0


def resent_bytes(wire: Wire) -> int:
    """Return the number of retransmitted bytes. A PAD counts in full, and what went to several
    destinations once, as in drivers' counters.
    """
    once = wire.sent_once()
    spans = once.sent.ends - once.sent.starts
    return int(spans[once.retransmitted()].sum())


def stream_total(evidence: Evidence, host: str, type_id: int, wire: Wire) -> int:
    """Return the final value of a stream's counter, summed over all counters of that type."""
    counted = present(evidence.counters_of_streams(host))
    facts = wire.facts
    found = counter_key.of_stream(counted.counters, type_id, facts.session_id, facts.stream_id)
    if not found:
        name = counter_key.STREAM_NAMES.get(type_id, f"counter of type {type_id}")
        why = f"has no {name} of session {facts.session_id}, stream {facts.stream_id}"
        raise Missing(evidence.name_of(evidence.folder.host(host).counters), why).as_error()
    return sum(counter.final_value for counter in found)


def system_value(evidence: Evidence, host: str, counter_id: int) -> int:
    """Return the final value of one of the driver's system counters."""
    counted: HostCounters = present(evidence.host_counters(host))
    counter = counter_key.system_counter(counted.counters, counter_id)
    if counter is None:
        name = counter_key.SYSTEM_NAMES[counter_id]
        path = evidence.name_of(evidence.folder.host(host).counters)
        raise Missing(path, f"has no system counter {counter_id} '{name}'").as_error()
    return counter.final_value


def _where(evidence: Evidence, host: str) -> tuple[str, ...]:
    folder = evidence.folder
    return evidence.name_of(folder.capture(host)), evidence.name_of(folder.host(host).counters)
