"""Who is at fault if a subscriber ends before its stream: the sender may not have waited for it.

fc=tagged    sender follows the tagged receivers ----------> |
             untagged receiver ---> |<-- over a window --->|   Aeron promises it nothing
"""

from dataclasses import replace

from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase
from windtunnel.harness.scenario.resolved.unawaited import (
    never_left_behind,
    waits_for,
    without_waiting,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault, Finding, Missing
from windtunnel.harness.verdict.views.pauses import DRIVER

KILL = "kill"


def blame_scenario(evidence: Evidence, finding: Finding) -> Finding:
    """Blame the scenario for the end of a subscriber for which its sender did not wait, and which
    was more than a window behind.
    """
    for traffic in () if isinstance(evidence.case, Missing) else evidence.case.traffic:
        for flow in traffic.flows:
            is_other = finding.about != f"{flow.to_host}/subscriber-{flow.id}"
            subscriber, publisher = evidence.subscriber(flow), evidence.publisher(flow)
            if isinstance(subscriber, Missing) or isinstance(publisher, Missing):
                continue
            if is_other or never_left_behind(flow):
                continue
            behind = publisher.end_position - subscriber.end_position
            if subscriber.error and not subscriber.eos_seen and behind > flow.window_bytes:
                text = f"{finding.text}; it was {behind:,} bytes behind: {without_waiting(flow)}"
                return replace(finding, text=text, at_fault=AtFault.SCENARIO)
    return finding


def blame_scenario_for_waiting(evidence: Evidence, finding: Finding, waiting: set[str]) -> Finding:
    """Blame the scenario for a run that did not end because of subscribers, `waiting`, that waited
    in vain: their stream ended before they joined, or before their killed driver was restarted.
    """
    causes: dict[str, str] = {}
    for traffic in () if isinstance(evidence.case, Missing) else evidence.case.traffic:
        for flow in traffic.flows:
            causes[f"{flow.to_host}/subscriber-{flow.id}"] = _cause(evidence, flow)
    found = [(name, causes.get(name, "")) for name in sorted(waiting)]
    if not found or not all(cause for _, cause in found):
        return finding
    name, cause = found[0]
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
    happened = evidence.host_events
    for each in () if isinstance(happened, Missing) else happened:
        is_kill = each.host == flow.to_host and each.action == KILL and DRIVER in each.processes
        if is_kill and not subscriber.eos_seen and publisher.ended_ns < each.ended_ns:
            return f"waits for more of a stream that ended before {each.id!r} restarted its driver"
    return ""
