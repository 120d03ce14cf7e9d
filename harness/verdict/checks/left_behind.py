"""Who is at fault if a subscriber ends before its stream: the sender may not have waited for it.

fc=tagged    sender follows the tagged receivers ----------> |
             untagged receiver ---> |<-- over a window --->|   Aeron promises it nothing
"""

from dataclasses import replace

from windtunnel.harness.scenario.resolved.unawaited import (
    never_left_behind,
    waits_for,
    without_waiting,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault, Finding, Missing


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


def blame_scenario_for_absence(evidence: Evidence, finding: Finding, waiting: set[str]) -> Finding:
    """Blame the scenario for a run that did not end because of subscribers, `waiting`, that never
    joined: the stream ended without them, and its sender did not wait for them.
    """
    cures: dict[str, str] = {}
    for traffic in () if isinstance(evidence.case, Missing) else evidence.case.traffic:
        for flow in traffic.flows:
            subscriber, publisher = evidence.subscriber(flow), evidence.publisher(flow)
            if isinstance(subscriber, Missing) or isinstance(publisher, Missing):
                continue
            has_joined = subscriber.message_count or subscriber.session_id or subscriber.parts
            has_ended = publisher.ended_ns and not publisher.error
            if has_ended and not has_joined and not waits_for(flow):
                cures[f"{flow.to_host}/subscriber-{flow.id}"] = without_waiting(flow)
    if not waiting or not waiting <= cures.keys():
        return finding
    first = min(waiting)
    text = f"{finding.text}; {first} never joined: {cures[first]}"
    return replace(finding, text=text, at_fault=AtFault.SCENARIO)
