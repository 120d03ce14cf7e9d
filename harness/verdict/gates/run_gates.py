"""Gates on the whole run: it completed, its captures are complete, and both sides sent frames."""

import hashlib

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import DATA, SETUP, SM
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.capture.pcap import Capture, sent_by
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.checks.subject import is_harness_failure
from windtunnel.harness.verdict.core.completeness import missing_packets
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    finding_of,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.virtual import is_virtual

CLOCK_STEP_NS_MAX = 1_000_000
"""Limit on a backward step of the timestamps in one direction. Packets that two processors captured
may be a few microseconds out of order in a file. A larger step means that the clock was set, so the
order of events is unknown. Timestamps of different directions cannot be compared: an incoming
packet is timestamped before it is queued, an outgoing packet as it leaves."""


def manifest_complete(evidence: Evidence) -> list[Finding]:
    """The harness completed every phase without an error, and payload.bin contains the data that
    was sent.
    """
    name = "manifest_complete"
    manifest, case, payload = present(evidence.manifest, evidence.case, evidence.payload)
    where = (evidence.name_of(evidence.folder.manifest),)
    failures = [each for each in manifest.processes if is_harness_failure(each)]
    if failures:
        first = failures[0]
        log_line = f": {first.last_log_line}" if first.last_log_line else ""
        text = f"{first.name} failed with a harness error{log_line}"
        # Nor is the subject at fault if a process timed out waiting for it.
        every = frozenset(Kind)
        return [Finding(name, Outcome.HARNESS, text, evidence=where, excuses_kinds=every)]
    if manifest.errors:
        more = f" (and {len(manifest.errors) - 1} more)" if len(manifest.errors) > 1 else ""
        text = f"the run had errors: {manifest.errors[0]}{more}"
        return [Finding(name, Outcome.HARNESS, text, evidence=where)]
    if not manifest.complete and not manifest.overran:
        why = f": {manifest.stopped}" if manifest.stopped else ""
        text = f"the run did not complete{why}"
        return [Finding(name, Outcome.INCONCLUSIVE, text, evidence=where)]
    # The length is compared first, because a sparse file may be too long to be hashed.
    is_as_long = len(payload) == case.payload.length_bytes
    if not is_as_long or hashlib.sha256(payload).hexdigest() != case.payload.sha256:
        text = "payload.bin does not match its sha256 in case.json"
        return [Finding(name, Outcome.HARNESS, text, evidence=("payload.bin", "case.json"))]
    return [passed(name, f"{len(manifest.phases)} phases, no errors", evidence=where)]


def captures_complete(evidence: Evidence) -> list[Finding]:
    """Each host's capture exists, ends at a packet boundary, and lost no packet."""
    name = "captures_complete"
    case = present(evidence.case)
    hosts = [each.name for each in case.hosts]
    return [finding_of(name, each, _check_capture, name, evidence, case, each) for each in hosts]


def _check_capture(name: str, evidence: Evidence, case: Case, host: str) -> Finding:
    capture, statistics = present(evidence.capture(host), evidence.capture_statistics(host))
    folder: RunDir = evidence.folder
    where = tuple(
        evidence.name_of(each) for each in (folder.capture(host), folder.capture_statistics(host))
    )
    own = sent_by(capture.frames, case.address(host))
    times_ns = capture.frames["time_ns"]
    fall_ns = min(int(np.diff(times_ns[each]).min(initial=0)) for each in (own, ~own))
    problem = missing_packets(capture, statistics)
    if not problem and fall_ns < -CLOCK_STEP_NS_MAX:
        problem = f"{-fall_ns} ns by which the clock was set back"
    if problem:
        return Finding(name, Outcome.INCONCLUSIVE, problem, host, where)
    text = f"{capture.packets} packets, {capture.datagrams} of them Aeron datagrams, none lost"
    return passed(name, text, host, evidence=where)


def both_sides_talked(evidence: Evidence) -> list[Finding]:
    """Each stream's SETUP and DATA reached the subscriber, and an SM reached the publisher.

    A host that sent no frame of the stream at all may have been unable to send. If it did send
    frames, a missing frame is a fault of the driver or of the scenario, and excuses nothing. In a
    simulation every host is able to send, so nothing is excused.
    """
    name = "both_sides_talked"
    case = present(evidence.case)
    if not case.traffic and case.applications:
        return [passed(name, "the scenario has no streams of its own")]
    if not case.traffic:
        text = "the scenario has no traffic"
        text = "no program was started in the lab" if case.live else text
        return [Finding(name, Outcome.INCONCLUSIVE, text)]
    return [
        finding_of(name, flow.role, _check_flow, name, evidence, case, flow)
        for each in case.traffic
        for flow in each.flows
    ]


def _check_flow(name: str, evidence: Evidence, case: Case, flow: TrafficCase) -> Finding:
    near, far = present(
        evidence.capture_of_streams(flow.from_host), evidence.capture_of_streams(flow.to_host)
    )
    silent, is_mute = _missing_frame(near, far, case, flow)
    excuses = is_mute and not is_virtual(case)
    outcome = Outcome.INCONCLUSIVE if silent else Outcome.PASS
    text = silent or "SETUP and DATA reached the subscriber, and SM reached the publisher"
    return Finding(name, outcome, text, flow.role, excuses=excuses)


def _missing_frame(
    near: Capture, far: Capture, case: Case, traffic: TrafficCase
) -> tuple[str, bool]:
    """Describe the frame type that never arrived, or return "" if all arrived. Also returns whether
    the capture at the sending host has no frame of the stream.
    """
    stream_id = traffic.stream_id
    publisher, subscriber = (case.address(each) for each in (traffic.from_host, traffic.to_host))
    directions = ((near, far, publisher, (SETUP, DATA)), (far, near, subscriber, (SM,)))
    for source, target, sender, kinds in directions:
        from_publisher = sender == publisher
        left, arrived = (
            each[sent_by(each, sender)]
            for each in (_of_stream(source, stream_id), _of_stream(target, stream_id))
        )
        for kind in kinds:
            if not (arrived["frame_type"] == kind).any():
                word = {SETUP: "SETUP", DATA: "DATA", SM: "SM"}[kind]
                side = "subscriber" if from_publisher else "publisher"
                text = f"no {word} of stream {stream_id} arrived at the {side}'s host"
                return text, len(left) == 0
    return "", True


def _of_stream(capture: Capture, stream_id: int) -> Frames:
    found: Frames = capture.frames[capture.frames["stream_id"] == stream_id]
    return found


def sockets_dropped_nothing(evidence: Evidence) -> list[Finding]:
    """No UDP socket overflowed on a host that receives an unreliable stream."""
    name = "sockets_dropped_nothing"
    case = present(evidence.case)
    findings = []
    for host in case.hosts:
        snmp = evidence.snmp(host.name)
        if isinstance(snmp, Missing):
            findings.append(inconclusive(name, snmp, host.name))
            continue
        where = (evidence.name_of(evidence.folder.host(host.name).snmp),)
        lost = snmp.grown("RcvbufErrors")
        if lost is None:
            gap = Missing(where[0], "has no RcvbufErrors")
            findings.append(inconclusive(name, gap, host.name))
            continue
        excusable = all(each.reliable for each in case.traffic if host.name in each.subscribers)
        outcome = Outcome.PASS if lost == 0 or excusable else Outcome.INCONCLUSIVE
        text = f"{lost} datagrams dropped by full socket buffers"
        if lost and excusable:
            text += "; this is not a failure, because reliable streams retransmit them"
        findings.append(
            Finding(name, outcome, text, host.name, where, facts={"rcvbuf_errors": lost})
        )
    return findings
