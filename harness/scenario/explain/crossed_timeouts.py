"""Determines which of Aeron's timeouts a pause, a kill or a cut of a link exceeds, and describes
the consequences.

    cut of 7 s     |<------------------------>|
    connection     |<--- 5 s --->| publication disconnected
    liveness       |<------------- 10 s ------------->| not reached

Source: Aeron 1.53, defaults of driver and client.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.cut import (
    CLIENT_LIVENESS_NS,
    CONNECTION_NS,
    DRIVER_NS,
    NO_LIMIT_NS,
    SILENCE_SLACK_NS,
    STREAM,
    cut_ns,
)
from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.scenario.resolved.unawaited import (
    counted_hosts,
    flow_control,
    group_text,
    required_receivers,
)
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.host_event import IMAGE_LIVENESS_NS, EventCase
from windtunnel.harness.scenario.schema.units import format_duration

HEARTBEAT_NS = 1_000_000_000
"""Default of the interval between a driver's heartbeats: the last one before a pause may be so old.
"""


@dataclass(frozen=True)
class Timeout:
    """One of Aeron's timeouts that an interruption in the scenario can exceed."""

    name: str
    limit_ns: int
    effect: str
    slack_ns: int = 0
    "The timeout may be exceeded by an interruption that is shorter by this time."


def event_timeouts(case: Case, event: EventCase) -> list[Timeout]:
    """Return the timeouts that can expire while the processes of an event are paused or killed."""
    found: list[Timeout] = []
    if not event.stops_processes:
        return found
    host, roles = event.host, {*event.roles}
    for traffic in case.traffic:
        if "driver" in roles and host in traffic.subscribers:
            found += _silent_receiver(traffic, host)
            if event.action == "pause":
                found.append(_image_liveness(case, host))
        if "driver" in roles and host in traffic.publishers:
            found += [_image_liveness(case, each) for each in traffic.subscribers]
            found.append(_connection(traffic, host))
            if required_receivers(traffic.at(host)):
                found.append(
                    _receiver(traffic, f"{traffic.id} is disconnected at {host} for a time")
                )
    alone = event.action == "pause" and event.process != "all"
    for role in ("publisher", "subscriber"):
        if event.action == "pause" and role in roles and _runs(case, role, host):
            found.append(_client_liveness(case, host, role))
    if alone and "driver" in roles:
        limit_ns = case.timeouts.driver_ns or DRIVER_NS
        effect = f"the clients on {host} close"
        found.append(Timeout("driver", limit_ns, effect, HEARTBEAT_NS))
    return list(dict.fromkeys(found))


def kill_lines(case: Case, event: EventCase) -> Iterator[str]:
    """Yield lines about the timeouts that expire after a kill, no matter when the process is
    restarted.
    """
    if event.action != "kill":
        return
    if "driver" in event.roles and event.process != "all":
        limit = format_duration(case.timeouts.driver_ns or DRIVER_NS)
        yield f"the clients on {event.host} notice after the driver timeout of {limit}"
    if event.kills_archive and any(event.host in each.archived for each in case.traffic):
        limit = format_duration(case.timeouts.client_liveness_ns or CLIENT_LIVENESS_NS)
        yield f"the streams that it records stand still for the client liveness timeout of {limit}:"
        yield "  until then, the driver waits for the archive like for a slow subscriber"
    if event.process == "publisher":
        limit = format_duration(case.timeouts.client_liveness_ns or CLIENT_LIVENESS_NS)
        yield f"the driver ends the stream after the client liveness timeout of {limit}"


def cut_timeouts(case: Case, fault: FaultCase) -> dict[int, list[Timeout]]:
    """Return the timeouts that can expire while a rule cuts a link, keyed by the duration of the
    cut in nanoseconds.
    """
    found: dict[int, list[Timeout]] = {}
    for traffic in case.traffic:
        for flow in traffic.flows:
            silence_ns = _cut_ns(case, fault, flow, flow.to_host, flow.from_host, ("SM",))
            if silence_ns:
                found.setdefault(silence_ns, []).extend(_silent_receiver(flow, flow.to_host))
            stream_ns = _cut_ns(case, fault, flow, flow.from_host, flow.to_host, STREAM)
            if stream_ns:
                running = [_linger(flow), _image_liveness(case, flow.to_host)]
                found.setdefault(stream_ns, []).extend(running)
    return {lasts_ns: list(dict.fromkeys(each)) for lasts_ns, each in found.items()}


def timeout_lines(lasts_ns: int, timeouts: list[Timeout]) -> Iterator[str]:
    """Yield a line for each timeout that an interruption exceeds, and one line that lists the other
    timeouts.
    """
    below = []
    for each in sorted(timeouts, key=lambda each: each.limit_ns):
        limit = f"{each.name} timeout of {format_duration(each.limit_ns)}"
        if lasts_ns >= NO_LIMIT_NS:
            yield f"may exceed the {limit}: {each.effect}"
        elif lasts_ns >= each.limit_ns:
            yield f"exceeds the {limit}: {each.effect}"
        elif lasts_ns >= each.limit_ns - each.slack_ns:
            yield f"may exceed the {limit}: {each.effect}"
        else:
            below.append(limit)
    if below:
        yield f"shorter than the {', the '.join(dict.fromkeys(below))}"


def _cut_ns(
    case: Case,
    fault: FaultCase,
    flow: TrafficCase,
    sender: str,
    receiver: str,
    types: tuple[str, ...],
) -> int:
    link = case.link_between(sender, receiver)
    return 0 if link < 0 else cut_ns([fault], case.link_names[link], flow.ordinal, types)


def _silent_receiver(traffic: TrafficCase, host: str) -> list[Timeout]:
    """Return the timeouts that can expire at a sender that receives no status messages from a
    host.
    """
    alone = len(traffic.subscribers) == 1
    found = [_connection(traffic, traffic.from_host)] if alone else []
    counted, least = counted_hosts(traffic), required_receivers(traffic)
    if host not in counted or (alone and not least):
        return found
    left = len(counted) - 1
    effect = f"{traffic.id} continues without {host}"
    if left < least:
        sender = traffic.from_host
        effect = f"{traffic.id} is disconnected at {sender} until {host} is back: "
        effect += f"{group_text(flow_control(traffic))} needs {least} receivers, {left} are left"
    return [*found, _receiver(traffic, effect)]


def _receiver(traffic: TrafficCase, effect: str) -> Timeout:
    return Timeout("receiver", flow_control(traffic).timeout_ns, effect, SILENCE_SLACK_NS)


def _connection(traffic: TrafficCase, host: str) -> Timeout:
    effect = f"{traffic.id} is disconnected at {host} until a status message arrives"
    return Timeout("connection", CONNECTION_NS, effect, SILENCE_SLACK_NS)


def _linger(flow: TrafficCase) -> Timeout:
    effect = f"if {flow.id} ends meanwhile, its last frames cannot be sent again"
    return Timeout("linger", parse_channel(flow.channel).linger_ns, effect)


def _image_liveness(case: Case, host: str) -> Timeout:
    limit_ns = case.timeouts.image_liveness_ns or IMAGE_LIVENESS_NS
    effect = f"{host} closes the image; a new one starts at the sender's position"
    return Timeout("image liveness", limit_ns, effect)


def _client_liveness(case: Case, host: str, role: str) -> Timeout:
    limit_ns = case.timeouts.client_liveness_ns or CLIENT_LIVENESS_NS
    return Timeout("client liveness", limit_ns, f"the driver on {host} closes the {role}'s client")


def _runs(case: Case, role: str, host: str) -> bool:
    return any(host in traffic.ends(role) for traffic in case.traffic)
