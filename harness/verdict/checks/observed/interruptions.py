"""The ends of interruptions: when a stream that had been cut off or stopped could continue.

host event       a pause, a kill or a partition of one of the stream's hosts has ended, or
                 impairments of a link between them
change of link   a direction between the two hosts no longer loses everything
"""

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import present

IMPAIR = "impair"


def interruption_ends(evidence: Evidence, flow: TrafficCase) -> list[tuple[int, str]]:
    """Return the times at which interruptions of a stream ended, each with a description, in order
    of time.
    """
    case, changes = present(evidence.case, evidence.link_changes)
    hosts = flow.from_host, flow.to_host
    events = present(evidence.host_events) if case.events else []
    pairs = zip(case.link_names, case.directions, strict=True)
    between = [name for name, ends in pairs if sorted(ends) == sorted(hosts)]
    impaired = {
        event.id for event in case.events if any(each.link in between for each in event.impairments)
    }
    found = []
    for each in events:
        if each.ended_ns and each.id in impaired:
            found.append((each.ended_ns, f"the impairments of event {each.id}"))
        elif each.ended_ns and each.host in hosts and each.action != IMPAIR:
            what = f"the {each.action} of host {each.host} (event {each.id})"
            found.append((each.ended_ns, what))
    for name in between:
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
