"""A case: one scenario with nothing left open, as it is handed to every process of a run.

    Scenario + seed + fidelity + addresses + payload --resolve--> Case --> case.json

Everything that a channel or a default implies is spelled out here once, so that publisher, relay
and judge cannot read it differently. Refuses to know how a run is carried out.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.scenario.channel import fill_in, parse_channel
from harness.scenario.fault_case import FaultCase, LinkName, resolve_fault
from harness.scenario.fault_sense import link_directions
from harness.scenario.model import LONGEST, SEED_MAX, Scenario, Traffic
from harness.scenario.pace import FREE, PaceCase, pace_case
from harness.scenario.part import Part
from harness.scenario.sense import longest_message
from harness.scenario.weather_case import WeatherCase, weather_case

SCHEMA: Literal["windtunnel-case/1"] = "windtunnel-case/1"
LINK_NAMES: tuple[LinkName, LinkName] = ("a->b", "b->a")
"""Link directions in ledger and decision log: `a` is the link's first host, `b` its second."""


class Payload(Part):
    """The file whose bytes are sent."""

    path: str
    sha256: str
    length_bytes: int


class HostCase(Part):
    """A host and its address."""

    name: str
    address: str


class TrafficCase(Part):
    """One stream: who sends what to whom."""

    id: str
    ordinal: int
    """Place among the case's streams in order of stream id, from 0."""
    stream_id: int
    from_host: str
    to_host: str
    publication: Literal["exclusive", "concurrent"]
    channel: str
    receive: str
    port: int
    """UDP port on the subscriber's host."""
    reliable: bool
    term_length: int
    mtu: int
    initial_term_id: int | None
    """None when the driver chooses it."""
    initial_position: int
    receiver_window_bytes: int | None
    """None when the driver's default holds."""
    total_bytes: int
    shortest_bytes: int
    longest_bytes: int
    pace: PaceCase = FREE
    """Of the publisher."""
    close_after_ns: int = 0
    """How long the publication stays open behind its last message."""
    consume: PaceCase = FREE
    """Of the subscriber."""


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
    hosts: tuple[HostCase, HostCase]
    """The link's first and second host."""
    payload: Payload
    traffic: tuple[TrafficCase, ...]
    faults: tuple[FaultCase, ...]
    expect: tuple[CheckCase, ...]
    wall_ns: int
    """Longest time that the run may take."""
    backend: Literal["relay", "netem"] = "relay"
    """Who delivers the weather."""
    weather: tuple[WeatherCase, ...] = ()
    """At most one a link direction."""
    replays: str = ""
    """The run whose decisions decide in place of the rules; empty when the rules do."""

    def address(self, host: str) -> str:
        return next(each.address for each in self.hosts if each.name == host)

    def weather_of(self, link: str) -> WeatherCase | None:
        """The weather of a link direction, or None where every packet passes."""
        return next((each for each in self.weather if each.link == link), None)

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
        return cls.model_validate_json(path.read_text(encoding="utf-8"))


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
    first, second = scenario.network.link.between
    return Case(
        name=scenario.name,
        about=scenario.about,
        seed=seed,
        fidelity=fidelity,
        hosts=(
            HostCase(name=first, address=addresses[first]),
            HostCase(name=second, address=addresses[second]),
        ),
        payload=payload,
        traffic=tuple(
            _traffic(each, stream_ids.index(each.stream_id), addresses) for each in scenario.traffic
        ),
        faults=_faults(scenario),
        expect=tuple(
            CheckCase(name=check.name, arguments=check.arguments) for check in scenario.expect
        ),
        wall_ns=scenario.budget.wall_ns,
        backend=scenario.network.link.backend,
        weather=_weather(scenario),
    )


def _traffic(traffic: Traffic, ordinal: int, addresses: Mapping[str, str]) -> TrafficCase:
    channel, receive = parse_channel(traffic.channel), parse_channel(traffic.receive)
    message = traffic.content.message
    longest = message.longest_bytes
    if longest == LONGEST:
        longest = longest_message(channel.term_length)
    return TrafficCase(
        id=traffic.id,
        ordinal=ordinal,
        stream_id=traffic.stream_id,
        from_host=traffic.from_host,
        to_host=traffic.to_host,
        publication=traffic.publication,
        channel=fill_in(traffic.channel, addresses),
        receive=fill_in(traffic.receive, addresses),
        port=channel.endpoint_port,
        reliable=receive.reliable,
        term_length=channel.term_length,
        mtu=channel.mtu,
        initial_term_id=channel.initial_term_id,
        initial_position=channel.initial_position,
        receiver_window_bytes=receive.receiver_window_bytes,
        total_bytes=traffic.content.total_bytes,
        shortest_bytes=message.shortest_bytes,
        longest_bytes=longest,
        pace=pace_case(traffic.content.pace),
        close_after_ns=traffic.content.close_after_ns,
        consume=pace_case(traffic.consume),
    )


def _weather(scenario: Scenario) -> tuple[WeatherCase, ...]:
    first, second = scenario.network.link.between
    names = {(first, second): LINK_NAMES[0], (second, first): LINK_NAMES[1]}
    return tuple(
        weather_case(names[direction], weather)
        for link, weather in scenario.network.link.weather.items()
        for direction in link_directions(scenario, link)
    )


def _faults(scenario: Scenario) -> tuple[FaultCase, ...]:
    first, second = scenario.network.link.between
    names = {(first, second): LINK_NAMES[0], (second, first): LINK_NAMES[1]}
    stream_ids = sorted(traffic.stream_id for traffic in scenario.traffic)
    ordinals = {stream_id: ordinal for ordinal, stream_id in enumerate(stream_ids)}
    return tuple(
        resolve_fault(
            fault,
            ordinals,
            [names[each] for each in link_directions(scenario, fault.where.link)],
        )
        for fault in scenario.faults
    )
