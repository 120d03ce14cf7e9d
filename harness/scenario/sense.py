"""Rules that no single table can check: what is well-formed but cannot happen.

A scenario that asks for the impossible would pass for the wrong reason, so it is refused before
anything starts. Each finding names the place in the file by a path of keys and indices.
"""

from collections.abc import Callable, Iterator

from harness.scenario.channel import Channel, parse_channel, placeholders
from harness.scenario.fault_sense import fault_problems
from harness.scenario.model import LONGEST, Scenario, Traffic
from harness.scenario.pace import pace_problems
from harness.scenario.problem import Path, Problem
from harness.scenario.weather_sense import weather_problems

MESSAGE_LENGTH_MAX = 16 * 1024 * 1024


def longest_message(term_length: int) -> int:
    """The longest message that a publication with this term length takes, in bytes."""
    return min(term_length // 8, MESSAGE_LENGTH_MAX)


def problems(scenario: Scenario) -> list[Problem]:
    """All that cannot be in a scenario whose tables are each well-formed."""
    found = list(_network(scenario))
    for index, traffic in enumerate(scenario.traffic):
        found += _traffic(scenario, traffic, ("traffic", index))
    found += _unique("traffic", "id", [each.id for each in scenario.traffic])
    found += _unique("traffic", "stream", [each.stream_id for each in scenario.traffic])
    found += fault_problems(scenario)
    found += _unique("faults", "id", [each.id for each in scenario.faults])
    found += _unique("expect", None, [each.name for each in scenario.expect])
    return found


def _network(scenario: Scenario) -> Iterator[Problem]:
    hosts, between = scenario.network.hosts, scenario.network.link.between
    if len(set(hosts)) != len(hosts):
        yield Problem(("network", "hosts"), f"a host is named twice in {', '.join(hosts)}")
    for index, host in enumerate(between):
        if host not in hosts:
            yield Problem(("network", "link", "between", index), _unknown_host(host, hosts))
    if between[0] == between[1]:
        yield Problem(("network", "link", "between"), "a link needs two different hosts")
    link = scenario.network.link
    yield from weather_problems(link.between, link.weather, link.backend)


def _traffic(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    hosts = scenario.network.hosts
    for key, host in (("from", traffic.from_host), ("to", traffic.to_host)):
        if host not in hosts:
            yield Problem((*path, key), _unknown_host(host, hosts))
    if traffic.from_host == traffic.to_host:
        yield Problem((*path, "to"), "publisher and subscriber must be on different hosts")
    parsed: dict[str, Channel] = {}
    for key, text in (("channel", traffic.channel), ("receive", traffic.receive)):
        unknown = [host for host in placeholders(text) if host not in hosts]
        if unknown:
            yield Problem((*path, key), _unknown_host(unknown[0], hosts))
            continue
        try:
            parsed[key] = parse_channel(text)
        except ValueError as error:
            yield Problem((*path, key), str(error))
            continue
        yield from _channel(parsed[key], traffic, (*path, key))
    yield from _pair(parsed, path)
    content, wall_ns = traffic.content, scenario.budget.wall_ns
    total, after_ns = content.total_bytes, content.close_after_ns
    yield from pace_problems(content.pace, total, after_ns, wall_ns, (*path, "content", "pace"))
    yield from pace_problems(traffic.consume, total, 0, wall_ns, (*path, "consume"))
    if "channel" in parsed:
        yield from _content(parsed["channel"], traffic, (*path, "content"))


def _channel(channel: Channel, traffic: Traffic, path: Path) -> Iterator[Problem]:
    readers: list[Callable[[], object]] = [
        lambda: channel.endpoint_port,
        lambda: channel.term_length,
        lambda: channel.mtu,
        lambda: channel.reliable,
        lambda: channel.receiver_window_bytes,
        lambda: channel.initial_position,
    ]
    for read in readers:
        try:
            read()
        except ValueError as error:
            yield Problem(path, str(error))
            return
    wanted = f"${{{traffic.to_host}}}"
    if channel.endpoint_host != wanted:
        text = f"expected endpoint={wanted}:PORT, the subscriber's host, found"
        yield Problem(path, f"{text} {channel.endpoint_host}")


def _pair(parsed: dict[str, Channel], path: Path) -> Iterator[Problem]:
    if len(parsed) < 2:
        return
    try:
        ports = parsed["channel"].endpoint_port, parsed["receive"].endpoint_port
    except ValueError:
        return
    if ports[0] != ports[1]:
        text = f"the publisher sends to port {ports[0]}, the subscriber listens on {ports[1]}"
        yield Problem((*path, "receive"), text)


def _content(channel: Channel, traffic: Traffic, path: Path) -> Iterator[Problem]:
    try:
        most = longest_message(channel.term_length)
    except ValueError:
        return
    message = traffic.content.message
    longest = most if message.longest_bytes == LONGEST else int(message.longest_bytes)
    if traffic.content.total_bytes < 1:
        yield Problem((*path, "bytes"), "expected at least 1B of content")
    if longest > most:
        text = f"{longest} bytes is more than a term of {channel.term_length} allows, {most}"
        yield Problem((*path, "message", "to"), text)
    if not 1 <= message.shortest_bytes <= longest:
        text = f"expected 1B to {longest}B, found {message.shortest_bytes}B"
        yield Problem((*path, "message", "from"), text)


def _unique(table: str, key: str | None, values: list[str] | list[int]) -> Iterator[Problem]:
    for index, value in enumerate(values):
        if value in values[:index]:
            path: Path = (table, index) if key is None else (table, index, key)
            yield Problem(path, f"{value!r} is there already: expected a new one")


def _unknown_host(host: str, hosts: tuple[str, ...]) -> str:
    return f"no host {host!r}: the hosts are {', '.join(hosts)}"
