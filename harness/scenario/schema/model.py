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

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from windtunnel.harness.scenario.schema import applies
from windtunnel.harness.scenario.schema.archive import ARCHIVES_MAX, Archive
from windtunnel.harness.scenario.schema.fault import Fault
from windtunnel.harness.scenario.schema.host_event import EVENTS_MAX, HostEvent, Timeouts
from windtunnel.harness.scenario.schema.network import Network
from windtunnel.harness.scenario.schema.table import Duration, Share, Table
from windtunnel.harness.scenario.schema.traffic import Traffic

SCHEMA = "windtunnel/1"
SEED_MAX = (1 << 63) - 1
FAULTS_MAX = 256
TRAFFIC_MAX = 256


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
