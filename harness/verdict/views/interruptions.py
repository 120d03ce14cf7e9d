"""The time ranges in which a run's scenario cut or impaired links, or paused or killed processes.

    rule    when: {after: 2s, for: 5s}     first DATA + 2 s ... + 7 s     from the capture
            when: {reached: ...}           first drop ... + for           from the decision log
    event   pause, kill, partition, impair     as the runner recorded it

A cut is a rule that drops every frame of its types on a link for a limited time. Its times are
those of the rule, and no drop that the middlebox logged lies outside of them.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from windtunnel.harness.artifact.host.host_event import AppliedEvent
from windtunnel.harness.artifact.middlebox.decision import DROP
from windtunnel.harness.artifact.middlebox.frame_class import DATA
from windtunnel.harness.artifact.run.observed import Interruption
from windtunnel.harness.artifact.run.result_row import listed
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.cut import drops_all
from windtunnel.harness.scenario.resolved.fault_case import FaultCase, WhenCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.views.reader_gaps import NEVER_NS

CUT, PAUSE, KILL, PARTITION, IMPAIR = "cut", "pause", "kill", "partition", "impair"
STEP_CLOCK = "step_clock"
LINKS_MAX = 4
"""Maximum number of link directions that are named."""
CUTS_MAX = 64
"""Maximum number of ranges of one rule, which may be repeated."""


def interruptions(evidence: Evidence, case: Case) -> list[Interruption]:
    """Return all interruptions whose times are known, in order of their start times."""
    found = [*_cuts(evidence, case), *_events(evidence)]
    return sorted(found, key=lambda each: (each.began_ns, each.id))


def concerns(case: Case, flow: TrafficCase, interruption: Interruption) -> bool:
    """Return whether a cut affects a flow's link, or a pause or kill one of its hosts."""
    if interruption.kind == CUT:
        fault = next(each for each in case.faults if each.id == interruption.id)
        return _cuts_off(case, flow, fault)
    event = next(each for each in case.events if each.id == interruption.id)
    roles = {*event.roles}
    at_reader = event.host == flow.to_host and roles & {"driver", "subscriber"}
    at_writer = event.host == flow.from_host and roles & {"driver", "publisher"}
    return bool(at_reader or at_writer)


def concerns_observed(case: Case, flow: TrafficCase, interruption: Interruption) -> bool:
    """Return whether an event affects one of an observed stream's hosts, or a link between them."""
    event = next((each for each in case.events if each.id == interruption.id), None)
    if event is None:
        return False
    hosts = {flow.from_host, flow.to_host}
    links = {each.link for each in event.impairments}
    ends = zip(case.link_names, case.directions, strict=True)
    return event.host in hosts or any(name in links and {*way} == hosts for name, way in ends)


def _cuts_off(case: Case, flow: TrafficCase, fault: FaultCase) -> bool:
    """Return whether a rule drops all DATA of a flow, or all of its status messages."""
    ways = ((flow.from_host, flow.to_host, "DATA"), (flow.to_host, flow.from_host, "SM"))
    for sender, receiver, kind in ways:
        link = case.link_between(sender, receiver)
        if link >= 0 and case.link_names[link] in fault.links and kind in fault.frame_types:
            return drops_all(fault, flow.ordinal)
    return False


def _cuts(evidence: Evidence, case: Case) -> Iterator[Interruption]:
    decisions = evidence.decisions
    if isinstance(decisions, Missing) or case.replays:
        return
    first_ns = first_data_ns(evidence, case)
    for index, fault in enumerate(case.faults):
        if fault.when is None or not any(
            _cuts_off(case, flow, fault) for each in case.traffic for flow in each.flows
        ):
            continue
        dropped = decisions[(decisions["rule"] == index) & (decisions["action"] == DROP)]
        times_ns = np.sort(dropped["time_ns"].astype(np.int64))
        if len(times_ns) == 0:
            continue
        start_ns = int(times_ns[0])
        if fault.when.reached is None and first_ns is not None:
            start_ns = min(first_ns + fault.when.after_ns, start_ns)
        what = links_text(case, fault.links)
        for began_ns, ended_ns in _periods(fault.when, start_ns, times_ns):
            yield Interruption(CUT, fault.id, what, began_ns, ended_ns)


def _periods(when: WhenCase, start_ns: int, times_ns: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield start and end of each of a rule's active periods in which it dropped frames."""
    if not when.every_ns:
        last_ns = int(times_ns[-1])
        yield start_ns, max(start_ns + when.for_ns, last_ns) if when.for_ns else last_ns
        return
    for turn in np.unique((times_ns - start_ns) // when.every_ns)[:CUTS_MAX].tolist():
        began_ns = start_ns + turn * when.every_ns
        yield began_ns, began_ns + (when.for_ns or when.every_ns)


def first_data_ns(evidence: Evidence, case: Case) -> int | None:
    """Return the time of the first captured DATA frame, which starts the time of all rules."""
    found: list[int] = []
    for host in {each for traffic in case.traffic for each in traffic.publishers}:
        capture = evidence.capture(host)
        if isinstance(capture, Missing):
            return None
        sent = capture.frames[sent_by(capture.frames, case.address(host))]
        times_ns = sent["time_ns"][sent["frame_type"] == DATA]
        found += [int(times_ns.min())] if len(times_ns) else []
    return min(found, default=None)


def _events(evidence: Evidence) -> Iterator[Interruption]:
    happened = evidence.host_events
    case = evidence.case
    if isinstance(happened, Missing) or isinstance(case, Missing):
        return
    known = {each.id: each for each in case.events}
    for each in happened:
        is_valid = 0 <= each.began_ns < each.ended_ns < NEVER_NS
        event = known.get(each.id)
        if event is not None and each.action == event.action and is_valid:
            what = f"{_roles(each)} on {each.host}"
            if event.changes_links:
                what = f"host {event.host}" if event.host else links_text(case, links_of(event))
            yield Interruption(each.action, each.id, what, each.began_ns, each.ended_ns)


def clock_steps(evidence: Evidence, host: str) -> list[tuple[int, int]]:
    """Return the times at which events stepped a host's realtime clock, and by how much, in
    nanoseconds.
    """
    case, happened = evidence.case, evidence.host_events
    if isinstance(case, Missing) or isinstance(happened, Missing):
        return []
    steps_ns = {each.id: each.step_ns for each in case.events if each.action == STEP_CLOCK}
    own = [each for each in happened if each.host == host and each.id in steps_ns]
    return [(each.began_ns, steps_ns[each.id]) for each in own]


def links_of(event: EventCase) -> list[str]:
    """Return the names of the link directions that an event impairs."""
    return [each.link for each in event.impairments]


def links_text(case: Case, links: Sequence[str]) -> str:
    """Return link directions as text, or their number if there are many."""
    if len(links) > LINKS_MAX:
        return f"{len(links)} link directions"
    return listed(case.hosts_of_links(links))


def _roles(event: AppliedEvent) -> str:
    return listed(event.processes) or "processes"
