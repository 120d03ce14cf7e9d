"""Validates a scenario's streams: hosts, links, channels, pace and content.

    one subscriber        endpoint=${b}:PORT                             the subscriber's host
    many subscribers      multicast, or control-mode=dynamic or manual   and a link to each of them
    many publishers       the same session, and a subscription with      one image of all publishers
                          a source for each

Each problem has the path of its value in the file.
"""

import math
from collections.abc import Iterator

from windtunnel.harness.scenario.schema.channel import (
    SELF,
    Channel,
    check_parameters,
    check_window,
    parse_channel,
    placeholders,
    read_all,
)
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.pace import pace_problems
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.traffic import LONGEST, Traffic

MESSAGE_LENGTH_MAX = 16 * 1024 * 1024
MESSAGES_MAX = 1 << 24
"""Maximum number of messages in a stream, since the plan of all of them is kept in memory."""
_START = ("session-id", "init-term-id", "term-id", "term-offset")


def longest_message(term_length: int) -> int:
    """Return the maximum message length in bytes for a publication with this term length."""
    return min(term_length // 8, MESSAGE_LENGTH_MAX)


def content_count(total_bytes: int, shortest: int, longest: int) -> int:
    """Return the number of messages in content, which is approximate if their lengths differ.

    All doublings from the shortest to the longest length are equally likely, and so are all lengths
    within a doubling.
    """
    shares = lengths = 0.0
    for octave in range(shortest.bit_length() - 1, longest.bit_length()):
        base = 1 << octave
        low, high = max(shortest, base), min(longest, 2 * base - 1)
        shares += (high + 1 - low) / base
        lengths += (high + 1 - low) * (low + high) / 2 / base
    return math.ceil(total_bytes / (lengths / shares))


def traffic_problems(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    """Yield all problems with one stream."""
    yield from _ends(scenario, traffic, path)
    parsed: dict[str, Channel] = {}
    for key, text in (("channel", traffic.channel), ("receive", traffic.receive)):
        unknown = _unknown_in(scenario, text)
        if unknown:
            yield Problem((*path, key), unknown)
            continue
        try:
            parsed[key] = parse_channel(text)
        except ValueError as error:
            yield Problem((*path, key), str(error))
            continue
        yield from _channel(parsed[key], traffic, (*path, key), is_sending=key == "channel")
    yield from _others(scenario, traffic, path)
    yield from _pair(parsed, path)
    yield from _start(scenario, traffic, (*path, "starts_with"))
    content, wall_ns = traffic.content, scenario.budget.wall_ns
    total, after_ns = content.total_bytes, content.close_after_ns
    yield from pace_problems(content.pace, total, after_ns, wall_ns, (*path, "content", "pace"))
    yield from pace_problems(traffic.consume, total, 0, wall_ns, (*path, "consume"))
    if "channel" in parsed:
        yield from _several(parsed, traffic, path)
        if not parsed["channel"].signals_end and (traffic.rejoins or traffic.merges):
            key = "rejoins" if traffic.rejoins else "merges"
            text = f"`{key}` needs the end of the stream, which eos=false does not signal"
            yield Problem((*path, "channel"), text)
        yield from _content(parsed["channel"], traffic, (*path, "content"))


def _ends(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    hosts = scenario.network.hosts
    for key, named in (("from", traffic.from_hosts), ("to", traffic.to_hosts)):
        for host in named:
            if host not in hosts:
                yield Problem((*path, key), unknown_host(host, hosts))
        if len(set(named)) != len(named):
            yield Problem((*path, key), f"expected distinct hosts, found {', '.join(named)}")
    if set(traffic.from_hosts) & set(traffic.to_hosts):
        yield Problem((*path, "to"), "expected publisher and subscriber on different hosts")
    for host in traffic.partial:
        if host not in traffic.to_hosts:
            subscribers = ", ".join(traffic.to_hosts)
            text = f"expected one of the subscribers {subscribers}, found {host!r}"
            yield Problem((*path, "partial"), text)
    links = [set(each.between) for each in scenario.network.all_links]
    for sender in traffic.from_hosts:
        for receiver in traffic.to_hosts:
            known = sender in hosts and receiver in hosts and sender != receiver
            if known and {sender, receiver} not in links:
                text = f"there is no link between {sender} and {receiver}"
                yield Problem((*path, "to"), text)


def _unknown_in(scenario: Scenario, text: str) -> str:
    """Describe the first unknown host among a channel's placeholders, or return an empty string."""
    known = (*scenario.network.hosts, SELF)
    unknown = [host for host in placeholders(text) if host not in known]
    return unknown_host(unknown[0], scenario.network.hosts) if unknown else ""


def _channel(
    channel: Channel, traffic: Traffic, path: Path, *, is_sending: bool
) -> Iterator[Problem]:
    try:
        check_parameters(channel)
        read_all(channel)
        if not is_sending:
            check_window(channel)
        if not channel.control_mode:
            _ = channel.endpoint_port
    except ValueError as error:
        yield Problem(path, str(error))
        return
    if channel.control_mode not in ("", "dynamic", "manual"):
        text = f"control-mode={channel.control_mode}: expected dynamic or manual"
        yield Problem(path, text)
    if channel.is_multicast or not channel.has_endpoint:
        return
    if is_sending:
        expected = [f"${{{traffic.to_host}}}"]
    else:
        expected = [f"${{{traffic.to_host}}}", f"${{{SELF}}}"]
    if channel.endpoint_host not in expected:
        text = f"expected endpoint={expected[0]}:PORT (the subscriber's host), found"
        yield Problem(path, f"{text} {channel.endpoint_host}")


def _others(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    """Yield the problems with a stream's host-specific channels, its destinations and its
    sources.
    """
    for key, table, hosts in (
        ("channels", traffic.channels, traffic.from_hosts),
        ("receives", traffic.receives, traffic.to_hosts),
    ):
        for host, text in table.items():
            if host not in hosts:
                yield Problem((*path, key, host), unknown_host(host, hosts))
            yield from _readable(
                scenario, text, (*path, key, host), is_subscription=key == "receives"
            )
    for key, texts in (("destinations", traffic.destinations), ("sources", traffic.sources)):
        for index, text in enumerate(texts):
            yield from _readable(scenario, text, (*path, key, index))


def _readable(
    scenario: Scenario, text: str, path: Path, *, is_subscription: bool = False
) -> Iterator[Problem]:
    unknown = _unknown_in(scenario, text)
    if unknown:
        yield Problem(path, unknown)
        return
    try:
        channel = parse_channel(text)
        check_parameters(channel)
        read_all(channel)
        if is_subscription:
            check_window(channel)
    except ValueError as error:
        yield Problem(path, str(error))


def _pair(parsed: dict[str, Channel], path: Path) -> Iterator[Problem]:
    if len(parsed) < 2 or any(each.control_mode for each in parsed.values()):
        return
    try:
        ports = parsed["channel"].endpoint_port, parsed["receive"].endpoint_port
    except ValueError:
        return
    if ports[0] != ports[1]:
        text = f"expected port {ports[0]}, to which the publisher sends, found {ports[1]}"
        yield Problem((*path, "receive"), text)


def _start(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    """Yield the problems with a publisher that waits for subscribers before it starts."""
    if traffic.starts_with is None:
        return
    count = len(traffic.to_hosts)
    if traffic.readers_to_start > count:
        text = f"expected `all` or a number of subscribers from 1 to {count}"
        yield Problem(path, f"{text}, found {traffic.readers_to_start}")
    if traffic.replays is not None:
        yield Problem(path, "expected a publisher, but an archive replays this stream")
    if traffic.merges is not None:
        yield Problem(path, "the subscriber starts late because of `merges`: remove one of them")
    for event in scenario.events:
        is_restarted = event.whom.process in ("driver", "publisher", "all")
        if event.act.kill is not None and is_restarted and event.whom.host in traffic.from_hosts:
            text = f"event {event.id!r} restarts a process on host {event.whom.host}, and a new"
            yield Problem(path, f"{text} publisher does not wait: remove one of them")


def _several(parsed: dict[str, Channel], traffic: Traffic, path: Path) -> Iterator[Problem]:
    """Yield the problems with several publishers, subscribers, destinations or sources of a
    stream.
    """
    channel, receive = parsed["channel"], parsed.get("receive")
    if len(traffic.to_hosts) > 1 and not channel.is_group:
        text = "expected multicast or a control-mode in the channel: an endpoint reaches one host"
        yield Problem((*path, "to"), text)
    if (channel.control_mode == "manual") != bool(traffic.destinations):
        text = "expected both or neither of destinations and control-mode=manual in the channel"
        yield Problem((*path, "destinations"), text)
    if receive is not None and (receive.control_mode == "manual") != bool(traffic.sources):
        text = "expected both or neither of sources and control-mode=manual in receive"
        yield Problem((*path, "sources"), text)
    if len(traffic.from_hosts) > 1:
        texts = [traffic.channels.get(each, traffic.channel) for each in traffic.from_hosts]
        starts = set()
        for text in texts:
            parameters = parse_channel(text).parameters
            starts.add(tuple(parameters.get(name, "") for name in _START))
        if len(starts) != 1 or not all(next(iter(starts))):
            text = f"expected the same {', '.join(_START)} in the channels of all publishers"
            yield Problem((*path, "from"), text)


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
        text = f"expected at most {most}B with a term length of {channel.term_length}"
        text = f"{text}, found {longest}B"
        yield Problem((*path, "message", "to"), text)
    if 1 <= message.shortest_bytes <= longest <= most:
        count = content_count(traffic.content.total_bytes, message.shortest_bytes, longest)
        if count > MESSAGES_MAX:
            text = f"expected at most {MESSAGES_MAX} messages, found about {count}"
            yield Problem((*path, "bytes"), f"{text}: send less content, or longer messages")
    if not 1 <= message.shortest_bytes <= longest:
        text = f"expected 1B to {longest}B, found {message.shortest_bytes}B"
        yield Problem((*path, "message", "from"), text)


def unknown_host(host: str, hosts: tuple[str, ...]) -> str:
    """Return the error message for an unknown host."""
    return f"expected one of the hosts {', '.join(hosts)}, found {host!r}"
