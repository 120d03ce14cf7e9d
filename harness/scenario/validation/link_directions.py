"""The link directions that rules and events name.

    a->b        one direction          a->*    all directions from a
    both        all directions         a list of these

An event on a host affects all directions to and from it.
"""

from collections.abc import Iterator, Sequence

from windtunnel.harness.scenario.schema.host_event import HostEvent
from windtunnel.harness.scenario.schema.model import Scenario

Direction = tuple[str, str]
"""Sending and receiving host."""
ANY_HOST = "*"


def all_directions(scenario: Scenario) -> Iterator[Direction]:
    """Yield the directions of all links of a scenario."""
    for link in scenario.network.all_links:
        yield link.between
        yield link.between[1], link.between[0]


def named_directions(scenario: Scenario, names: Sequence[str]) -> list[Direction]:
    """Return the link directions that names and patterns stand for, each of them once."""
    found = [each for name in names for each in _named(scenario, name)]
    return list(dict.fromkeys(found))


def event_directions(scenario: Scenario, event: HostEvent) -> list[Direction]:
    """Return the link directions that an event affects if it changes links."""
    if event.whom.host is None:
        return named_directions(scenario, event.whom.links)
    return host_directions(scenario, event.whom.host)


def host_directions(scenario: Scenario, host: str) -> list[Direction]:
    """Return all link directions to and from a host."""
    return [each for each in all_directions(scenario) if host in each]


def unknown_direction(scenario: Scenario, chosen: Sequence[Direction]) -> str:
    """Return an error message for the first direction that no link has, or an empty string."""
    known = list(all_directions(scenario))
    for direction in chosen:
        if direction not in known:
            names = ", ".join("->".join(each) for each in known)
            return f"expected {names} or both, found {'->'.join(direction)!r}"
    return ""


def _named(scenario: Scenario, name: str) -> list[Direction]:
    """Return the link directions that a name such as `a->b` or a pattern such as `a->*` stands for.
    If a pattern matches none, return the pattern itself.
    """
    known = list(all_directions(scenario))
    if name == "both":
        return known
    sender, _, receiver = name.partition("->")
    if ANY_HOST not in (sender, receiver):
        return [(sender, receiver)]
    matches = [
        each for each in known if sender in (ANY_HOST, each[0]) and receiver in (ANY_HOST, each[1])
    ]
    return matches or [(sender, receiver)]
