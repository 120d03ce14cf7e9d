"""The ends of interruptions: when a stream that had been cut off or stopped could continue.

host event       a pause, a kill or a partition of one of the stream's hosts has ended
change of link   a direction between the two hosts no longer loses everything
"""

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing


def interruption_ends(evidence: Evidence, flow: TrafficCase) -> list[tuple[int, str]] | Missing:
    """Return the times at which interruptions of a stream ended, each with a description, in order
    of time.
    """
    case, events, changes = evidence.case, evidence.host_events, evidence.link_changes
    for each in (case, changes):
        if isinstance(each, Missing):
            return each
    assert not isinstance(case, Missing)
    assert not isinstance(changes, Missing)
    hosts = flow.from_host, flow.to_host
    if isinstance(events, Missing):
        if case.events:
            return events
        events = []
    found = [
        (each.ended_ns, f"the {each.action} of host {each.host} (event {each.id})")
        for each in events
        if each.host in hosts and each.ended_ns
    ]
    for name, ends in zip(case.link_names, case.directions, strict=True):
        if sorted(ends) != sorted(hosts):
            continue
        was_cut = _loses_all(case.impairments_of(name))
        for change in changes:
            if change.impairments.link == name:
                is_cut = _loses_all(change.impairments)
                if was_cut and not is_cut:
                    found.append((change.at_ns, f"the partition of {name}"))
                was_cut = is_cut
    return sorted(found)


def _loses_all(impairments: ImpairmentCase | None) -> bool:
    loss = None if impairments is None else impairments.loss
    return loss is not None and loss.rate >= 1
