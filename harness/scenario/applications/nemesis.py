"""The nemesis of a scenario: events whose order, times and victims are drawn from the seed.

    nemesis:
      events: 6
      acts: [pause, kill, partition, impair]
      applications: [service]             # default: all
      drivers: [b]                        # default: none
      impair: [{loss: 10%}, {rate: 1Mbit/s}]
      every: {from: 500ms, to: 3s}        # from the end of an event to the next one
      lasts: {from: 200ms, to: 2s}

     ready  gap   kill service   gap  partition a   gap  pause ...
    --|----------|XXXXXXXXXXXX|------|XXXXXXXXXXX|------|XXXXX|----->

Events never overlap, so the last one of a run that failed is the one that it did not survive. Equal
seeds draw equal events. One that is due after the run has ended does not happen.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from windtunnel.harness.scenario.applications.application import Application
from windtunnel.harness.scenario.schema.host_event import PAUSE_NS_MAX, EventCase, Process
from windtunnel.harness.scenario.schema.impairment import Impairments
from windtunnel.harness.scenario.schema.problem import Path, Problem, unknown_name
from windtunnel.harness.scenario.schema.table import Duration, Name, Table, one_or_many
from windtunnel.harness.scenario.schema.units import format_duration

DRAWN_MAX = 32
NAMES_MAX = 32
Act = Literal["pause", "kill", "partition", "impair"]
ACTS: tuple[Act, ...] = get_args(Act)
LINK_ACTS = ("partition", "impair")
IMPAIRMENTS_MAX = 16
MS = 1_000_000
"""Drawn times are whole milliseconds, so that they are easy to read."""
PREFIX = "nemesis-"
"""Prefix of the ids of drawn events. Their numbers follow."""


class Span(Table):
    """A range of times. Each time in it is as likely as the others."""

    least_ns: Duration = Field(alias="from", le=PAUSE_NS_MAX)
    """The shortest time."""

    most_ns: Duration = Field(alias="to", gt=0, le=PAUSE_NS_MAX)
    """The longest time."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if self.least_ns > self.most_ns:
            raise ValueError("expected `from` to be at most `to`")
        return self


class Nemesis(Table):
    """Draws events from the seed: what happens, to whom, when, and for how long."""

    count: int = Field(default=5, alias="events", ge=1, le=DRAWN_MAX)
    """Number of events. Default: 5."""

    acts: tuple[Act, ...] | None = Field(
        default=None, strict=False, min_length=1, max_length=len(ACTS)
    )
    """What happens: `pause` and `kill` stop or restart an application or a driver, `partition` cuts
    a host off from all others, `impair` impairs its links. Default: all of them, but `impair` only
    if the key `impair` says how.
    """

    impair: Annotated[tuple[Impairments, ...], BeforeValidator(one_or_many)] = Field(
        default=(), strict=False, min_length=1, max_length=IMPAIRMENTS_MAX
    )
    """Impairments for the act `impair`, or a list, of which one is drawn each time. They apply to
    all links of a host. Each key replaces that of a link's own impairments.
    """

    applications: tuple[Name, ...] | None = Field(default=None, strict=False, max_length=NAMES_MAX)
    """Ids of the applications that may be paused or killed. Default: all."""

    drivers: tuple[Name, ...] = Field(default=(), strict=False, max_length=NAMES_MAX)
    """Hosts whose drivers may be paused or killed. Their applications must survive that. Default:
    none.
    """

    hosts: tuple[Name, ...] | None = Field(
        default=None, strict=False, min_length=1, max_length=NAMES_MAX
    )
    """Hosts that may be cut off, or whose links may be impaired. Default: all."""

    every: Span = Span.model_validate({"from": "500ms", "to": "3s"})
    """Time before each event: since all applications were ready, or since the end of the one before
    it. Default: 500ms to 3s.
    """

    lasts: Span = Span.model_validate({"from": "200ms", "to": "2s"})
    """How long an event lasts: until processes continue or are started again, until a host is
    connected again, or until links have their own impairments again. Default: 200ms to 2s.
    """

    @property
    def drawn_acts(self) -> tuple[Act, ...]:
        """Return the acts of which one is drawn for each event."""
        if self.acts is not None:
            return self.acts
        return tuple(each for each in ACTS if each != "impair" or self.impair)

    @property
    def changes_links(self) -> bool:
        """Return whether it may cut off hosts or impair links."""
        return any(each in LINK_ACTS for each in self.drawn_acts)

    def targets(
        self, act: Act, applications: Sequence[Application], hosts: Sequence[str]
    ) -> list[tuple[str, Process, str]]:
        """Return what an act may affect: a host, the process, and the id of an application."""
        if act in LINK_ACTS:
            return [(host, "all", "") for host in hosts if self.hosts is None or host in self.hosts]
        found: list[tuple[str, Process, str]] = [
            (each.host, "application", each.id)
            for each in applications
            if self.applications is None or each.id in self.applications
        ]
        return found + [(host, "driver", "") for host in self.drivers]


def drawn_events(
    nemesis: Nemesis, seed: int, applications: Sequence[Application], hosts: Sequence[str]
) -> Iterator[tuple[EventCase, Impairments | None]]:
    """Yield the events that a seed draws, in the order of their times, and how each impairs the
    links of its host, if it does.
    """
    at_ns, acts = 0, nemesis.drawn_acts
    for index in range(nemesis.count):
        act = acts[_drawn(seed, index, "act", len(acts))]
        targets = nemesis.targets(act, applications, hosts)
        host, process, application = targets[_drawn(seed, index, "target", len(targets))]
        at_ns += _time_ns(seed, index, "gap", nemesis.every)
        lasts_ns = _time_ns(seed, index, "length", nemesis.lasts)
        event = EventCase(
            id=f"{PREFIX}{index + 1}",
            host=host,
            process=process,
            trigger="after",
            at=at_ns,
            action=act,
            lasts_ns=lasts_ns,
            application=application,
            drawn=True,
        )
        ways = nemesis.impair if act == "impair" else ()
        yield event, ways[_drawn(seed, index, "impairments", len(ways))] if ways else None
        at_ns += lasts_ns


def _time_ns(seed: int, index: int, what: str, span: Span) -> int:
    # A pause without a length would not be one.
    least_ns = max(1, span.least_ns)
    drawn_ns = least_ns + _drawn(seed, index, what, max(1, span.most_ns - least_ns + 1))
    whole_ns = drawn_ns - drawn_ns % MS
    return whole_ns if whole_ns >= least_ns else drawn_ns


def _drawn(seed: int, index: int, what: str, count: int) -> int:
    """Return a number below `count`, which depends on nothing but the arguments."""
    digest = blake2b(f"nemesis {seed} {index} {what}".encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big") % count


def nemesis_problems(
    nemesis: Nemesis,
    applications: Sequence[Application],
    hosts: Sequence[str],
    wall_ns: int,
) -> Iterator[Problem]:
    """Yield a problem for each name that does not exist, and if nothing can be drawn."""
    ids = [each.id for each in applications]
    for key, what, names, known in (
        ("applications", "an application", nemesis.applications or (), ids),
        ("drivers", "a host of the network", nemesis.drivers, hosts),
        ("hosts", "a host of the network", nemesis.hosts or (), hosts),
    ):
        for index, name in enumerate(names):
            if name not in known:
                path: Path = ("nemesis", key, index)
                yield Problem(path, unknown_name(what, name, known, f"they are {', '.join(known)}"))
    acts = nemesis.drawn_acts
    for index, act in enumerate(acts):
        if not nemesis.targets(act, applications, hosts):
            yield Problem(("nemesis", "acts", index), f"nothing to {act}: name an application")
    if "impair" in acts and not nemesis.impair:
        text = "`impair` needs the key `impair`, for example `impair: {loss: 10%}`"
        yield Problem(("nemesis", "acts", acts.index("impair")), text)
    if nemesis.impair and "impair" not in acts:
        text = "the acts do not include `impair`: add it to `acts`, or remove this key"
        yield Problem(("nemesis", "impair"), text)
    longest_ns = nemesis.count * (nemesis.every.most_ns + nemesis.lasts.most_ns)
    if longest_ns >= wall_ns:
        text = f"{nemesis.count} events may take {format_duration(longest_ns)}, as long as "
        text += f"budget.wall ({format_duration(wall_ns)}): draw fewer, or allow more time"
        yield Problem(("nemesis",), text)
