"""Rules that no single table can check: what is well-formed but cannot happen.

A scenario that asks for the impossible would pass for the wrong reason, so it is refused before
anything starts. Each finding names the place in the file by a path of keys and indices.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.host_event import IMAGE_LIVENESS_NS, event_problems
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.validation.archive_validation import archive_problems
from windtunnel.harness.scenario.validation.fault_validation import fault_problems
from windtunnel.harness.scenario.validation.impairment_validation import (
    shared_problems,
    weather_problems,
)
from windtunnel.harness.scenario.validation.traffic_validation import traffic_problems, unknown_host


def problems(scenario: Scenario) -> list[Problem]:
    """All that cannot be in a scenario whose tables are each well-formed."""
    found = list(_network(scenario))
    for index, traffic in enumerate(scenario.traffic):
        found += traffic_problems(scenario, traffic, ("traffic", index))
    found += _unique("traffic", "id", [each.id for each in scenario.traffic])
    found += _unique("traffic", "stream", [each.stream_id for each in scenario.traffic])
    found += archive_problems(scenario)
    found += fault_problems(scenario)
    found += _unique("faults", "id", [each.id for each in scenario.faults])
    found += _events(scenario)
    found += _unique("events", "id", [each.id for each in scenario.events])
    found += _unique("expect", None, [each.name for each in scenario.expect])
    found += _readers(scenario)
    return found


def _readers(scenario: Scenario) -> Iterator[Problem]:
    """Checks about hosts that read nothing, and readers that no check is about."""
    known = {host for each in scenario.traffic for host in each.to_hosts}
    asked: set[str] = set()
    for index, check in enumerate(scenario.expect):
        chosen = check.arguments.get("to", []) if isinstance(check.arguments, dict) else []
        hosts = chosen if isinstance(chosen, list) else [chosen]
        asked |= {host for host in hosts if isinstance(host, str)}
        for host in hosts:
            if host not in known:
                text = f"{host!r} is no subscriber: expected {', '.join(sorted(known))}"
                yield Problem(("expect", index, check.name, "to"), text)
    for index, traffic in enumerate(scenario.traffic):
        for host in traffic.partial:
            if host not in asked:
                text = f"no check is about {host}: expected one with `to: {host}`"
                yield Problem(("traffic", index, "partial"), text)


def _network(scenario: Scenario) -> Iterator[Problem]:
    hosts, links = scenario.network.hosts, scenario.network.all_links
    top: Path = ("network",)
    if len(set(hosts)) != len(hosts):
        yield Problem((*top, "hosts"), f"a host is named twice in {', '.join(hosts)}")
    for index, link in enumerate(links):
        at: Path = (*top, "link") if scenario.network.links == () else (*top, "links", index)
        for end, host in enumerate(link.between):
            if host not in hosts:
                yield Problem((*at, "between", end), unknown_host(host, hosts))
        if link.between[0] == link.between[1]:
            yield Problem((*at, "between"), "a link needs two different hosts")
        if any(set(link.between) == set(each.between) for each in links[:index]):
            yield Problem((*at, "between"), f"{' and '.join(link.between)} have a link already")
        yield from weather_problems(link, at)
    joined = {host for link in links for host in link.between}
    for host in hosts:
        if host not in joined:
            yield Problem((*top, "hosts"), f"host {host!r} has no link, so nobody can reach it")
    yield from shared_problems(links)


def _events(scenario: Scenario) -> Iterator[Problem]:
    roles = {host: {"driver"} for host in scenario.network.hosts}
    for traffic in scenario.traffic:
        for host in traffic.from_hosts:
            roles.get(host, set()).add(traffic.sender)
        for host in traffic.to_hosts:
            roles.get(host, set()).add("subscriber")
    for archive in scenario.archives:
        roles.get(archive.host, set()).add("archive")
    yield from event_problems(
        scenario.events,
        roles,
        sum(each.content.total_bytes for each in scenario.traffic if not each.replays),
        scenario.budget.wall_ns,
        rejoins=all(each.rejoins for each in scenario.traffic),
        image_liveness_ns=scenario.timeouts.image_liveness_ns or IMAGE_LIVENESS_NS,
    )


def _unique(table: str, key: str | None, values: list[str] | list[int]) -> Iterator[Problem]:
    for index, value in enumerate(values):
        if value in values[:index]:
            path: Path = (table, index) if key is None else (table, index, key)
            yield Problem(path, f"{value!r} is there already: expected a new one")
