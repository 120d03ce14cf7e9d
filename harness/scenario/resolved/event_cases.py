"""The events of a run: those that a scenario lists, and those that its nemesis draws."""

from collections.abc import Iterator, Mapping

from windtunnel.harness.scenario.applications.nemesis import drawn_events
from windtunnel.harness.scenario.resolved.impairment_case import impairment_case
from windtunnel.harness.scenario.schema.host_event import EventCase, event_case
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.validation.link_directions import Direction, event_directions


def event_cases(
    scenario: Scenario, seed: int, link_names: Mapping[Direction, str]
) -> Iterator[EventCase]:
    """Yield the events of a run with a seed. `link_names` are the names of link directions in the
    case.
    """
    for event in scenario.events:
        case, impair = event_case(event), event.act.impair
        if impair is not None:
            links = [link_names[each] for each in event_directions(scenario, event)]
            impairments = tuple(impairment_case(each, impair) for each in links)
            case = case.model_copy(update={"impairments": impairments})
        yield case
    if scenario.nemesis is not None:
        hosts = scenario.network.hosts
        yield from drawn_events(scenario.nemesis, seed, scenario.applications, hosts)
