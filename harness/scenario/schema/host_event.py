"""Host events, which pause or kill a driver, an application or an archive on a host, step a host's
clock, cut a host off from all others, or impair links for a while.

    events:
      - {id: freeze, whom: {host: b, process: driver}, when: {delivered: 1MiB}, act: {pause: 800ms}}
      - {id: crash, whom: {host: b, process: driver}, when: {after: 500ms},
         act: {kill: {restart_after: 1s}}}
      - {id: cut, whom: {host: b}, when: {after: 3s}, act: {partition: 2s}}
      - {id: ntp, whom: {host: a}, when: {after: 1s}, act: {step_clock: -5s}}
      - {id: storm, whom: {link: a->b}, when: {after: 3s}, act: {impair: {loss: 10%, for: 2s}}}

A pause is SIGSTOP followed by SIGCONT. A kill is SIGKILL followed by a restart. Unlike fault rules,
events depend on real time: the runner polls the progress of streams a few times per second, so runs
with the same seed stop a process at roughly, but not exactly, the same byte. On virtual time events
are exact.
"""

from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_case import LINKS_MAX
from windtunnel.harness.scenario.schema.fault import LinkPattern
from windtunnel.harness.scenario.schema.impairment import Impairments
from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.table import (
    Bytes,
    Duration,
    Name,
    SignedDuration,
    Table,
    one_or_many,
)
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration

EVENTS_MAX = 64
PAUSE_NS_MAX = 60_000_000_000
Process = Literal["driver", "publisher", "subscriber", "archive", "application", "all"]
ALL_ROLES = (
    *("driver", "publisher", "subscriber", "archive", "recorder", "replayer", "replicator"),
    "application",
)
"""All roles that a process on a host can have."""
Trigger = Literal["after", "published", "delivered"]
EventAction = Literal["pause", "kill", "partition", "impair", "step_clock"]


class EventTarget(Table):
    """The processes or the links that an event affects. Exactly one of `host` and `link` is
    required.
    """

    host: Name | None = None
    """Host on which the processes run, or whose links are affected."""

    links: Annotated[tuple[LinkPattern, ...], BeforeValidator(one_or_many)] = Field(
        default=(), alias="link", strict=False, min_length=1, max_length=2 * LINKS_MAX
    )
    """A direction to impair such as `a->b`, or a list. `*` stands for any host, `both` for all
    directions.
    """

    process: Process = "driver"
    """The driver, all publishers, subscribers or applications on the host, the archive, or `all` of
    these. Default: the driver.
    """

    application: Name | None = None
    """Id of the only application that the event affects, with `process: application`. Default: all
    on the host.
    """

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.host is None) == (not self.links):
            raise ValueError("expected exactly one of host, link")
        return self

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


class EventImpairments(Impairments):
    """Impairments that links have for a while. Each key replaces that of the link's own
    impairments, and the others remain. At least one is required.
    """

    lasts_ns: Duration = Field(alias="for", gt=0)
    """Time after which the link's own impairments apply again."""

    @model_validator(mode="after")
    def _some(self) -> Self:
        if len(self.model_fields_set) == 1:
            raise ValueError("expected at least one of loss, delay, rate, duplicate, corrupt")
        return self


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

    impair: EventImpairments | None = None
    """Impairments that the host's links, or the given directions, have for a while."""

    step_clock_ns: SignedDuration | None = Field(default=None, alias="step_clock")
    """Time by which the host's realtime clock, which gives the time of day, steps forward, or back
    if it is negative. The monotonic clock continues. Only in simulations.
    """

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"expected exactly one of {', '.join(get_args(EventAction))}")
        return self


class HostEvent(Table):
    """An event on one host or on links: what is affected, the trigger and the action."""

    id: Name
    """Name of the event, unique among the events."""

    whom: EventTarget
    when: EventMoment
    act: EventAct

    @property
    def changes_links(self) -> bool:
        """Return whether the event cuts the host off, or impairs links."""
        return self.act.partition_ns is not None or self.act.impair is not None


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

    publication_unblock_ns: Duration | None = Field(default=None, alias="publication_unblock", gt=0)
    """Time after which a claim that is not committed no longer blocks its publication. It must be
    longer than the client liveness timeout. Aeron's default is 15s.
    """


class EventCase(Part):
    """An event in a resolved case."""

    id: str
    host: str
    """The host, or empty if the event affects only the links in `impairments`."""
    process: Process
    trigger: Trigger
    at: int
    """Nanoseconds since the first message, or message bytes, depending on `trigger`."""
    action: EventAction
    lasts_ns: int
    """Time until the processes continue or are restarted, the host is connected again, or the links
    have their own impairments again. 0 if the action is `step_clock`.
    """
    application: str = ""
    """Id of the only affected application, or empty if all processes with the roles are."""
    step_ns: int = 0
    """Time by which the host's realtime clock steps, if the action is `step_clock`."""
    drawn: bool = False
    """Whether the scenario's nemesis has drawn it. It then need not happen, if the run ends."""

    impairments: tuple[ImpairmentCase, ...] = ()
    """For each affected link direction, the impairments that are set, if the action is `impair`."""

    @property
    def changes_links(self) -> bool:
        """Return whether the event cuts the host off, or impairs links."""
        return self.action in ("partition", "impair")

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the roles of the affected processes."""
        if self.changes_links:
            return ()
        is_for_all = self.process == "all" or self.action == "step_clock"
        return ALL_ROLES if is_for_all else (self.process,)

    @property
    def stops_processes(self) -> bool:
        """Return whether the event pauses or kills processes."""
        return self.action in ("pause", "kill")

    @property
    def kills_archive(self) -> bool:
        """Return whether the event kills an archive."""
        return self.action == "kill" and "archive" in self.roles


class TimeoutsCase(Part):
    """Timeouts in a resolved case in nanoseconds, or 0 for the defaults."""

    image_liveness_ns: int = 0
    client_liveness_ns: int = 0
    driver_ns: int = 0
    publication_unblock_ns: int = 0

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
        if self.publication_unblock_ns:
            found["AERON_PUBLICATION_UNBLOCK_TIMEOUT"] = f"{self.publication_unblock_ns}ns"
        return found


DEFAULT_TIMEOUTS = TimeoutsCase()
IMAGE_LIVENESS_NS = 10_000_000_000
"""Aeron's default image liveness timeout."""


def event_case(event: HostEvent) -> EventCase:
    """Convert a host event of a scenario file to the form used in a resolved case, without
    impairments, which depend on the links.
    """
    when, act = event.when, event.act
    moments: tuple[tuple[Trigger, int | None], ...] = (
        ("after", when.after_ns),
        ("published", when.published_bytes),
        ("delivered", when.delivered_bytes),
    )
    trigger, at = next((name, at) for name, at in moments if at is not None)
    lengths_ns: dict[EventAction, int | None] = {
        "pause": act.pause_ns,
        "kill": act.kill.restart_ns if act.kill else None,
        "partition": act.partition_ns,
        "impair": act.impair.lasts_ns if act.impair else None,
        "step_clock": None if act.step_clock_ns is None else 0,
    }
    action, lasts_ns = next((name, ns) for name, ns in lengths_ns.items() if ns is not None)
    return EventCase(
        id=event.id,
        host=event.whom.host or "",
        process=event.whom.process,
        trigger=trigger,
        at=at,
        action=action,
        lasts_ns=lasts_ns,
        application=event.whom.application or "",
        step_ns=act.step_clock_ns or 0,
    )


def timeouts_case(timeouts: Timeouts) -> TimeoutsCase:
    """Convert the timeouts of a scenario file to the form used in a resolved case. Omitted timeouts
    become 0.
    """
    return TimeoutsCase(
        image_liveness_ns=timeouts.image_liveness_ns or 0,
        client_liveness_ns=timeouts.client_liveness_ns or 0,
        driver_ns=timeouts.driver_ns or 0,
        publication_unblock_ns=timeouts.publication_unblock_ns or 0,
    )


def moment_text(event: EventCase, *, has_traffic: bool) -> str:
    """Return when an event happens, as text."""
    if event.trigger != "after":
        return f"when {format_bytes(event.at)} has been {event.trigger}"
    begin = "the first message" if has_traffic else "all applications were ready"
    return f"{format_duration(event.at)} after {begin}"


def event_line(event: EventCase, *, has_traffic: bool = True, links: str = "") -> str:
    """Return a one-line description of an event, which impairs the link directions `links`."""
    moment = moment_text(event, has_traffic=has_traffic)
    if event.action == "partition":
        return f"{event.id}: {event.host} cut off for {format_duration(event.lasts_ns)}, {moment}"
    if event.action == "impair":
        return f"{event.id}: {links} impaired for {format_duration(event.lasts_ns)}, {moment}"
    if event.action == "step_clock":
        way = "back" if event.step_ns < 0 else "forward"
        step = f"{way} by {format_duration(abs(event.step_ns))}"
        return f"{event.id}: the clock of {event.host} stepped {step}, {moment}"
    target = "driver and applications" if event.process == "all" else f"the {event.process}"
    if event.process == "application":
        target = f"application {event.application}" if event.application else "the applications"
    duration = format_duration(event.lasts_ns)
    killed = f"killed and restarted after {duration}"
    action = f"paused for {duration}" if event.action == "pause" else killed
    return f"{event.id}: {target} on {event.host} {action}, {moment}"
