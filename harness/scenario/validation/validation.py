"""Validates a whole scenario with rules that involve several tables.

A scenario with fault rules that can never apply would pass for the wrong reason, so it is rejected
before anything starts. Each problem contains the path of its value in the file.
"""

import re
from collections.abc import Iterator

from windtunnel.harness.scenario.applications.application_validation import application_problems
from windtunnel.harness.scenario.applications.observe_validation import observe_problems
from windtunnel.harness.scenario.exercises import exercise_problems
from windtunnel.harness.scenario.frame_expectation import NAME as EXPECT_FRAMES
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.validation.archive_validation import archive_problems
from windtunnel.harness.scenario.validation.driver_validation import driver_problems
from windtunnel.harness.scenario.validation.event_validation import event_problems
from windtunnel.harness.scenario.validation.fault_validation import fault_problems, sends_over
from windtunnel.harness.scenario.validation.group_validation import group_problems
from windtunnel.harness.scenario.validation.impairment_validation import (
    impairment_problems,
    shared_netem_problems,
)
from windtunnel.harness.scenario.validation.interruption_validation import interruption_problems
from windtunnel.harness.scenario.validation.traffic_validation import traffic_problems, unknown_host

_MULTICAST = re.compile(r"[=:?|]2(2[4-9]|3[0-9])\.")
"""Matches a multicast address in a channel, even if the channel is otherwise invalid."""


def problems(scenario: Scenario) -> list[Problem]:
    """Return all problems with a scenario whose tables are individually valid."""
    found = list(_network(scenario))
    for index, traffic in enumerate(scenario.traffic):
        found += traffic_problems(scenario, traffic, ("traffic", index))
    found += _unique("traffic", "id", [each.id for each in scenario.traffic])
    found += _unique("traffic", "stream", [each.stream_id for each in scenario.traffic])
    found += archive_problems(scenario)
    found += application_problems(scenario)
    found += driver_problems(scenario)
    found += observe_problems(scenario)
    found += _unique("applications", "id", [each.id for each in scenario.applications])
    found += fault_problems(scenario)
    found += _unique("faults", "id", [each.id for each in scenario.faults])
    found += exercise_problems(scenario.exercises, scenario.fidelity)
    found += event_problems(scenario)
    found += interruption_problems(scenario)
    found += group_problems(scenario)
    found += _unique("events", "id", [each.id for each in scenario.events])
    found += _expected(scenario)
    found += _unique("checks", None, list(scenario.checks))
    found += _readers(scenario)
    return found


def _expected(scenario: Scenario) -> Iterator[Problem]:
    """Yield a problem for each check that occurs twice. A scenario may expect several frames."""
    entries = [
        str(sorted(each.arguments.items())) if each.name == EXPECT_FRAMES else each.name
        for each in scenario.expect
    ]
    yield from _unique("expect", None, entries)


def _readers(scenario: Scenario) -> Iterator[Problem]:
    """Yield a problem for each check that names a host without a subscriber, and for each `partial`
    subscriber that no check names.
    """
    known = {host for each in scenario.traffic for host in each.to_hosts}
    checked: set[str] = set()
    for index, check in enumerate(scenario.expect):
        has_readers = isinstance(check.arguments, dict) and check.name != EXPECT_FRAMES
        chosen = check.arguments.get("to", []) if has_readers else []
        hosts = chosen if isinstance(chosen, list) else [chosen]
        checked |= {host for host in hosts if isinstance(host, str)}
        for host in hosts:
            if host not in known:
                text = f"expected one of the subscribers {', '.join(sorted(known))}, found {host!r}"
                yield Problem(("expect", index, check.name, "to"), text)
    for index, traffic in enumerate(scenario.traffic):
        for host in traffic.partial:
            if host not in checked:
                text = f"host {host} has no check: add one with `to: {host}`"
                yield Problem(("traffic", index, "partial"), text)


def _network(scenario: Scenario) -> Iterator[Problem]:
    hosts, links = scenario.network.hosts, scenario.network.all_links
    top: Path = ("network",)
    if len(set(hosts)) != len(hosts):
        yield Problem((*top, "hosts"), f"expected distinct hosts, found {', '.join(hosts)}")
    for index, link in enumerate(links):
        at: Path = (*top, "link") if scenario.network.links == () else (*top, "links", index)
        for end, host in enumerate(link.between):
            if host not in hosts:
                yield Problem((*at, "between", end), unknown_host(host, hosts))
        if link.between[0] == link.between[1]:
            text = f"expected two different hosts, found {link.between[0]} twice"
            yield Problem((*at, "between"), text)
        if any(set(link.between) == set(each.between) for each in links[:index]):
            hosts_text = " and ".join(link.between)
            text = f"there are two links between {hosts_text}: remove one of them"
            yield Problem((*at, "between"), text)
        yield from impairment_problems(link, at)
        if link.impairments and not _has_traffic(scenario, link.between):
            text = (
                f"there is neither a stream nor an application between {' and '.join(link.between)}"
            )
            yield Problem((*at, "impairments"), f"{text}: nothing to impair")
    joined = {host for link in links for host in link.between}
    for host in hosts:
        if host not in joined:
            yield Problem(
                (*top, "hosts"), f"host {host!r} has no link: add one, or remove the host"
            )
    yield from shared_netem_problems(links)


def _has_traffic(scenario: Scenario, between: tuple[str, str]) -> bool:
    """Return whether a stream's or an application's datagrams may be sent over a link. Multicast is
    sent over all links of its sender.
    """
    first, second = between
    if any(each.host in between for each in scenario.applications):
        return True
    for traffic in scenario.traffic:
        if sends_over(traffic, first, second) or sends_over(traffic, second, first):
            return True
        channels = (traffic.channel, *traffic.channels.values(), *traffic.destinations)
        if any(_MULTICAST.search(each) for each in channels):
            return True
    return False


def _unique(table: str, key: str | None, values: list[str] | list[int]) -> Iterator[Problem]:
    for index, value in enumerate(values):
        if value in values[:index]:
            path: Path = (table, index) if key is None else (table, index, key)
            yield Problem(path, f"{value!r} occurs twice: expected a unique value")
