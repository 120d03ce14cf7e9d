"""Validates observed streams: hosts, links and channels."""

from collections.abc import Iterator

from windtunnel.harness.scenario.applications.observe import Observed
from windtunnel.harness.scenario.schema.channel import (
    SELF,
    Channel,
    check_parameters,
    parse_channel,
    placeholders,
    read_all,
)
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem, unknown_name


def observe_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield all problems with a scenario's observed streams."""
    if not scenario.applications:
        text = "expected `applications`, which send the observed streams: `traffic` is judged "
        for key, is_given in (("observe", scenario.observe), ("observe_all", scenario.observe_all)):
            if is_given:
                yield Problem((key,), f"{text}anyway")
    ids = {each.id for each in scenario.traffic}
    streams = {each.stream_id for each in scenario.traffic}
    flows = set()
    for index, each in enumerate(scenario.observe):
        path: Path = ("observe", index)
        if each.id in ids:
            yield Problem((*path, "id"), f"{each.id!r} occurs twice: expected a unique value")
        if each.stream_id in streams:
            text = f"stream {each.stream_id} is in `traffic`, which is judged anyway"
            yield Problem((*path, "stream"), text)
        flow = each.stream_id, each.from_host, each.to_host
        if flow in flows:
            text = f"stream {each.stream_id} from {each.from_host} to {each.to_host} occurs twice"
            yield Problem((*path, "stream"), text)
        ids.add(each.id)
        flows.add(flow)
        yield from _ends(scenario, each, path)
        yield from _channel(scenario, each, (*path, "channel"))


def _ends(scenario: Scenario, observed: Observed, path: Path) -> Iterator[Problem]:
    hosts = scenario.network.hosts
    ends = (("from", observed.from_host), ("to", observed.to_host))
    unknown = [(key, host) for key, host in ends if host not in hosts]
    for key, host in unknown:
        hint = f"the hosts are {', '.join(hosts)}"
        text = unknown_name("a host of the network", host, hosts, hint)
        yield Problem((*path, key), text)
    linked = [set(each.between) for each in scenario.network.all_links]
    if not unknown and {host for _, host in ends} not in linked:
        text = f"there is no link between {observed.from_host} and {observed.to_host}"
        yield Problem((*path, "to"), text)


def _channel(scenario: Scenario, observed: Observed, path: Path) -> Iterator[Problem]:
    known = (*scenario.network.hosts, SELF)
    for name in placeholders(observed.channel):
        if name not in known:
            hint = f"the hosts are {', '.join(scenario.network.hosts)}"
            yield Problem(path, unknown_name("a host in ${...}", name, known, hint))
            return
    try:
        channel = parse_channel(observed.channel)
        check_parameters(channel)
        read_all(channel)
        ports = channel.ports
    except ValueError as error:
        yield Problem(path, str(error))
        return
    if not ports or 0 in ports:
        text = "expected a UDP channel with a port, in `endpoint` or `control`: its packets are "
        yield Problem(path, f"{text}recognized by that port")
    elif wrong := _swapped_hosts(observed, channel):
        yield Problem(path, wrong)


def _swapped_hosts(observed: Observed, channel: Channel) -> str:
    """Return why a channel cannot be that of a publication on the host `from` whose subscription is
    on the host `to`, or an empty string. Addresses that name no host are not checked.
    """
    endpoint, control = (_named_host(observed, channel, key) for key in ("endpoint", "control"))
    if channel.control_mode:
        if control in (None, observed.from_host):
            return ""
        text = f"the control address is on host {control}, which therefore sends the stream"
        return f"{text}: expected `from: {control}`, found {observed.from_host}"
    if endpoint in (None, observed.to_host):
        return ""
    text = f"the endpoint is on host {endpoint}, which therefore receives the stream"
    return f"{text}: expected `to: {endpoint}`, found {observed.to_host}"


def _named_host(observed: Observed, channel: Channel, key: str) -> str | None:
    """Return the host that an address of the channel names, or None if it names none."""
    names = placeholders(channel.parameters.get(key, ""))
    if not names:
        return None
    return observed.from_host if names[0] == SELF else names[0]
