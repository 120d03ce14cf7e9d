"""Gate on host events: each event happened, affected a process, and ended."""

from windtunnel.harness.artifact.host.host_event import AppliedEvent
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import LinkChange
from windtunnel.harness.scenario.resolved.link_event import ALL_LOST, affected_links, merged
from windtunnel.harness.scenario.schema.host_event import EventCase, moment_text
from windtunnel.harness.verdict.core.evidence import UNKNOWN_NS, Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, passed, present
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.interruptions import links_of, links_text

NAME = "events_happened"
LATE_NS_MAX = 500_000_000
"""Maximum excess of a pause over its specified duration. The runner may end a pause late, since it
shares the processors with the hosts."""


def events_happened(evidence: Evidence) -> list[Finding]:
    """Each specified host event happened, affected a process, and lasted as long as specified."""
    case = present(evidence.case)
    if not case.events:
        return [passed(NAME, "the scenario has no host events")]
    happened = present(evidence.host_events)
    return [_check_event(evidence, case, event, happened) for event in case.events]


def _check_event(
    evidence: Evidence, case: Case, event: EventCase, happened: list[AppliedEvent]
) -> Finding:
    where = (evidence.name_of(evidence.folder.host_events),)
    found = next((each for each in happened if each.id == event.id), None)
    if event.drawn and (found is None or not (found.processes or event.changes_links)):
        text = f"event {event.id} affected nothing: the run, or the application, had ended before"
        return passed(NAME, text, event.id, evidence=where)
    if found is None:
        text = _absent_text(evidence, case, event)
        return Finding(NAME, Outcome.INCONCLUSIVE, text, event.id, where)
    if not (found.processes or event.changes_links):
        text = f"event {event.id} affected nothing: there was no {event.process} process on "
        return Finding(NAME, Outcome.INCONCLUSIVE, text + event.host, event.id, where)
    if (found.host, found.action) != (event.host, event.action):
        text = f"event {event.id}: expected {event.action} on {event.host}, "
        text += f"found {found.action} on {found.host}"
        return Finding(NAME, Outcome.HARNESS, text, event.id, where)
    lasted_ns = found.ended_ns - found.began_ns
    spare_ns = lasted_ns - event.lasts_ns
    what = f"{', '.join(found.processes)} on {event.host}"
    if event.changes_links:
        what = f"host {event.host}" if event.host else links_text(case, links_of(event))
    text = f"{event.action} of {what} for {lasted_ns} ns"
    if event.action == "step_clock":
        text = f"the clock of {event.host} stepped by {event.step_ns} ns"
    if event.changes_links and not _has_changed(evidence, case, event, found):
        text = f"{text}, but link-changes.json has no such change of its links"
        return Finding(NAME, Outcome.INCONCLUSIVE, text, event.id, where)
    if not found.ended_ns or spare_ns < 0:
        text = f"{text}, expected at least {event.lasts_ns} ns"
        return Finding(NAME, Outcome.INCONCLUSIVE, text, event.id, where)
    if event.action == "pause" and spare_ns > LATE_NS_MAX:
        text = f"{text}, expected {event.lasts_ns} to {event.lasts_ns + LATE_NS_MAX} ns"
        # Applications that survive a longer pause than planned have survived the planned one.
        is_advisory = not case.traffic
        return Finding(NAME, Outcome.INCONCLUSIVE, text, event.id, where, advisory=is_advisory)
    return passed(NAME, text, event.id, evidence=where, facts={"lasted_ns": lasted_ns})


def _absent_text(evidence: Evidence, case: Case, event: EventCase) -> str:
    """Return a sentence about an event that did not happen: when it was due, and when the traffic
    ended, if the evidence shows that.
    """
    due = moment_text(event, has_traffic=bool(case.traffic))
    text = f"event {event.id}, due {due}, did not happen"
    lasted_ns = _traffic_ns(evidence, case)
    if lasted_ns is None:
        return text
    text = f"{text}: the traffic ended after {duration(lasted_ns)}"
    is_late = event.trigger == "after" and event.at > lasted_ns
    return f"{text}; use an earlier time or more traffic" if is_late else text


def _traffic_ns(evidence: Evidence, case: Case) -> int | None:
    """Return the time from the first offer of a message to the last delivery, or None if it is
    unknown.
    """
    offers_ns, deliveries_ns = [], []
    for flow in (flow for traffic in case.traffic for flow in traffic.flows):
        due_ns, delivered_ns = evidence.due_ns(flow), evidence.delivery_times_ns(flow)
        if isinstance(due_ns, Missing) or isinstance(delivered_ns, Missing):
            return None
        due_ns = due_ns[due_ns != UNKNOWN_NS]
        offers_ns += [int(due_ns.min())] if len(due_ns) else []
        deliveries_ns += [int(delivered_ns.max())] if len(delivered_ns) else []
    if not offers_ns or not deliveries_ns:
        return None
    lasted_ns = max(deliveries_ns) - min(offers_ns)
    return lasted_ns if lasted_ns >= 0 else None  # Clocks of two hosts may differ.


def _has_changed(evidence: Evidence, case: Case, event: EventCase, applied: AppliedEvent) -> bool:
    """Return whether the relay changed all links of an event at its beginning, and those that it
    impaired once more at its end.
    """
    changes = evidence.link_changes
    if isinstance(changes, Missing):
        return False
    until_ns = applied.ended_ns + LATE_NS_MAX
    within = [each for each in changes if applied.began_ns <= each.at_ns <= until_ns]
    added = {each.link: each for each in event.impairments}
    return all(_changed(within, link, added.get(link)) for link in affected_links(case, event))


def _changed(changes: list[LinkChange], link: str, added: ImpairmentCase | None) -> bool:
    """Return whether a link direction was cut off or got the added impairments, which were removed
    again.
    """
    states = [each.impairments for each in changes if each.impairments.link == link]
    for index, state in enumerate(states):
        if state.loss == ALL_LOST:
            return added is None or index + 1 < len(states)
        if added is not None and merged(state, added) == state:
            return index + 1 < len(states)
    return False
