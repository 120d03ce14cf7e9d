"""The scenario file as values: one class a table, one field a key.

    Scenario
      seeds     network --- link --- weather
      traffic[] --- content --- message
      archives[]
      faults[]  --- where, what, when, act
      events[]  --- whom, when, act
      expect[]  budget

Shape and units are checked here; what is well-formed and yet cannot happen is found by `sense`.
Unknown keys are errors. Keys that are words of Python or lack a unit have another name as a field.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from harness.scenario import applies
from harness.scenario.archive import ARCHIVES_MAX, Archive
from harness.scenario.fault import Fault
from harness.scenario.host_event import EVENTS_MAX, HostEvent, Timeouts
from harness.scenario.merge import Merge
from harness.scenario.network import HOSTS_MAX, Network
from harness.scenario.pace import Pace
from harness.scenario.table import (
    NUMBER,
    Bytes,
    Duration,
    Name,
    Share,
    Table,
    one_or_many,
    quantity,
)
from harness.scenario.units import parse_bytes

SCHEMA = "windtunnel/1"
SEED_MAX = (1 << 63) - 1
FAULTS_MAX = 256
TRAFFIC_MAX = 256
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


Channels = dict[Name, str]
Partners = Annotated[tuple[Name, ...], BeforeValidator(one_or_many)]
Texts = Annotated[tuple[str, ...], BeforeValidator(one_or_many)]


SENDERS = ("publisher", "replayer")
"""Roles of those at the sending end of a stream."""


def _content_is_optional(schema: dict[str, Any]) -> None:
    schema["required"].remove("content")


class Traffic(Table):
    """One stream: who publishes it, and who reads it."""

    model_config = ConfigDict(json_schema_extra=_content_is_optional)

    id: Name
    """Unique in the scenario; names the files of this traffic."""

    stream_id: int = Field(alias="stream", ge=-(1 << 31), lt=1 << 31)
    """The Aeron stream id; unique in the scenario."""

    from_hosts: Partners = Field(alias="from", strict=False, min_length=1, max_length=HOSTS_MAX)
    """The publisher's host; of several each sends the very same stream."""

    to_hosts: Partners = Field(alias="to", strict=False, min_length=1, max_length=HOSTS_MAX)
    """The subscriber's host, or a list: each reads the whole stream."""

    partial: Partners = Field(default=(), strict=False)
    """Subscribers that are cut off on purpose, and need not come to the stream's end."""

    publication: Literal["exclusive", "concurrent"]
    """The kind of publication."""

    channel: str
    """The publisher's channel; `${b}` stands for the address of host b, `${self}` for its own."""

    channels: Channels = Field(default_factory=dict)
    """In place of `channel` for some of several publishers, by host."""

    destinations: Texts = Field(default=(), strict=False)
    """Channels that the publisher adds to a publication with `control-mode=manual`."""

    receive: str
    """The subscriber's channel."""

    receives: Channels = Field(default_factory=dict)
    """In place of `receive` for some of several subscribers, by host."""

    sources: Texts = Field(default=(), strict=False)
    """Channels that the subscriber adds to a subscription with `control-mode=manual`."""

    content: Content

    consume: Pace | None = None
    """How fast the subscriber consumes; default as fast as messages come."""

    rejoins: bool = False
    """Whether the stream goes on when it was cut: the publisher waits while nobody listens, the
    subscriber takes up the next image, even from a new driver. Default false: a lost image is a
    failure."""

    replays: Name | None = None
    """The id of a recorded stream that the archive on host `from` sends again, in the place of a
    publisher; its `content` and its geometry are this one's too. Default: it is published."""

    merges: Merge | None = None
    """The subscriber comes late, and reads from the recording on its own host first; default it is
    there before anybody publishes."""

    replicated: Name | None = None
    """The host whose archive copies the recording, over the link, while it is made; default nobody
    does."""

    recorded: Name | None = None
    """The host whose archive records the stream: a subscriber's, or the publisher's own; default
    nobody records it."""

    def ends(self, role: str) -> tuple[str, ...]:
        """The hosts on which a workload of this role is at work on it."""
        if role == "recorder":
            return (self.recorded,) if self.recorded else ()
        if role == "replicator":
            return (self.replicated,) if self.replicated else ()
        if role in SENDERS:
            return self.from_hosts if role == self.sender else ()
        return self.to_hosts

    @property
    def archived(self) -> tuple[str, ...]:
        """The hosts whose archives have it in the end."""
        return tuple(each for each in (self.recorded, self.replicated) if each is not None)

    @property
    def sender(self) -> str:
        """The role of the workloads at its sending end."""
        return "replayer" if self.replays else "publisher"

    @property
    def from_host(self) -> str:
        """The first publisher's host."""
        return self.from_hosts[0]

    @property
    def to_host(self) -> str:
        """The first subscriber's host."""
        return self.to_hosts[0]


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


def _with_content(traffic: Any, contents: dict[str, Any]) -> Any:
    """A replay with the content of what it replays.

    One of an unknown stream has anybody's: what is wrong with it is for `sense` to say.
    """
    if not isinstance(traffic, dict) or "replays" not in traffic or "content" in traffic:
        return traffic
    anybodys = next(iter(contents.values()), None)
    content = contents.get(str(traffic["replays"]), anybodys)
    return traffic if content is None else {**traffic, "content": content}


class Scenario(Table):
    """One experiment."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_replays(cls, data: Any) -> Any:
        """A stream that replays another has its content, which is not written twice."""
        traffic = data.get("traffic") if isinstance(data, dict) else None
        if not isinstance(traffic, list):
            return data
        contents = {
            str(each.get("id")): each["content"]
            for each in traffic
            if isinstance(each, dict) and "content" in each
        }
        return {**data, "traffic": [_with_content(each, contents) for each in traffic]}

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

    archives: tuple[Archive, ...] = Field(default=(), strict=False, max_length=ARCHIVES_MAX)
    """Who records streams; default nobody."""

    faults: tuple[Fault, ...] = Field(default=(), strict=False, max_length=FAULTS_MAX)
    """The rules, in the order in which they are tried; default none."""

    events: tuple[HostEvent, ...] = Field(default=(), strict=False, max_length=EVENTS_MAX)
    """What befalls the hosts; default nothing."""

    timeouts: Timeouts = Timeouts()
    """Of drivers and clients, where they are not the defaults."""

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
