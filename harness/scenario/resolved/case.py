"""A case: one scenario with nothing left open, as it is handed to every process of a run.

    Scenario + seed + fidelity + addresses + payload --resolve--> Case --> case.json

Everything that a channel or a default implies is spelled out here once, so that publisher, relay
and judge cannot read it differently. Refuses to know how a run is carried out.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from windtunnel.harness.artifact.regular_file import read_text
from windtunnel.harness.scenario.resolved.fault_case import FaultCase, resolve_fault
from windtunnel.harness.scenario.resolved.impairment_case import WeatherCase, weather_case
from windtunnel.harness.scenario.resolved.link_case import (
    LINK_NAMES,
    Backend,
    LinkCase,
    directions,
    link_names,
)
from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase, resolve_traffic
from windtunnel.harness.scenario.schema.archive import COPYING_PORTS, ArchiveCase, archive_case
from windtunnel.harness.scenario.schema.host_event import (
    DEFAULT_TIMEOUTS,
    EventCase,
    TimeoutsCase,
    event_case,
    timeouts_case,
)
from windtunnel.harness.scenario.schema.model import SEED_MAX, Scenario
from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.table import Name
from windtunnel.harness.scenario.schema.traffic import Traffic
from windtunnel.harness.scenario.validation.fault_validation import rule_directions
from windtunnel.harness.scenario.validation.impairment_validation import BOTH

SCHEMA: Literal["windtunnel-case/1"] = "windtunnel-case/1"
__all__ = ["LINK_NAMES", "Case", "CheckCase", "HostCase", "LinkCase", "Payload", "TrafficCase"]


class Payload(Part):
    """The file whose bytes are sent."""

    path: str
    sha256: str
    length_bytes: int


class HostCase(Part):
    """A host and its address."""

    name: Name
    address: str


class CheckCase(Part):
    """A check of the subject, by name."""

    name: str
    arguments: dict[str, Any]


class Case(Part):
    """All that a run is asked to do."""

    schema_name: Literal["windtunnel-case/1"] = Field(default=SCHEMA, alias="schema")
    name: str
    about: str
    seed: int
    fidelity: Literal["netns", "compose", "sim"]
    hosts: tuple[HostCase, ...] = Field(min_length=2)
    """In the order of the middlebox's interfaces: of one link, its first and its second host."""
    payload: Payload
    traffic: tuple[TrafficCase, ...]
    faults: tuple[FaultCase, ...]
    expect: tuple[CheckCase, ...]
    wall_ns: int
    """Longest time that the run may take."""
    backend: Backend = "relay"
    """Who delivers the weather, of the only link or of the first."""
    weather: tuple[WeatherCase, ...] = ()
    """At most one a link direction."""
    links: tuple[LinkCase, ...] = ()
    """All links where there are several; else one joins the two hosts."""
    events: tuple[EventCase, ...] = ()
    """What befalls the hosts."""
    timeouts: TimeoutsCase = DEFAULT_TIMEOUTS
    """Of drivers and clients."""
    archives: tuple[ArchiveCase, ...] = ()
    """Who records streams."""
    replays: str = ""
    """The run whose decisions decide in place of the rules; empty when the rules do."""

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the link directions, by code."""
        return link_names(self.links)

    @property
    def directions(self) -> tuple[tuple[str, str], ...]:
        """Sending and receiving host of each link direction, by code."""
        if self.links:
            return directions(self.links)
        first, second = (each.name for each in self.hosts)
        return ((first, second), (second, first))

    def link_between(self, sender: str, receiver: str) -> int:
        """The code of a link direction; -1 if no link joins the two."""
        wanted = (sender, receiver)
        return self.directions.index(wanted) if wanted in self.directions else -1

    def backend_of(self, link: str) -> Backend:
        """Who delivers the weather of a link direction."""
        if not self.links:
            return self.backend
        return self.links[self.link_names.index(link) // 2].backend

    def address(self, host: str) -> str:
        return next(each.address for each in self.hosts if each.name == host)

    def weather_of(self, link: str) -> WeatherCase | None:
        """The weather of a link direction, or None where every packet passes."""
        return next((each for each in self.weather if each.link == link), None)

    def sessions_of(self, traffic: TrafficCase) -> int:
        """How many publications a stream has, one after the other."""
        kills = [
            each
            for each in self.events
            if each.action == "kill"
            and each.host == traffic.from_host
            and "publisher" in each.roles
        ]
        return 1 + len(kills)

    @property
    def ports(self) -> tuple[int, ...]:
        """All UDP ports that anything of the run is sent to, in order."""
        found = {port for each in self.traffic for port in each.all_ports}
        if any(each.replicated for each in self.traffic):
            found |= set(COPYING_PORTS)
        return tuple(sorted(found))

    def traffic_by_id(self, traffic_id: str) -> TrafficCase:
        return next(each for each in self.traffic if each.id == traffic_id)

    def to_json(self) -> str:
        """The text of case.json."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    def write(self, path: Path) -> None:
        path.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Case":
        """Read case.json; ValueError names what cannot be understood."""
        return cls.model_validate_json(read_text(path))


def run_seeds(scenario: Scenario, root: int | None = None, count: int | None = None) -> list[int]:
    """The seeds of a scenario's runs: the root and the numbers after it.

    Decisions depend on a seed through a keyed function, so neighbours have nothing in common.
    """
    first = scenario.seeds.root if root is None else root
    runs = scenario.seeds.count if count is None else count
    return [(first + index) & SEED_MAX for index in range(runs)]


def resolve(
    scenario: Scenario,
    *,
    seed: int,
    fidelity: Literal["netns", "compose", "sim"],
    addresses: Mapping[str, str],
    payload: Payload,
) -> Case:
    """Fill in everything that a scenario leaves to defaults, to the lab and to the command line."""
    stream_ids = sorted(traffic.stream_id for traffic in scenario.traffic)
    by_id: dict[str | None, Traffic] = {each.id: each for each in scenario.traffic}
    network = scenario.network
    several = network.all_links if len(network.all_links) > 1 else ()
    return Case(
        name=scenario.name,
        about=scenario.about,
        seed=seed,
        fidelity=fidelity,
        hosts=tuple(HostCase(name=each, address=addresses[each]) for each in network.joined),
        payload=payload,
        traffic=tuple(
            resolve_traffic(
                each, stream_ids.index(each.stream_id), addresses, by_id.get(each.replays)
            )
            for each in scenario.traffic
        ),
        faults=_faults(scenario),
        expect=tuple(
            CheckCase(name=check.name, arguments=check.arguments) for check in scenario.expect
        ),
        wall_ns=scenario.budget.wall_ns,
        # On virtual time there is no kernel that could have a netem.
        backend="relay" if fidelity == "sim" else network.all_links[0].backend,
        weather=_weather(scenario),
        links=tuple(
            LinkCase(between=each.between, backend="relay" if fidelity == "sim" else each.backend)
            for each in several
        ),
        events=tuple(event_case(each) for each in scenario.events),
        timeouts=timeouts_case(scenario.timeouts),
        archives=tuple(archive_case(each) for each in scenario.archives),
    )


def _names(scenario: Scenario) -> dict[tuple[str, str], str]:
    """What each direction is called, by its sending and receiving host."""
    links = [LinkCase(between=each.between) for each in scenario.network.all_links]
    names = link_names(links if len(links) > 1 else ())
    return dict(zip(directions(links), names, strict=True))


def _weather(scenario: Scenario) -> tuple[WeatherCase, ...]:
    names = _names(scenario)
    return tuple(
        weather_case(names[direction], weather)
        for link in scenario.network.all_links
        for key, weather in link.weather.items()
        for direction in directions([LinkCase(between=link.between)])
        if key in (BOTH, "->".join(direction))
    )


def _faults(scenario: Scenario) -> tuple[FaultCase, ...]:
    names = _names(scenario)
    stream_ids = sorted(traffic.stream_id for traffic in scenario.traffic)
    ordinals = {stream_id: ordinal for ordinal, stream_id in enumerate(stream_ids)}
    return tuple(
        resolve_fault(fault, ordinals, [names[each] for each in rule_directions(scenario, fault)])
        for fault in scenario.faults
    )
