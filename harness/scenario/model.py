"""The scenario file as values: one class a table, one field a key.

    Scenario
      seeds     network --- link --- weather
      traffic[] --- content --- message
      faults[]  --- where, what, when, act
      expect[]  budget

Shape and units are checked here; what is well-formed and yet cannot happen is found by `sense`.
Unknown keys are errors. Keys that are words of Python or lack a unit have another name as a field.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from harness.scenario import applies
from harness.scenario.fault import Fault
from harness.scenario.pace import Pace
from harness.scenario.table import NUMBER, Bytes, Duration, Name, Share, Table, quantity
from harness.scenario.units import parse_bytes
from harness.scenario.weather import Weather

SCHEMA = "windtunnel/1"
SEED_MAX = (1 << 63) - 1
FAULTS_MAX = 256
TRAFFIC_MAX = 256
Backend = Literal["relay", "netem"]
LONGEST: Literal["max"] = "max"
"""In place of a message length: the longest that the term length allows."""


def _bytes_or_longest(value: object) -> object:
    return value if value == LONGEST else parse_bytes(value)


def _check(value: object) -> object:
    if isinstance(value, str):
        return {"name": value, "arguments": {}}
    if isinstance(value, dict) and len(value) == 1:
        ((name, arguments),) = value.items()
        if isinstance(arguments, dict) and applies.KEY in arguments:
            applies.check_applies(arguments[applies.KEY])
        return {"name": name, "arguments": arguments}
    raise ValueError("expected the name of a check, or one name with its arguments")


class Seeds(Table):
    """Where all chance of the run comes from."""

    root: int = Field(ge=0, le=SEED_MAX)
    """The seed of the first run; each further run takes the next number."""

    count: int = Field(default=1, ge=1, le=100_000)
    """How many runs to make. Default 1."""


class Link(Table):
    """The one path between the two hosts."""

    between: tuple[Name, Name] = Field(strict=False)
    """Its two ends: the first is `a` in the ledger and the decision log, the second `b`."""

    backend: Backend = "relay"
    """Who delivers the weather: the relay (default), or the kernel's netem behind it."""

    weather: dict[str, Weather] = Field(default_factory=dict)
    """What befalls every packet, by direction such as `a->b`, or `both`; default nothing."""


class Network(Table):
    """The hosts and what joins them."""

    hosts: tuple[Name, ...] = Field(strict=False, min_length=2, max_length=2)
    """Names of the hosts; each has a driver."""

    link: Link


class MessageLengths(Table):
    """How long messages are: any doubling from the least to the most is equally likely."""

    shortest_bytes: Bytes = Field(default=1, alias="from")
    """Bytes; default 1B, at least 1B."""

    longest_bytes: Annotated[
        int | Literal["max"],
        BeforeValidator(_bytes_or_longest),
        quantity(NUMBER + "(B|KiB|MiB|GiB)$|^max$", "max"),
    ] = Field(default=LONGEST, alias="to")
    """Bytes; default and bound `max`, the lesser of an eighth of the term and 16MiB."""


class Content(Table):
    """What a publisher sends: the payload file, over and over."""

    total_bytes: Bytes = Field(alias="bytes")
    """Sum of all message lengths, in bytes; at least 1B."""

    message: MessageLengths = MessageLengths()

    pace: Pace | None = None
    """How fast it publishes; default as fast as the stream takes it."""

    close_after_ns: Duration = Field(default=0, alias="close_after")
    """How long the publication stays open behind the last message; default 0s."""


class Traffic(Table):
    """One publication on one host and one subscription on the other."""

    id: Name
    """Unique in the scenario; names the files of this traffic."""

    stream_id: int = Field(alias="stream", ge=-(1 << 31), lt=1 << 31)
    """The Aeron stream id; unique in the scenario."""

    from_host: Name = Field(alias="from")
    """The publisher's host."""

    to_host: Name = Field(alias="to")
    """The subscriber's host."""

    publication: Literal["exclusive", "concurrent"]
    """The kind of publication."""

    channel: str
    """The publisher's channel; `${b}` stands for the address of host b."""

    receive: str
    """The subscriber's channel."""

    content: Content

    consume: Pace | None = None
    """How fast the subscriber consumes; default as fast as messages come."""


class Check(Table):
    """A condition of the subject, by the name it has in the judge's registry."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Budget(Table):
    """How much a run may take."""

    wall_ns: Duration = Field(default=120_000_000_000, alias="wall", gt=0)
    """Real time of one run, from the first process to the last; default 120s."""

    failures: Share | None = None
    """Share of runs that may fail without the scenario failing, never by a wrong byte or a broken
    law of the protocol; default none. There must be enough runs to show that it is less."""


class Scenario(Table):
    """One experiment."""

    schema_name: Literal["windtunnel/1"] = Field(alias="schema")
    """The version of this format."""

    name: str = Field(pattern=r"^[a-z0-9-]+(/[a-z0-9-]+)*$")
    """Path of the file below `scenarios/`, without `.yaml`."""

    about: str = Field(min_length=1)
    """Intent, criteria in words, and what is not covered."""

    seeds: Seeds
    fidelity: tuple[Literal["netns", "compose", "sim"], ...] = Field(
        default=("netns", "compose"), strict=False, min_length=1
    )
    """Where it can run; default everywhere."""

    network: Network
    traffic: tuple[Traffic, ...] = Field(strict=False, min_length=1, max_length=TRAFFIC_MAX)
    """The streams, all at the same time."""

    faults: tuple[Fault, ...] = Field(default=(), strict=False, max_length=FAULTS_MAX)
    """The rules, in the order in which they are tried; default none."""

    expect: tuple[
        Annotated[
            Check,
            BeforeValidator(_check),
            WithJsonSchema(
                {
                    "oneOf": [
                        {"type": "string"},
                        {"type": "object", "minProperties": 1, "maxProperties": 1},
                    ]
                }
            ),
        ],
        ...,
    ] = Field(strict=False, min_length=1)
    """Checks that must hold: names, or one name with its arguments."""

    budget: Budget = Budget()


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors."""
    schema = Scenario.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
