"""The case: a resolved scenario, which is passed to every process of a run.

    Scenario + seed + fidelity + addresses + payload --resolve--> Case --> case.json

All defaults and channel parameters are resolved here once, so publisher, relay and judge cannot
interpret them differently.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.scenario.applications.application import APPLICATIONS_MAX
from windtunnel.harness.scenario.applications.application_case import (
    ApplicationCase,
    application_case_problems,
)
from windtunnel.harness.scenario.applications.driver_settings import SETTING_NAMES
from windtunnel.harness.scenario.applications.nemesis import DRAWN_MAX
from windtunnel.harness.scenario.applications.observe import OBSERVED_MAX
from windtunnel.harness.scenario.exercises import ABOUT, ExerciseName
from windtunnel.harness.scenario.exercises import PORTS as EXERCISE_PORTS
from windtunnel.harness.scenario.own_checks import FILES_MAX, OwnCheckFile
from windtunnel.harness.scenario.resolved.case_validation import (
    fault_problems,
    impairment_problems,
    is_address,
    known_names,
    traffic_problems,
    within,
)
from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.scenario.resolved.impairment_case import (
    FORMER_NAMES,
    ImpairmentCase,
)
from windtunnel.harness.scenario.resolved.link_case import (
    LINK_NAMES,
    Backend,
    LinkCase,
    directions,
    link_names,
)
from windtunnel.harness.scenario.resolved.stored_part import dotted, read_part
from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase
from windtunnel.harness.scenario.schema.archive import REPLICATION_PORTS, ArchiveCase
from windtunnel.harness.scenario.schema.host_event import (
    DEFAULT_TIMEOUTS,
    EVENTS_MAX,
    EventCase,
    TimeoutsCase,
)
from windtunnel.harness.scenario.schema.model import EXPECT_MAX, FAULTS_MAX, SEED_MAX
from windtunnel.harness.scenario.schema.network import HOSTS_MAX
from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.schema.table import Arguments, Name
from windtunnel.harness.scenario.schema.traffic import TRAFFIC_MAX
from windtunnel.harness.scenario.schema.units import BYTES_MAX, DURATION_NS_MAX, shown

SCHEMA: Literal["windtunnel-case/1"] = "windtunnel-case/1"
__all__ = ["LINK_NAMES", "Case", "CheckCase", "HostCase", "LinkCase", "Payload", "TrafficCase"]


class Payload(Part):
    """The file whose content the streams send."""

    path: str
    sha256: str
    length_bytes: int


class HostCase(Part):
    """A host in a case, and its address."""

    name: Name
    address: str


class CheckCase(Part):
    """A check to run, identified by its name."""

    name: str
    arguments: Arguments


NO_PORTS = (0,)
"""The ports of a case without streams: no datagram has this one."""


class Case(Part):
    """The complete description of a run: the scenario with all defaults filled in."""

    schema_name: Literal["windtunnel-case/1"] = Field(default=SCHEMA, alias="schema")
    name: str
    about: str
    seed: int
    fidelity: Literal["netns", "compose", "sim"]
    hosts: tuple[HostCase, ...] = Field(min_length=2)
    """The hosts in the order of the middlebox's interfaces. With one link, these are its first and
    second host.
    """
    payload: Payload
    traffic: tuple[TrafficCase, ...]
    faults: tuple[FaultCase, ...]
    expect: tuple[CheckCase, ...]
    wall_ns: int
    """Maximum real time of the run."""
    backend: Backend = "relay"
    """The backend that applies the impairments of the first or only link."""
    impairments: tuple[ImpairmentCase, ...] = Field(default=(), validation_alias=FORMER_NAMES)
    """The impairments, with at most one item for each link direction."""
    links: tuple[LinkCase, ...] = ()
    """All links if there are several. Empty if the only link joins the two hosts."""
    events: tuple[EventCase, ...] = ()
    """Host events."""
    timeouts: TimeoutsCase = DEFAULT_TIMEOUTS
    """Timeouts of drivers and clients."""
    drivers: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Settings of the driver on each host, by the names of environment variables."""
    archives: tuple[ArchiveCase, ...] = ()
    """Archives that record streams."""
    applications: tuple[ApplicationCase, ...] = ()
    """Programs of the user, in the order in which they are started."""
    exercises: tuple[ExerciseName, ...] = ()
    """Exercises, which run between the first two hosts."""
    observed: tuple[TrafficCase, ...] = ()
    """Streams of the applications. Their content is unknown."""
    observes_all: bool = False
    """Whether all streams that the captures show are observed, also those that are not listed."""
    checks: tuple[OwnCheckFile, ...] = ()
    """Files with checks of the user, whose results the run has stored."""
    replays: str = ""
    """Id of the run whose logged decisions replace the rules, or empty to evaluate the rules."""
    live: bool = False
    """Whether a program controlled the run, and could change the impairments of all links."""

    @property
    def changes_links(self) -> bool:
        """Return whether the impairments of links may change during the run."""
        return self.live or any(each.changes_links for each in self.events)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Return the names of the link directions. The index is a direction's code."""
        return link_names(self.links)

    @property
    def directions(self) -> tuple[tuple[str, str], ...]:
        """Return the sending and the receiving host of each link direction. The index is a
        direction's code.
        """
        if self.links:
            return directions(self.links)
        first, second = (each.name for each in self.hosts)
        return ((first, second), (second, first))

    def link_between(self, sender: str, receiver: str) -> int:
        """Return the code of a link direction, or -1 if no link joins the two hosts."""
        wanted = (sender, receiver)
        return self.directions.index(wanted) if wanted in self.directions else -1

    def hosts_of_links(self, links: Iterable[str]) -> list[str]:
        """Return link directions with the names of their hosts, such as `lon->nyc`.

        The directions of an only link are named `a->b` and `b->a` in the files of a run.
        """
        codes = [self.link_names.index(each) for each in links]
        return ["->".join(self.directions[code]) for code in codes]

    def backend_of(self, link: str) -> Backend:
        """Return the backend of a link direction: `relay` or `netem`, which applies its
        impairments.
        """
        if not self.links:
            return self.backend
        return self.links[self.link_names.index(link) // 2].backend

    def address(self, host: str) -> str:
        return next(each.address for each in self.hosts if each.name == host)

    def impairments_of(self, link: str) -> ImpairmentCase | None:
        """Return the impairments of a link direction, or None if it has none."""
        return next((each for each in self.impairments if each.link == link), None)

    def sessions_of(self, traffic: TrafficCase) -> int:
        """Return the number of a stream's consecutive publications: one, plus one per restart."""
        kills = [
            each
            for each in self.events
            if each.action == "kill"
            and each.host == traffic.from_host
            and "publisher" in each.roles
        ]
        return 1 + len(kills)

    @property
    def aeron_ports(self) -> tuple[int, ...]:
        """Return the UDP ports whose datagrams are Aeron's. An empty tuple means all ports."""
        return () if self.observes_all else self.ports or NO_PORTS

    @property
    def ports(self) -> tuple[int, ...]:
        """Return all destination UDP ports of the run in ascending order."""
        streams = (*self.traffic, *self.observed)
        found = {port for each in streams for port in each.all_ports}
        if any(each.replicated for each in self.traffic):
            found |= set(REPLICATION_PORTS)
        found |= {port for each in self.exercises for port in EXERCISE_PORTS.get(each, ())}
        return tuple(sorted(found))

    def traffic_by_id(self, traffic_id: str) -> TrafficCase:
        return next(each for each in self.traffic if each.id == traffic_id)

    def to_json(self) -> str:
        """Return the case as JSON, in the format of case.json."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    def write(self, path: Path) -> None:
        path.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Case":
        """Read case.json. Raises OSError, or DocumentError for the first invalid value."""
        case = read_part(cls, path)
        for problem in _problems(case):
            raise DocumentError(f"{path.name}: {dotted(problem.path)}: {problem.text}", path)
        return case


def _problems(case: Case) -> Iterator[Problem]:
    """Yield a problem for each value that has the right type but is invalid."""
    hosts = [each.name for each in case.hosts]
    yield from _lists(case, hosts)
    yield from within((), "seed", case.seed, 0, SEED_MAX)
    yield from within((), "wall_ns", case.wall_ns, 1, DURATION_NS_MAX)
    yield from within(("payload",), "length_bytes", case.payload.length_bytes, 0, BYTES_MAX)
    for index, link in enumerate(case.links):
        yield from known_names(("links", index, "between"), link.between, hosts)
    for index, host in enumerate(case.hosts):
        if not is_address(host.address):
            text = f"expected an IPv4 address, found {shown(host.address)!r}"
            yield Problem(("hosts", index, "address"), text)
    names = case.link_names
    for index, traffic in enumerate(case.traffic):
        yield from traffic_problems(traffic, ("traffic", index), hosts, len(case.traffic))
    for index, traffic in enumerate(case.observed):
        yield from traffic_problems(traffic, ("observed", index), hosts, 1)
    for name, streams, is_observed in (
        ("traffic", case.traffic, False),
        ("observed", case.observed, True),
    ):
        for index, traffic in enumerate(streams):
            if traffic.observed != is_observed:
                text = "expected true, found false" if is_observed else "expected false, found true"
                yield Problem((name, index, "observed"), text)
    for index, fault in enumerate(case.faults):
        yield from fault_problems(fault, ("faults", index), names, len(case.traffic))
    for index, impairment in enumerate(case.impairments):
        yield from impairment_problems(impairment, ("impairments", index), names)
    for index, event in enumerate(case.events):
        path = ("events", index)
        if event.host or not event.impairments:
            yield from known_names((*path, "host"), [event.host], hosts)
        for each in event.impairments:
            yield from impairment_problems(each, (*path, "impairments"), names)
        yield from within(path, "at", event.at, 0, max(BYTES_MAX * TRAFFIC_MAX, DURATION_NS_MAX))
        yield from within(path, "lasts_ns", event.lasts_ns, 0, DURATION_NS_MAX)
    yield from known_names(("drivers",), list(case.drivers), hosts)
    for place, settings in case.drivers.items():
        yield from known_names(("drivers", place), list(settings), sorted(SETTING_NAMES))
    for name, value in case.timeouts:
        yield from within(("timeouts",), name, value, 0, DURATION_NS_MAX)
    for index, archive in enumerate(case.archives):
        yield from known_names(("archives", index, "host"), [archive.host], hosts)
    for index, application in enumerate(case.applications):
        yield from application_case_problems(application, ("applications", index), hosts)


def _lists(case: Case, hosts: Sequence[str]) -> Iterator[Problem]:
    for name, count, most in (
        ("hosts", len(case.hosts), HOSTS_MAX),
        ("traffic", len(case.traffic), TRAFFIC_MAX),
        ("faults", len(case.faults), FAULTS_MAX),
        ("expect", len(case.expect), EXPECT_MAX),
        ("events", len(case.events), EVENTS_MAX + DRAWN_MAX),
        ("applications", len(case.applications), APPLICATIONS_MAX),
        ("exercises", len(case.exercises), len(ABOUT)),
        ("observed", len(case.observed), OBSERVED_MAX),
        ("checks", len(case.checks), FILES_MAX),
    ):
        if count > most:
            yield Problem((name,), f"expected at most {most} items, found {count}")
    for name, values in (
        ("hosts", hosts),
        ("traffic", [each.id for each in (*case.traffic, *case.observed)]),
        ("applications", [each.id for each in case.applications]),
        ("checks", case.checks),
    ):
        if len(set(values)) != len(values):
            yield Problem((name,), "expected distinct names, but one occurs twice")
