"""Gate on what was to befall the hosts: each event came, to somebody, and was over in the end."""

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, could_not_look, passed
from windtunnel.harness.verdict.core.outcome import Outcome

NAME = "events_happened"
LATE_NS_MAX = 500_000_000
"""How much longer than ordered an event may have lasted: the runner shares the processors."""


def events_happened(evidence: Evidence) -> list[Finding]:
    """Each ordered event came, befell a process, and lasted as long as was asked for."""
    case, happened = evidence.case, evidence.host_events
    if isinstance(case, Missing):
        return [could_not_look(NAME, case)]
    if not case.events:
        return [passed(NAME, "the case orders no events")]
    if isinstance(happened, Missing):
        return [could_not_look(NAME, happened)]
    return [_came(evidence, case, index) for index in range(len(case.events))]


def _came(evidence: Evidence, case: Case, index: int) -> Finding:
    event, happened = case.events[index], evidence.host_events
    assert not isinstance(happened, Missing)
    where = (evidence.name_of(evidence.folder.host_events),)
    found = next((each for each in happened if each.id == event.id), None)
    if found is None or not found.processes:
        what = "never came" if found is None else f"found no {event.process} on {event.host}"
        return Finding(NAME, Outcome.INCONCLUSIVE, f"event {event.id} {what}", event.id, where)
    if (found.host, found.action) != (event.host, event.action):
        text = f"event {event.id} was a {found.action} on {found.host}: another was ordered"
        return Finding(NAME, Outcome.HARNESS, text, event.id, where)
    lasted_ns = found.ended_ns - found.began_ns
    spare_ns = lasted_ns - event.lasts_ns
    text = f"{event.action} of {', '.join(found.processes)} on {event.host} for {lasted_ns} ns"
    if not found.ended_ns or spare_ns < 0:
        text = f"{text}, which is less than the {event.lasts_ns} ns that were ordered"
        return Finding(NAME, Outcome.INCONCLUSIVE, text, event.id, where)
    if event.action == "pause" and spare_ns > LATE_NS_MAX:
        text = f"{text}, which is more than the {event.lasts_ns} ns that were ordered"
        return Finding(NAME, Outcome.INCONCLUSIVE, text, event.id, where)
    return passed(NAME, text, event.id, evidence=where, facts={"lasted_ns": lasted_ns})
