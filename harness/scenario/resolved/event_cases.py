"""The events of a run: those that a scenario lists, and those that its nemesis draws."""

from collections.abc import Iterable, Iterator, Mapping

from windtunnel.harness.scenario.applications.nemesis import drawn_events
from windtunnel.harness.scenario.resolved.impairment_case import impairment_case
from windtunnel.harness.scenario.schema.host_event import EventCase, event_case
from windtunnel.harness.scenario.schema.impairment import Impairments
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.validation.link_directions import (
    Direction,
    event_directions,
    host_directions,
)


def event_cases(
    scenario: Scenario, seed: int, link_names: Mapping[Direction, str]
) -> Iterator[EventCase]:
    """Yield the events of a run with a seed. `link_names` are the names of link directions in the
    case.
    """
    for event in scenario.events:
        links = [link_names[each] for each in event_directions(scenario, event)]
        yield _with_impairments(event_case(event), event.act.impair, links)
    if scenario.nemesis is None:
        return
    hosts = scenario.network.hosts
    for case, impair in drawn_events(scenario.nemesis, seed, scenario.applications, hosts):
        links = [link_names[each] for each in host_directions(scenario, case.host)]
        yield _with_impairments(case, impair, links)


def _with_impairments(
    case: EventCase, impair: Impairments | None, links: Iterable[str]
) -> EventCase:
    """Return an event with what it does to link directions, if it impairs any."""
    if impair is None:
        return case
    impairments = tuple(impairment_case(each, impair) for each in links)
    return case.model_copy(update={"impairments": impairments})
