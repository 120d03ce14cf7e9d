"""What befalls a host itself: its driver or its applications are paused, or killed and restarted.

    events:
      - {id: freeze, whom: {host: b, process: driver}, when: {delivered: 1MiB}, act: {pause: 800ms}}
      - {id: crash, whom: {host: b, process: driver}, when: {after: 500ms},
         act: {kill: {restart_after: 1s}}}

A pause is SIGSTOP and, later, SIGCONT; a kill is SIGKILL. Unlike a fault of a frame, an event comes
at a time: the runner sees how far a stream has come a few times a second, so the same seed stops
a process at about, and never exactly, the same byte. On virtual time it is exact.
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
Process = Literal["driver", "publisher", "subscriber", "archive", "all"]
ALL = ("driver", "publisher", "subscriber", "archive", "recorder", "replayer")
"""The roles of everybody on a host."""
Trigger = Literal["after", "published", "delivered"]


class Whom(Table):
    """The processes that an event befalls."""

    host: Name
    """Where they run."""

    process: Process = "driver"
    """The driver, all publishers or subscribers there, the archive, or all of these; default the
    driver."""


class Moment(Table):
    """When an event comes: exactly one of these."""

    after_ns: Duration | None = Field(default=None, alias="after")
    """So long after the first message was published."""

    published_bytes: Bytes | None = Field(default=None, alias="published", ge=1)
    """When all publishers together have published so many bytes of messages."""

    delivered_bytes: Bytes | None = Field(default=None, alias="delivered", ge=1)
    """When all subscribers together were given so many bytes of messages."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("expected exactly one of after, published, delivered")
        return self


class Kill(Table):
    """The end of a process, without warning."""

    restart_ns: Duration = Field(alias="restart_after", le=PAUSE_NS_MAX)
    """When it is started anew."""


class EventAct(Table):
    """What happens: exactly one of these."""

    pause_ns: Duration | None = Field(default=None, alias="pause", gt=0, le=PAUSE_NS_MAX)
    """It stands still so long."""

    kill: Kill | None = None
    """It is killed, and started anew later."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("expected exactly one of pause, kill")
        return self


class HostEvent(Table):
    """One thing that befalls a host."""

    id: Name
    """Unique among the events."""

    whom: Whom
    when: Moment
    act: EventAct


class Timeouts(Table):
    """Time-outs of all drivers and clients; what is left out has its default."""

    image_liveness_ns: Duration | None = Field(default=None, alias="image_liveness", gt=0)
    """After so long without a frame an image is given up; Aeron's default is 10s."""

    client_liveness_ns: Duration | None = Field(default=None, alias="client_liveness", gt=0)
    """After so long without a sign of life a client is given up; Aeron's default is 10s."""

    driver_ns: Duration | None = Field(default=None, alias="driver", gt=0)
    """After so long without a sign of life a client gives its driver up; Aeron's default is 10s."""


class EventCase(Part):
    """An event with nothing left open."""

    id: str
    host: str
    process: Process
    trigger: Trigger
    at: int
    """Nanoseconds since the first message, or bytes of messages."""
    action: Literal["pause", "kill"]
    lasts_ns: int
    """Until the processes go on, or are started anew."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the processes that it befalls."""
        return ALL if self.process == "all" else (self.process,)

    @property
    def kills_archive(self) -> bool:
        """Whether an archive dies of it."""
        return self.action == "kill" and "archive" in self.roles


class TimeoutsCase(Part):
    """Time-outs in nanoseconds; 0 where the default holds."""

    image_liveness_ns: int = 0
    client_liveness_ns: int = 0
    driver_ns: int = 0

    @property
    def variables(self) -> dict[str, str]:
        """What drivers and clients read from their environment."""
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
"""Aeron's default."""
ARCHIVE_LIVENESS_NS = 10_000_000_000
"""Aeron's: no archive opens a directory whose archive told that it lives less than so long ago."""


def event_case(event: HostEvent) -> EventCase:
    """An event as a case has it."""
    when, act = event.when, event.act
    moments: tuple[tuple[Trigger, int | None], ...] = (
        ("after", when.after_ns),
        ("published", when.published_bytes),
        ("delivered", when.delivered_bytes),
    )
    trigger, at = next((name, at) for name, at in moments if at is not None)
    return EventCase(
        id=event.id,
        host=event.whom.host,
        process=event.whom.process,
        trigger=trigger,
        at=at,
        action="kill" if act.kill else "pause",
        lasts_ns=act.kill.restart_ns if act.kill else act.pause_ns or 0,
    )


def timeouts_case(timeouts: Timeouts) -> TimeoutsCase:
    """Time-outs as a case has them."""
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
    """What makes events impossible, or leaves a stream that nobody goes on with.

    `hosts` has the roles on each host: `driver`, and `publisher`, `subscriber`, `archive` and
    `replayer` where there are such. `rejoins` says whether all streams go on after an image was
    lost.
    """
    for index, event in enumerate(events):
        path: Path = ("events", index)
        case = event_case(event)
        if case.host not in hosts:
            text = f"no host {case.host!r}: the hosts are {', '.join(hosts)}"
            yield Problem((*path, "whom", "host"), text)
            continue
        if case.process != "all" and case.process not in hosts[case.host]:
            yield Problem((*path, "whom", "process"), f"host {case.host} has no {case.process}")
        if case.trigger == "after" and case.at + case.lasts_ns >= wall_ns:
            text = f"comes or ends after budget.wall, {format_duration(wall_ns)}"
            yield Problem((*path, "when", "after"), text)
        if case.trigger != "after" and case.at >= total_bytes:
            text = f"expected less than all content, {format_bytes(total_bytes)}: it never comes"
            yield Problem((*path, "when", case.trigger), text)
        yield from _survivable(case, hosts[case.host], path, rejoins, image_liveness_ns)


def _survivable(
    case: EventCase, roles: set[str], path: Path, rejoins: bool, image_liveness_ns: int
) -> Iterator[Problem]:
    if case.action == "kill" and "subscriber" in case.roles:
        text = "what a subscriber was given is lost with it: expected driver or publisher"
        yield Problem((*path, "whom", "process"), text)
    elif case.action == "kill" and "driver" in case.roles and "publisher" in roles:
        text = "a publication ends with its driver: expected a host that has subscribers only"
        yield Problem((*path, "act", "kill"), text)
    elif case.action == "kill" and case.process == "driver" and "archive" in roles:
        text = "an archive loses its driver: expected a host without one, or its archive alone"
        yield Problem((*path, "act", "kill"), text)
    elif case.action == "kill" and case.process == "archive":
        if "replayer" in roles:
            text = "a replay ends with its archive: expected a host that replays nothing"
            yield Problem((*path, "act", "kill"), text)
        if case.lasts_ns < ARCHIVE_LIVENESS_NS:
            least = format_duration(ARCHIVE_LIVENESS_NS)
            text = f"a killed archive is taken for alive: expected {least} or more"
            yield Problem((*path, "act", "kill", "restart_after"), text)
    elif case.action == "kill" and not rejoins:
        text = "needs `rejoins: true` in the traffic: images are lost, and come again"
        yield Problem((*path, "act", "kill"), text)
    if case.action == "pause" and case.lasts_ns >= image_liveness_ns and not rejoins:
        least = format_duration(image_liveness_ns)
        text = f"needs `rejoins: true` in the traffic: after {least} an image is given up"
        yield Problem((*path, "act", "pause"), text)


def event_line(event: EventCase) -> str:
    """An event in words."""
    moment = {
        "after": f"{format_duration(event.at)} after the first message",
        "published": f"once {format_bytes(event.at)} are published",
        "delivered": f"once {format_bytes(event.at)} are delivered",
    }[event.trigger]
    whom = "driver and applications" if event.process == "all" else f"the {event.process}"
    lasts = format_duration(event.lasts_ns)
    what = f"paused for {lasts}" if event.action == "pause" else f"killed, started anew {lasts} on"
    return f"{event.id}: {whom} on {event.host} {what}, {moment}"
