"""Gates on the run as a whole: walked to its end, captures whole, both sides heard."""

import hashlib

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import DATA, SETUP, SM
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.capture.pcap import Capture, sent_by
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.checks.subject import is_our_failure
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    passed,
    together,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome

STAMP_FALL_NS_MAX = 1_000_000
"""Packets of one direction that two processors took in may lie some microseconds out of order in a
file; if they lie further apart the clock was set, and nothing can be told of before and after. The
two directions are no measure of each other: what arrives is stamped before it waits for its turn,
what leaves as it leaves."""


def manifest_complete(evidence: Evidence) -> list[Finding]:
    """The harness walked every phase without an error, and what was sent is what lies here."""
    name = "manifest_complete"
    found = together(evidence.manifest, evidence.case, evidence.payload)
    if isinstance(found, Missing):
        return [could_not_look(name, found)]
    manifest, case, payload = found
    where = (evidence.name_of(evidence.folder.manifest),)
    failures = [each for each in manifest.processes if is_our_failure(each)]
    if failures:
        first = failures[0]
        words = f": {first.last_log_line}" if first.last_log_line else ""
        text = f"{first.name} failed by itself{words}"
        # Whoever waited for it waited in vain, and that is no fault of the subject either.
        every = frozenset(Kind)
        return [Finding(name, Outcome.HARNESS, text, evidence=where, excuses_kinds=every)]
    if manifest.errors:
        more = f" (and {len(manifest.errors) - 1} more)" if len(manifest.errors) > 1 else ""
        text = f"the run had errors: {manifest.errors[0]}{more}"
        return [Finding(name, Outcome.HARNESS, text, evidence=where)]
    if not manifest.complete and not manifest.overran:
        why = f": {manifest.stopped}" if manifest.stopped else ""
        text = f"the run was not walked to its end{why}"
        return [Finding(name, Outcome.INCONCLUSIVE, text, evidence=where)]
    if hashlib.sha256(payload).hexdigest() != case.payload.sha256:
        text = "payload.bin is not the file that case.json names: its sha256 differs"
        return [Finding(name, Outcome.HARNESS, text, evidence=("payload.bin", "case.json"))]
    return [passed(name, f"{len(manifest.phases)} phases, no errors", evidence=where)]


def captures_complete(evidence: Evidence) -> list[Finding]:
    """Each host's capture is there, ends cleanly, and lost nothing."""
    name = "captures_complete"
    case = evidence.case
    if isinstance(case, Missing):
        return [could_not_look(name, case)]
    return [_capture_whole(name, evidence, case, host.name) for host in case.hosts]


def _capture_whole(name: str, evidence: Evidence, case: Case, host: str) -> Finding:
    capture, statistics = evidence.capture(host), evidence.capture_statistics(host)
    if isinstance(capture, Missing):
        return could_not_look(name, capture, host)
    if isinstance(statistics, Missing):
        return could_not_look(name, statistics, host)
    folder: RunDir = evidence.folder
    where = tuple(
        evidence.name_of(each) for each in (folder.capture(host), folder.capture_statistics(host))
    )
    came = sent_by(capture.frames, case.address(host))
    times_ns = capture.frames["time_ns"]
    fall_ns = min(int(np.diff(times_ns[each]).min(initial=0)) for each in (came, ~came))
    problems = [
        (statistics.dropped_by_kernel, "packets dropped by the kernel or the interface"),
        (capture.cut, "packets cut short"),
        (capture.ip_fragments, "IP fragments, which cannot be judged"),
        (int(capture.torn), "packet torn at the end of the file"),
        (statistics.received - capture.packets, "packets seen by the tool but not in the file"),
        (-fall_ns if fall_ns < -STAMP_FALL_NS_MAX else 0, "ns that the clock was set back"),
    ]
    for count, what in problems:
        if count:
            return Finding(name, Outcome.INCONCLUSIVE, f"{count} {what}", host, where)
    text = f"{capture.packets} packets, {capture.datagrams} of them Aeron's, none lost"
    return passed(name, text, host, evidence=where)


def both_sides_talked(evidence: Evidence) -> list[Finding]:
    """Each traffic's SETUP and DATA arrived, and its SM came back.

    A host from which not one frame of the stream left may have been unable to send. Where some did,
    silence is the driver's own or was ordered of the middlebox, and excuses nothing.
    """
    name = "both_sides_talked"
    case = evidence.case
    if isinstance(case, Missing):
        return [could_not_look(name, case)]
    if not case.traffic:
        return [Finding(name, Outcome.INCONCLUSIVE, "the case has no traffic")]
    findings = []
    for traffic in (flow for each in case.traffic for flow in each.flows):
        near, far = evidence.capture(traffic.from_host), evidence.capture(traffic.to_host)
        if isinstance(near, Missing):
            findings.append(could_not_look(name, near, traffic.role))
        elif isinstance(far, Missing):
            findings.append(could_not_look(name, far, traffic.role))
        else:
            silent, excuses = _silence(near, far, case, traffic)
            outcome = Outcome.INCONCLUSIVE if silent else Outcome.PASS
            text = silent or "SETUP and DATA arrived, SM came back"
            findings.append(Finding(name, outcome, text, traffic.role, excuses=excuses))
    return findings


def _silence(near: Capture, far: Capture, case: Case, traffic: TrafficCase) -> tuple[str, bool]:
    """Which kind of frame never arrived, or nothing; and whether its host sent nothing at all."""
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
                text = f"no {word} of stream {stream_id} reached the {side}'s host"
                return text, len(left) == 0
    return "", True


def _of_stream(capture: Capture, stream_id: int) -> Frames:
    found: Frames = capture.frames[capture.frames["stream_id"] == stream_id]
    return found


def sockets_dropped_nothing(evidence: Evidence) -> list[Finding]:
    """No UDP socket overflowed, which on an unreliable stream would look like the link's loss."""
    name = "sockets_dropped_nothing"
    case = evidence.case
    if isinstance(case, Missing):
        return [could_not_look(name, case)]
    findings = []
    for host in case.hosts:
        snmp = evidence.snmp(host.name)
        if isinstance(snmp, Missing):
            findings.append(could_not_look(name, snmp, host.name))
            continue
        where = (evidence.name_of(evidence.folder.host(host.name).snmp),)
        lost = snmp.grown("RcvbufErrors")
        if lost is None:
            gap = Missing(where[0], "tells no RcvbufErrors")
            findings.append(could_not_look(name, gap, host.name))
            continue
        excusable = all(each.reliable for each in case.traffic if host.name in each.subscribers)
        outcome = Outcome.PASS if lost == 0 or excusable else Outcome.INCONCLUSIVE
        text = f"{lost} datagrams dropped by full sockets"
        if lost and excusable:
            text += ": reported only, since reliable streams repair them"
        findings.append(
            Finding(name, outcome, text, host.name, where, facts={"rcvbuf_errors": lost})
        )
    return findings
