"""Resolves a scenario into a case: all defaults filled in, and each name and number checked."""

from collections.abc import Mapping
from typing import Literal

from windtunnel.harness.scenario.applications.application_case import (
    application_case,
)
from windtunnel.harness.scenario.applications.observed_case import observed_case
from windtunnel.harness.scenario.resolved.case import Case, CheckCase, HostCase, Payload
from windtunnel.harness.scenario.resolved.event_cases import event_cases
from windtunnel.harness.scenario.resolved.fault_case import FaultCase, resolve_fault
from windtunnel.harness.scenario.resolved.impairment_case import (
    ImpairmentCase,
    impairment_case,
)
from windtunnel.harness.scenario.resolved.link_case import (
    LinkCase,
    directions,
    link_names,
)
from windtunnel.harness.scenario.resolved.traffic_case import resolve_traffic
from windtunnel.harness.scenario.schema.archive import archive_case
from windtunnel.harness.scenario.schema.host_event import (
    timeouts_case,
)
from windtunnel.harness.scenario.schema.model import SEED_MAX, Scenario
from windtunnel.harness.scenario.schema.traffic import Traffic
from windtunnel.harness.scenario.validation.fault_validation import rule_directions
from windtunnel.harness.scenario.validation.impairment_validation import BOTH


def run_seeds(scenario: Scenario, root: int | None = None, count: int | None = None) -> list[int]:
    """Return the seeds of a scenario's runs: consecutive numbers that start with the root seed.

    Decisions depend on the seed through a keyed function, so consecutive seeds are independent.
    """
    first = scenario.seeds.root if root is None else root
    runs = scenario.seeds.count if count is None else count
    return [(first + index) & SEED_MAX for index in range(runs)]


def resolve(
    scenario: Scenario,
    *,
    seed: int,
    fidelity: Literal["netns", "compose", "sim"],
    addresses: Mapping[str, str],
    payload: Payload,
) -> Case:
    """Resolve a scenario into the complete description of one run, with values from the lab and the
    command line.
    """
    stream_ids = sorted(traffic.stream_id for traffic in scenario.traffic)
    by_id: dict[str | None, Traffic] = {each.id: each for each in scenario.traffic}
    network = scenario.network
    several = network.all_links if len(network.all_links) > 1 else ()
    events = tuple(event_cases(scenario, seed, _names(scenario)))
    return Case(
        name=scenario.name,
        about=scenario.about,
        seed=seed,
        fidelity=fidelity,
        hosts=tuple(HostCase(name=each, address=addresses[each]) for each in network.joined),
        payload=payload,
        traffic=tuple(
            resolve_traffic(
                each, stream_ids.index(each.stream_id), addresses, by_id.get(each.replays)
            )
            for each in scenario.traffic
        ),
        faults=_faults(scenario),
        expect=tuple(
            CheckCase(name=check.name, arguments=check.arguments) for check in scenario.expect
        ),
        wall_ns=scenario.budget.wall_ns,
        # A simulation has no kernel, hence no netem.
        backend="relay" if fidelity == "sim" else network.all_links[0].backend,
        impairments=_impairments(
            scenario, changes_links=any(each.changes_links for each in events)
        ),
        links=tuple(
            LinkCase(between=each.between, backend="relay" if fidelity == "sim" else each.backend)
            for each in several
        ),
        events=events,
        timeouts=timeouts_case(scenario.timeouts),
        drivers={host: dict(settings) for host, settings in scenario.drivers.items()},
        archives=tuple(archive_case(each) for each in scenario.archives),
        applications=tuple(application_case(each, addresses) for each in scenario.applications),
        exercises=scenario.exercises,
        observed=tuple(observed_case(each, addresses) for each in scenario.observe),
        observes_all=scenario.observe_all,
        checks=scenario.checks,
    )


def _names(scenario: Scenario) -> dict[tuple[str, str], str]:
    """Return the names of the link directions, keyed by sending and receiving host."""
    links = [LinkCase(between=each.between) for each in scenario.network.all_links]
    names = link_names(links if len(links) > 1 else ())
    return dict(zip(directions(links), names, strict=True))


def _impairments(scenario: Scenario, *, changes_links: bool) -> tuple[ImpairmentCase, ...]:
    """Return the impairments of all directions that have some. If links change during the run, each
    direction has an item, so that the relay counts its packets from the start.
    """
    names = _names(scenario)
    found = tuple(
        impairment_case(names[direction], impairments)
        for link in scenario.network.all_links
        for key, impairments in link.impairments.items()
        for direction in directions([LinkCase(between=link.between)])
        if key in (BOTH, "->".join(direction))
    )
    impaired = {each.link for each in found}
    others = (ImpairmentCase(link=name) for name in names.values() if name not in impaired)
    return (*found, *others) if changes_links else found


def _faults(scenario: Scenario) -> tuple[FaultCase, ...]:
    names = _names(scenario)
    stream_ids = sorted(traffic.stream_id for traffic in scenario.traffic)
    ordinals = {stream_id: ordinal for ordinal, stream_id in enumerate(stream_ids)}
    return tuple(
        resolve_fault(fault, ordinals, [names[each] for each in rule_directions(scenario, fault)])
        for fault in scenario.faults
    )
