"""Validates events: rejects those that are impossible, affect nothing, or would end a stream for
good.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.resolved.cut import CLIENT_LIVENESS_NS, DRIVER_NS
from windtunnel.harness.scenario.resolved.impairment_case import impairment_case
from windtunnel.harness.scenario.resolved.link_case import CHANGES_MAX
from windtunnel.harness.scenario.schema.host_event import (
    IMAGE_LIVENESS_NS,
    EventCase,
    HostEvent,
    event_case,
)
from windtunnel.harness.scenario.schema.impairment import Impairments
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration
from windtunnel.harness.scenario.validation.impairment_validation import BOTH, direction_problems
from windtunnel.harness.scenario.validation.interruption_validation import is_reliable
from windtunnel.harness.scenario.validation.link_directions import (
    Direction,
    event_directions,
    unknown_direction,
)

ARCHIVE_LIVENESS_NS = 10_000_000_000
"""Time for which Aeron's archive refuses to open a directory after another archive was active in
it.
"""

TIMER_NS = 1_000_000_000
"""Default interval at which a driver checks whether its clients are alive."""


def event_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield a problem for each event that is impossible or would end a stream permanently."""
    hosts = _roles(scenario)
    total_bytes = sum(each.content.total_bytes for each in scenario.traffic if not each.replays)
    for index, event in enumerate(scenario.events):
        path: Path = ("events", index)
        case = event_case(event)
        yield from _moment(scenario, case, total_bytes, path)
        if case.host and case.host not in hosts:
            text = f"expected one of the hosts {', '.join(hosts)}, found {case.host!r}"
            yield Problem((*path, "whom", "host"), text)
        elif case.changes_links:
            yield from _link_event(scenario, event, path)
        elif case.action == "step_clock":
            yield from _clock_step(scenario, event, path)
        elif not case.host:
            text = f"a {case.action} affects processes: write `host` in place of `link`"
            yield Problem((*path, "whom", "link"), text)
        else:
            if case.process != "all" and case.process not in hosts[case.host]:
                yield Problem((*path, "whom", "process"), f"host {case.host} has no {case.process}")
            yield from _survival_problems(scenario, case, hosts[case.host], path)
    changing = [each for each in scenario.events if each.changes_links]
    count = 2 * sum(len(event_directions(scenario, each)) for each in changing)
    if count > CHANGES_MAX:
        text = f"the events change link directions {count} times, expected at most {CHANGES_MAX}"
        yield Problem(("events",), text)


def _roles(scenario: Scenario) -> dict[str, set[str]]:
    """Return the roles on each host: always `driver`, plus `publisher`, `subscriber`, `archive`,
    `replayer` and `application` if present.
    """
    roles = {host: {"driver"} for host in scenario.network.hosts}
    for traffic in scenario.traffic:
        for host in traffic.from_hosts:
            roles.get(host, set()).add(traffic.sender)
        for host in traffic.to_hosts:
            roles.get(host, set()).add("subscriber")
    for archive in scenario.archives:
        roles.get(archive.host, set()).add("archive")
    for application in scenario.applications:
        roles.get(application.host, set()).add("application")
    return roles


def _moment(scenario: Scenario, case: EventCase, total_bytes: int, path: Path) -> Iterator[Problem]:
    wall_ns = scenario.budget.wall_ns
    if case.trigger == "after" and case.at + case.lasts_ns >= wall_ns:
        text = f"the event occurs or ends after budget.wall ({format_duration(wall_ns)})"
        yield Problem((*path, "when", "after"), text)
    if case.trigger != "after" and total_bytes == 0:
        yield Problem((*path, "when", case.trigger), "there is no traffic: use `after`")
    elif case.trigger != "after" and case.at >= total_bytes:
        text = f"expected less than the total content of {format_bytes(total_bytes)}"
        yield Problem((*path, "when", case.trigger), text)


def _link_event(scenario: Scenario, event: HostEvent, path: Path) -> Iterator[Problem]:
    """Yield the problems with a partition, or with impairments for a while."""
    impair = event.act.impair
    action = "partition" if impair is None else "impair"
    at: Path = (*path, "act", action)
    if any(each.backend == "netem" for each in scenario.network.all_links):
        text = "only the relay changes links during a run: write `backend: relay`, or remove the "
        yield Problem(at, f"{text}event")
    for key in ("process", "application"):
        if key in event.whom.model_fields_set:
            text = f"{action} affects links and not processes: remove this key"
            yield Problem((*path, "whom", key), text)
    directions = event_directions(scenario, event)
    if text := unknown_direction(scenario, directions):
        yield Problem((*path, "whom", "link"), text)
    elif impair is not None:
        yield from impairment_problems(scenario, impair, directions, at)
    elif scenario.traffic:
        text = "the streams of `traffic` need a fault rule instead: `act: {drop: always}`"
        yield Problem(at, text)
    elif event.whom.host is None:
        text = "a partition cuts a host off: write `host`, or `act: {impair: {loss: 100%, ...}}`"
        yield Problem((*path, "whom", "link"), text)


def _clock_step(scenario: Scenario, event: HostEvent, path: Path) -> Iterator[Problem]:
    """Yield the problems with a step of a host's clock."""
    at: Path = (*path, "act", "step_clock")
    step_ns, timeouts = event.act.step_clock_ns or 0, scenario.timeouts
    for key in ("link", "process", "application"):
        name = "links" if key == "link" else key
        if name in event.whom.model_fields_set:
            text = "all processes of a host share its clock: "
            text += "write `host` in place of `link`" if key == "link" else "remove this key"
            yield Problem((*path, "whom", key), text)
    if scenario.fidelity != ("sim",):
        found = ", ".join(scenario.fidelity)
        text = "Linux namespaces share one realtime clock: expected `fidelity: [sim]`"
        yield Problem(at, f"{text}, found {found}")
    if step_ns == 0:
        yield Problem(at, "expected a step forward, or back with a minus sign, found 0")
    # Both are measured with the realtime clock.
    end_ns = min(timeouts.client_liveness_ns or CLIENT_LIVENESS_NS, timeouts.driver_ns or DRIVER_NS)
    if step_ns >= end_ns:
        text = f"expected less than {format_duration(end_ns)}, found {format_duration(step_ns)}"
        yield Problem(at, f"{text}: drivers and clients would seem dead to each other")


def impairment_problems(
    scenario: Scenario, impair: Impairments, directions: list[Direction], at: Path
) -> Iterator[Problem]:
    """Yield the problems with what the links' own impairments and those of an event result in."""
    names = impair.model_fields_set & Impairments.model_fields.keys()
    if not names:
        yield from direction_problems(Impairments(), at)
        return
    given = {name: getattr(impair, name) for name in names}
    found: dict[Problem, None] = {}
    for direction in directions:
        own = _own_impairments(scenario, direction)
        found |= dict.fromkeys(direction_problems(own.model_copy(update=given), at))
    yield from found
    loss = impairment_case("", impair).loss
    if scenario.traffic and loss is not None and loss.rate >= 1:
        text = "the streams of `traffic` need a fault rule instead: `act: {drop: always}`"
        yield Problem((*at, "loss"), text)


def _own_impairments(scenario: Scenario, direction: Direction) -> Impairments:
    for link in scenario.network.all_links:
        if set(link.between) == set(direction):
            own = link.impairments.get(BOTH) or link.impairments.get("->".join(direction))
            return own or Impairments()
    return Impairments()


def _stepped_back_ns(scenario: Scenario, host: str) -> int:
    """Return by how much a host's clock steps back altogether."""
    steps = [each.act.step_clock_ns or 0 for each in scenario.events if each.whom.host == host]
    return -sum(min(0, each) for each in steps)


def _survival_problems(
    scenario: Scenario, case: EventCase, roles: set[str], path: Path
) -> Iterator[Problem]:
    """Yield the problems with an event that a stream would not survive."""
    # All streams continue after the loss of an image.
    rejoins = all(each.rejoins for each in scenario.traffic)
    image_liveness_ns = scenario.timeouts.image_liveness_ns or IMAGE_LIVENESS_NS
    if case.action == "kill" and "subscriber" in case.roles:
        text = (
            "a killed subscriber loses its record of messages: kill a driver or publisher instead"
        )
        yield Problem((*path, "whom", "process"), text)
    elif case.action == "kill" and "driver" in case.roles and "publisher" in roles:
        text = "a publication ends with its driver: choose a host with subscribers only"
        yield Problem((*path, "act", "kill"), text)
    elif case.action == "kill" and case.process == "driver" and "archive" in roles:
        text = "the archive would lose its driver: kill the archive, or choose another host"
        yield Problem((*path, "act", "kill"), text)
    elif case.action == "kill" and case.process == "archive":
        if "replayer" in roles:
            text = "a replay ends with its archive: choose a host without replays"
            yield Problem((*path, "act", "kill"), text)
        back_ns = _stepped_back_ns(scenario, case.host)
        if case.lasts_ns < ARCHIVE_LIVENESS_NS + back_ns:
            least = format_duration(ARCHIVE_LIVENESS_NS + back_ns)
            text = f"expected at least {least}: until then the killed archive seems to be alive"
            text += f", since the clock steps back by {format_duration(back_ns)}" * bool(back_ns)
            yield Problem((*path, "act", "kill", "restart_after"), text)
    elif case.action == "kill" and case.process != "application" and not rejoins:
        text = "needs `rejoins: true` in the traffic: images are lost and created again"
        yield Problem((*path, "act", "kill"), text)
    elif case.action == "kill" and "publisher" in case.roles:
        yield from _shared_log(scenario, case, (*path, "act", "kill", "restart_after"))
        for traffic in scenario.traffic:
            if case.host in traffic.from_hosts and not is_reliable(traffic):
                text = f"expected reliable streams: with gaps in {traffic.id!r}, the judge cannot "
                text += "tell what was sent in which of its sessions"
                yield Problem((*path, "act", "kill"), text)
    is_long = case.process != "application" and case.lasts_ns >= image_liveness_ns
    if case.action == "pause" and is_long and not rejoins:
        least = format_duration(image_liveness_ns)
        text = f"needs `rejoins: true` in the traffic: images are closed after {least}"
        yield Problem((*path, "act", "pause"), text)


def _shared_log(scenario: Scenario, case: EventCase, path: Path) -> Iterator[Problem]:
    """Yield a problem if a restarted publisher would publish to the log of the killed one, which
    the driver closes when the client has timed out.
    """
    liveness_ns = scenario.timeouts.client_liveness_ns or CLIENT_LIVENESS_NS
    if case.lasts_ns > liveness_ns + TIMER_NS:
        return
    for traffic in scenario.traffic:
        is_shared = traffic.publication == "concurrent" and not traffic.replays
        if is_shared and case.host in traffic.from_hosts:
            least = format_duration(liveness_ns + TIMER_NS)
            text = f"expected more than {least}: until then the concurrent publication of "
            text += f"{traffic.id!r} exists, and the new publisher would continue its log. "
            yield Problem(path, f"{text}Use `publication: exclusive`, or a later restart")
