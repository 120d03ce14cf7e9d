"""Host events, which pause or kill a driver, an application or an archive on a host, or cut a host
off from all others.

    events:
      - {id: freeze, whom: {host: b, process: driver}, when: {delivered: 1MiB}, act: {pause: 800ms}}
      - {id: crash, whom: {host: b, process: driver}, when: {after: 500ms},
         act: {kill: {restart_after: 1s}}}
      - {id: cut, whom: {host: b}, when: {after: 3s}, act: {partition: 2s}}

A pause is SIGSTOP followed by SIGCONT. A kill is SIGKILL followed by a restart. Unlike fault rules,
events depend on real time: the runner polls the progress of streams a few times per second, so runs
with the same seed stop a process at roughly, but not exactly, the same byte. On virtual time events
are exact.
"""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.table import Bytes, Duration, Name, Table
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration

EVENTS_MAX = 64
PAUSE_NS_MAX = 60_000_000_000
Process = Literal["driver", "publisher", "subscriber", "archive", "application", "all"]
ALL_ROLES = (
    *("driver", "publisher", "subscriber", "archive", "recorder", "replayer"),
    "application",
)
"""All roles that a process on a host can have."""
Trigger = Literal["after", "published", "delivered"]


class EventTarget(Table):
    """The processes that an event affects."""

    host: Name
    """Host on which the processes run."""

    process: Process = "driver"
    """The driver, all publishers, subscribers or applications on the host, the archive, or `all` of
    these. Default: the driver.
    """

    application: Name | None = None
    """Id of the only application that the event affects, with `process: application`. Default: all
    on the host.
    """

    @model_validator(mode="after")
    def _one_application(self) -> Self:
        if self.application is not None and self.process != "application":
            raise ValueError(f"expected `process: application`, found {self.process}")
        return self


class EventMoment(Table):
    """The trigger of an event. Exactly one key is required."""

    after_ns: Duration | None = Field(default=None, alias="after")
    """Time after the first message was published, or, without traffic, after all applications were
    ready.
    """

    published_bytes: Bytes | None = Field(default=None, alias="published", ge=1)
    """Total message bytes published by all publishers."""

    delivered_bytes: Bytes | None = Field(default=None, alias="delivered", ge=1)
    """Total message bytes delivered to all subscribers."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("expected exactly one of after, published, delivered")
        return self


class Kill(Table):
    """Kills a process with SIGKILL and restarts it later."""

    restart_ns: Duration = Field(alias="restart_after", le=PAUSE_NS_MAX)
    """Delay before the process is restarted."""


class EventAct(Table):
    """The action of an event. Exactly one key is required."""

    pause_ns: Duration | None = Field(default=None, alias="pause", gt=0, le=PAUSE_NS_MAX)
    """Time for which the process is stopped."""

    kill: Kill | None = None
    """Kill the process and restart it."""

    partition_ns: Duration | None = Field(default=None, alias="partition", gt=0, le=PAUSE_NS_MAX)
    """Time for which the host's links lose everything. Only in a scenario with applications alone.
    With `traffic`, use a rule that drops everything.
    """

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("expected exactly one of pause, kill, partition")
        return self


class HostEvent(Table):
    """An event on one host: the affected processes, the trigger and the action."""

    id: Name
    """Name of the event, unique among the events."""

    whom: EventTarget
    when: EventMoment
    act: EventAct


class Timeouts(Table):
    """Timeouts of all drivers and clients. Omitted timeouts have their defaults."""

    image_liveness_ns: Duration | None = Field(default=None, alias="image_liveness", gt=0)
    """Image liveness timeout. Aeron's default is 10s."""

    client_liveness_ns: Duration | None = Field(default=None, alias="client_liveness", gt=0)
    """Client liveness timeout. Aeron's default is 10s."""

    driver_ns: Duration | None = Field(default=None, alias="driver", gt=0)
    """Time without a heartbeat after which clients consider the driver dead. Aeron's default is
    10s.
    """


class EventCase(Part):
    """An event in a resolved case."""

    id: str
    host: str
    process: Process
    trigger: Trigger
    at: int
    """Nanoseconds since the first message, or message bytes, depending on `trigger`."""
    action: Literal["pause", "kill", "partition"]
    lasts_ns: int
    """Time until the processes continue or are restarted, or the host is connected again."""
    application: str = ""
    """Id of the only affected application, or empty if all processes with the roles are."""
    drawn: bool = False
    """Whether the scenario's nemesis has drawn it. It then need not happen, if the run ends."""

    @property
    def cuts_links(self) -> bool:
        """Return whether the event cuts the host off."""
        return self.action == "partition"

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the roles of the affected processes."""
        if self.cuts_links:
            return ()
        return ALL_ROLES if self.process == "all" else (self.process,)

    @property
    def kills_archive(self) -> bool:
        """Return whether the event kills an archive."""
        return self.action == "kill" and "archive" in self.roles


class TimeoutsCase(Part):
    """Timeouts in a resolved case in nanoseconds, or 0 for the defaults."""

    image_liveness_ns: int = 0
    client_liveness_ns: int = 0
    driver_ns: int = 0

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables that set the scenario's liveness timeouts in Aeron."""
        found = {}
        if self.image_liveness_ns:
            found["AERON_IMAGE_LIVENESS_TIMEOUT"] = f"{self.image_liveness_ns}ns"
        if self.client_liveness_ns:
            found["AERON_CLIENT_LIVENESS_TIMEOUT"] = f"{self.client_liveness_ns}ns"
        if self.driver_ns:
            found["AERON_DRIVER_TIMEOUT"] = str(self.driver_ns // 1_000_000)
        return found


DEFAULT_TIMEOUTS = TimeoutsCase()
IMAGE_LIVENESS_NS = 10_000_000_000
"""Aeron's default image liveness timeout."""
ARCHIVE_LIVENESS_NS = 10_000_000_000
"""Time for which Aeron's archive refuses to open a directory after another archive was active in
it.
"""


def event_case(event: HostEvent) -> EventCase:
    """Convert a host event of a scenario file to the form used in a resolved case."""
    when, act = event.when, event.act
    moments: tuple[tuple[Trigger, int | None], ...] = (
        ("after", when.after_ns),
        ("published", when.published_bytes),
        ("delivered", when.delivered_bytes),
    )
    trigger, at = next((name, at) for name, at in moments if at is not None)
    action: Literal["pause", "kill", "partition"] = "kill" if act.kill else "pause"
    return EventCase(
        id=event.id,
        host=event.whom.host,
        process=event.whom.process,
        trigger=trigger,
        at=at,
        action="partition" if act.partition_ns else action,
        lasts_ns=act.kill.restart_ns if act.kill else act.pause_ns or act.partition_ns or 0,
        application=event.whom.application or "",
    )


def timeouts_case(timeouts: Timeouts) -> TimeoutsCase:
    """Convert the timeouts of a scenario file to the form used in a resolved case. Omitted timeouts
    become 0.
    """
    return TimeoutsCase(
        image_liveness_ns=timeouts.image_liveness_ns or 0,
        client_liveness_ns=timeouts.client_liveness_ns or 0,
        driver_ns=timeouts.driver_ns or 0,
    )


def event_problems(
    events: tuple[HostEvent, ...],
    hosts: dict[str, set[str]],
    total_bytes: int,
    wall_ns: int,
    *,
    rejoins: bool,
    image_liveness_ns: int,
) -> Iterator[Problem]:
    """Yield a problem for each event that is impossible or would end a stream permanently.

    `hosts` contains the roles on each host: always `driver`, plus `publisher`, `subscriber`,
    `archive` and `replayer` if present. `rejoins` is true if all streams continue after the loss of
    an image.
    """
    for index, event in enumerate(events):
        path: Path = ("events", index)
        case = event_case(event)
        if case.host not in hosts:
            text = f"expected one of the hosts {', '.join(hosts)}, found {case.host!r}"
            yield Problem((*path, "whom", "host"), text)
            continue
        if case.process != "all" and case.process not in hosts[case.host]:
            yield Problem((*path, "whom", "process"), f"host {case.host} has no {case.process}")
        if case.trigger == "after" and case.at + case.lasts_ns >= wall_ns:
            text = f"the event occurs or ends after budget.wall ({format_duration(wall_ns)})"
            yield Problem((*path, "when", "after"), text)
        if case.trigger != "after" and total_bytes == 0:
            yield Problem((*path, "when", case.trigger), "there is no traffic: use `after`")
        elif case.trigger != "after" and case.at >= total_bytes:
            text = f"expected less than the total content of {format_bytes(total_bytes)}"
            yield Problem((*path, "when", case.trigger), text)
        if not case.cuts_links:
            yield from _survival_problems(case, hosts[case.host], path, rejoins, image_liveness_ns)
            continue
        if total_bytes:
            text = "the streams of `traffic` need a fault rule instead: `act: {drop: always}`"
            yield Problem((*path, "act", "partition"), text)
        if event.whom.model_fields_set - {"host"}:
            text = "a partition affects the whole host: remove this key"
            yield Problem((*path, "whom", "process"), text)


def _survival_problems(
    case: EventCase, roles: set[str], path: Path, rejoins: bool, image_liveness_ns: int
) -> Iterator[Problem]:
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
        if case.lasts_ns < ARCHIVE_LIVENESS_NS:
            least = format_duration(ARCHIVE_LIVENESS_NS)
            text = f"expected at least {least}: until then the killed archive seems to be alive"
            yield Problem((*path, "act", "kill", "restart_after"), text)
    elif case.action == "kill" and case.process != "application" and not rejoins:
        text = "needs `rejoins: true` in the traffic: images are lost and created again"
        yield Problem((*path, "act", "kill"), text)
    is_long = case.process != "application" and case.lasts_ns >= image_liveness_ns
    if case.action == "pause" and is_long and not rejoins:
        least = format_duration(image_liveness_ns)
        text = f"needs `rejoins: true` in the traffic: images are closed after {least}"
        yield Problem((*path, "act", "pause"), text)


def event_line(event: EventCase, *, has_traffic: bool = True) -> str:
    """Return a one-line description of an event."""
    begin = "the first message" if has_traffic else "all applications were ready"
    moment = {
        "after": f"{format_duration(event.at)} after {begin}",
        "published": f"when {format_bytes(event.at)} has been published",
        "delivered": f"when {format_bytes(event.at)} has been delivered",
    }[event.trigger]
    if event.cuts_links:
        return f"{event.id}: {event.host} cut off for {format_duration(event.lasts_ns)}, {moment}"
    target = "driver and applications" if event.process == "all" else f"the {event.process}"
    if event.process == "application":
        target = f"application {event.application}" if event.application else "the applications"
    duration = format_duration(event.lasts_ns)
    killed = f"killed and restarted after {duration}"
    action = f"paused for {duration}" if event.action == "pause" else killed
    return f"{event.id}: {target} on {event.host} {action}, {moment}"
