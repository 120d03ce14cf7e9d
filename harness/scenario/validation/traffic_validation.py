"""Traffic that is well-formed and yet cannot flow.

    one reader       endpoint=${b}:PORT                             the reader's own host
    many readers     multicast, or control-mode=dynamic or manual   and a link to each of them
    many publishers  the same session, and a subscription that      one image out of all of them
                     adds a source for each

Each finding names the place in the file by a path of keys and indices.
"""

from collections.abc import Callable, Iterator

from windtunnel.harness.scenario.schema.channel import SELF, Channel, parse_channel, placeholders
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.pace import pace_problems
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.traffic import LONGEST, Traffic

MESSAGE_LENGTH_MAX = 16 * 1024 * 1024
_START = ("session-id", "init-term-id", "term-id", "term-offset")


def longest_message(term_length: int) -> int:
    """The longest message that a publication with this term length takes, in bytes."""
    return min(term_length // 8, MESSAGE_LENGTH_MAX)


def traffic_problems(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    """All that is wrong with one stream."""
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
    content, wall_ns = traffic.content, scenario.budget.wall_ns
    total, after_ns = content.total_bytes, content.close_after_ns
    yield from pace_problems(content.pace, total, after_ns, wall_ns, (*path, "content", "pace"))
    yield from pace_problems(traffic.consume, total, 0, wall_ns, (*path, "consume"))
    if "channel" in parsed:
        yield from _several(parsed, traffic, path)
        yield from _content(parsed["channel"], traffic, (*path, "content"))


def _ends(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    hosts = scenario.network.hosts
    for key, named in (("from", traffic.from_hosts), ("to", traffic.to_hosts)):
        for host in named:
            if host not in hosts:
                yield Problem((*path, key), unknown_host(host, hosts))
        if len(set(named)) != len(named):
            yield Problem((*path, key), f"a host is named twice in {', '.join(named)}")
    if set(traffic.from_hosts) & set(traffic.to_hosts):
        yield Problem((*path, "to"), "publisher and subscriber must be on different hosts")
    for host in traffic.partial:
        if host not in traffic.to_hosts:
            yield Problem((*path, "partial"), f"{host!r} is no subscriber of this stream")
    links = [set(each.between) for each in scenario.network.all_links]
    for sender in traffic.from_hosts:
        for receiver in traffic.to_hosts:
            known = sender in hosts and receiver in hosts and sender != receiver
            if known and {sender, receiver} not in links:
                yield Problem((*path, "to"), f"no link joins {sender} and {receiver}")


def _unknown_in(scenario: Scenario, text: str) -> str:
    """What is wrong with the hosts that a channel names, or nothing."""
    known = (*scenario.network.hosts, SELF)
    unknown = [host for host in placeholders(text) if host not in known]
    return unknown_host(unknown[0], scenario.network.hosts) if unknown else ""


def _channel(
    channel: Channel, traffic: Traffic, path: Path, *, is_sending: bool
) -> Iterator[Problem]:
    readers: list[Callable[[], object]] = [
        lambda: channel.ports,
        lambda: channel.term_length,
        lambda: channel.mtu,
        lambda: channel.reliable,
        lambda: channel.receiver_window_bytes,
        lambda: channel.initial_position,
        lambda: channel.flow_control,
        lambda: channel.group_tag,
        lambda: channel.session_id,
    ]
    if not channel.control_mode:
        readers.append(lambda: channel.endpoint_port)
    for read in readers:
        try:
            read()
        except ValueError as error:
            yield Problem(path, str(error))
            return
    if channel.control_mode not in ("", "dynamic", "manual"):
        text = f"control-mode={channel.control_mode}: expected dynamic or manual"
        yield Problem(path, text)
    if channel.is_multicast or not channel.has_endpoint:
        return
    if is_sending:
        wanted = [f"${{{traffic.to_host}}}"]
    else:
        wanted = [f"${{{traffic.to_host}}}", f"${{{SELF}}}"]
    if channel.endpoint_host not in wanted:
        text = f"expected endpoint={wanted[0]}:PORT, the subscriber's host, found"
        yield Problem(path, f"{text} {channel.endpoint_host}")


def _others(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    """What is wrong with the channels of single hosts and with those that are added."""
    for key, table, hosts in (
        ("channels", traffic.channels, traffic.from_hosts),
        ("receives", traffic.receives, traffic.to_hosts),
    ):
        for host, text in table.items():
            if host not in hosts:
                yield Problem((*path, key, host), unknown_host(host, hosts))
            yield from _readable(scenario, text, (*path, key, host))
    for key, texts in (("destinations", traffic.destinations), ("sources", traffic.sources)):
        for index, text in enumerate(texts):
            yield from _readable(scenario, text, (*path, key, index))


def _readable(scenario: Scenario, text: str, path: Path) -> Iterator[Problem]:
    unknown = _unknown_in(scenario, text)
    if unknown:
        yield Problem(path, unknown)
        return
    try:
        channel = parse_channel(text)
        _ = channel.ports, channel.group_tag, channel.flow_control
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
        text = f"the publisher sends to port {ports[0]}, the subscriber listens on {ports[1]}"
        yield Problem((*path, "receive"), text)


def _several(parsed: dict[str, Channel], traffic: Traffic, path: Path) -> Iterator[Problem]:
    """What a stream with more than one publisher or subscriber needs."""
    channel, receive = parsed["channel"], parsed.get("receive")
    if len(traffic.to_hosts) > 1 and not channel.is_group:
        text = "one endpoint reaches one host: expected multicast or a control-mode for a list"
        yield Problem((*path, "to"), text)
    if (channel.control_mode == "manual") != bool(traffic.destinations):
        text = "destinations and control-mode=manual of the channel go together"
        yield Problem((*path, "destinations"), text)
    if receive is not None and (receive.control_mode == "manual") != bool(traffic.sources):
        text = "sources and control-mode=manual of the subscription go together"
        yield Problem((*path, "sources"), text)
    if len(traffic.from_hosts) > 1:
        texts = [traffic.channels.get(each, traffic.channel) for each in traffic.from_hosts]
        starts = set()
        for text in texts:
            parameters = parse_channel(text).parameters
            starts.add(tuple(parameters.get(name, "") for name in _START))
        if len(starts) != 1 or not all(next(iter(starts))):
            text = f"several publishers of one stream need the same {', '.join(_START)}"
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
        text = f"{longest} bytes is more than a term of {channel.term_length} allows, {most}"
        yield Problem((*path, "message", "to"), text)
    if not 1 <= message.shortest_bytes <= longest:
        text = f"expected 1B to {longest}B, found {message.shortest_bytes}B"
        yield Problem((*path, "message", "from"), text)


def unknown_host(host: str, hosts: tuple[str, ...]) -> str:
    """In words that there is no such host."""
    return f"no host {host!r}: the hosts are {', '.join(hosts)}"
