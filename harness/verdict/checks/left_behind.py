"""Who is at fault if a subscriber ends before its stream, or waits in vain: the scenario, if no
driver could have delivered the rest.

fc=tagged    sender follows the tagged receivers ----------> |
             untagged receiver ---> |<-- over a window --->|   Aeron promises it nothing
fc=min       sender and first receiver ----> end |  second receiver: no image, waits in vain
linger       sender ----> end, linger time |  receiver: still has gaps
kill         sender ----> end |  receiver's driver or archive is killed, and restarted too late
"""

from dataclasses import replace

import numpy as np

from windtunnel.harness.artifact.host.application import PublisherFacts
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase
from windtunnel.harness.scenario.resolved.unawaited import (
    never_left_behind,
    waits_for,
    without_waiting,
)
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault, Finding, Missing
from windtunnel.harness.verdict.core.wire import status_messages
from windtunnel.harness.verdict.views.pauses import kills_of
from windtunnel.harness.verdict.views.series import highest_sent_at

UNRECORDED = "of which nothing more was recorded"


def blame_scenario(evidence: Evidence, finding: Finding) -> Finding:
    """Blame the scenario for the end of a subscriber for which its sender did not wait, and which
    was more than a window behind; or whose gaps remained when the publication was gone.
    """
    for traffic in () if isinstance(evidence.case, Missing) else evidence.case.traffic:
        for flow in traffic.flows:
            if finding.about != f"{flow.to_host}/subscriber-{flow.id}":
                continue
            subscriber, publisher = evidence.subscriber(flow), evidence.publisher(flow)
            if isinstance(subscriber, Missing) or isinstance(publisher, Missing):
                continue
            if not subscriber.error or subscriber.eos_seen:
                continue
            behind = publisher.end_position - subscriber.end_position
            cause = ""
            is_held = behind > 0 and _is_held_by_archive(evidence, flow)
            is_far = behind > flow.window_bytes or is_held
            if is_far and not _is_waited_for(evidence, flow):
                cause = f"it was {behind:,} bytes behind: {without_waiting(flow)}"
            elif behind > 0:
                cause = _too_short_linger(evidence, flow, publisher)
            if cause:
                text = f"{finding.text}; {cause}"
                return replace(finding, text=text, at_fault=AtFault.SCENARIO)
    return finding


def _is_held_by_archive(evidence: Evidence, flow: TrafficCase) -> bool:
    """Return whether a killed archive held a receiver's window back: its subscription remains until
    the driver has noticed.
    """
    return flow.recorded == flow.to_host and bool(kills_of(evidence, flow.to_host, "archive"))


def _is_waited_for(evidence: Evidence, flow: TrafficCase) -> bool:
    """Return whether a receiver ever limited its sender, as far as the capture shows: a sender
    ignores status messages from more than half a term behind.
    """
    wire = evidence.wire(flow)
    if isinstance(wire, Missing) or waits_for(flow) or not never_left_behind(flow):
        return never_left_behind(flow)
    messages = status_messages(wire.feedback_arrived)
    at = positions(messages, wire.facts.initial_term_id, wire.facts.term_length)
    sent = highest_sent_at(wire, messages["time_ns"].astype(np.int64), flow.initial_position)
    return bool((sent - at <= wire.facts.term_length // 2).any())


def _too_short_linger(evidence: Evidence, flow: TrafficCase, publisher: PublisherFacts) -> str:
    """Return that a receiver still requested data when its publication no longer had to exist, or
    an empty string. A closed publication lingers from when all data has been sent.
    """
    wire = evidence.wire(flow)
    if isinstance(wire, Missing) or not publisher.ended_ns:
        return ""
    new_ns = wire.sent.frames["time_ns"][~wire.retransmitted()].astype(np.int64)
    naks_ns = wire.naks(wire.feedback_sent)["time_ns"].astype(np.int64)
    linger_ns = parse_channel(flow.channel).linger_ns
    gone_ns = max(publisher.ended_ns, int(new_ns.max(initial=0))) + linger_ns
    late = int((naks_ns > gone_ns).sum())
    if not late:
        return ""
    text = f"{late} of its NAKs came after the publication's linger time of {duration(linger_ns)}"
    return f"{text}: use a longer `linger`, or fewer losses"


def blame_scenario_for_waiting(evidence: Evidence, finding: Finding, waiting: set[str]) -> Finding:
    """Blame the scenario for a run that did not end because of workloads, `waiting`, that waited
    in vain: their stream ended before they joined, or before their killed driver or archive was
    restarted.
    """
    causes: dict[str, str] = {}
    traffics = () if isinstance(evidence.case, Missing) else evidence.case.traffic
    for flow in (each for traffic in traffics for each in traffic.flows):
        causes[f"{flow.to_host}/subscriber-{flow.id}"] = _cause(evidence, flow)
    unrecorded = {each.id: cause for each in traffics if (cause := _unrecorded(evidence, each))}
    for each in traffics:
        if each.id in unrecorded:
            causes[f"{each.recorded}/recorder-{each.id}"] = unrecorded[each.id]
        if each.replays in unrecorded:
            cause = f"waits for {each.replays!r}, {UNRECORDED}"
            causes[f"{each.from_host}/publisher-{each.id}"] = cause
            causes[f"{each.to_host}/subscriber-{each.id}"] = cause
    found = [(name, causes.get(name, "")) for name in sorted(waiting)]
    if not found or not all(cause for _, cause in found):
        return finding
    name, cause = min(found, key=lambda each: each[1].endswith(UNRECORDED))
    return replace(finding, text=f"{finding.text}; {name} {cause}", at_fault=AtFault.SCENARIO)


def _cause(evidence: Evidence, flow: TrafficCase) -> str:
    """Return why a subscriber waits for a stream that has ended, or an empty string."""
    subscriber, publisher = evidence.subscriber(flow), evidence.publisher(flow)
    if isinstance(subscriber, Missing) or isinstance(publisher, Missing):
        return ""
    if not publisher.ended_ns or publisher.error:
        return ""
    if not (subscriber.message_count or subscriber.session_id or subscriber.parts):
        return "" if waits_for(flow) else f"never joined: {without_waiting(flow)}"
    if not waits_for(flow) and not subscriber.eos_seen:
        behind = publisher.end_position - subscriber.end_position
        return f"lost its image {behind:,} bytes before the end: {without_waiting(flow)}"
    for each in kills_of(evidence, flow.to_host):
        if not subscriber.eos_seen and publisher.ended_ns < each.ended_ns:
            return f"waits for more of a stream that ended before {each.id!r} restarted its driver"
    return ""


def _unrecorded(evidence: Evidence, traffic: TrafficCase) -> str:
    """Return why an archive waits for a stream that has ended, or an empty string."""
    if not traffic.recorded:
        return ""
    publisher = evidence.publisher(traffic)
    if isinstance(publisher, Missing) or not publisher.ended_ns or publisher.error:
        return ""
    for each in kills_of(evidence, traffic.recorded, "archive"):
        if publisher.ended_ns < each.ended_ns:
            return f"waits for more of a stream that ended before {each.id!r} restarted its archive"
    beside = [each for each in traffic.flows if each.to_host == traffic.recorded]
    return _cause(evidence, beside[0]) if beside else ""
