"""The scenario file, with one class for each table and one field for each key.

    Scenario
      seeds     network --- link --- impairments
      traffic[] --- content --- message
      archives[]
      observe[]
      applications[] --- command, ready, stop, expect
      faults[]  --- where, what, when, act
      events[]  --- whom, when, act
      expect[]  checks[]  budget

These classes validate types and units, and `validation` checks rules that involve several tables.
Unknown keys are errors. A field's name differs from its key if the key is a Python keyword or lacks
a unit.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from windtunnel.harness.scenario.applications.application import APPLICATIONS_MAX, Application
from windtunnel.harness.scenario.applications.driver_settings import Settings
from windtunnel.harness.scenario.applications.nemesis import Nemesis
from windtunnel.harness.scenario.applications.observe import OBSERVED_MAX, Observed
from windtunnel.harness.scenario.exercises import ABOUT, ExerciseName
from windtunnel.harness.scenario.own_checks import FILES_MAX, OwnCheckFile
from windtunnel.harness.scenario.schema.archive import ARCHIVES_MAX, Archive
from windtunnel.harness.scenario.schema.fault import Fault
from windtunnel.harness.scenario.schema.host_event import EVENTS_MAX, HostEvent, Timeouts
from windtunnel.harness.scenario.schema.network import Network
from windtunnel.harness.scenario.schema.table import Arguments, Duration, Name, Share, Table
from windtunnel.harness.scenario.schema.traffic import TRAFFIC_MAX, Traffic

SCHEMA = "windtunnel/1"
SEED_MAX = (1 << 63) - 1
FAULTS_MAX = 256
EXPECT_MAX = 256
NAME_LENGTH_MAX = 100
ABOUT_LENGTH_MAX = 20_000


def _check(value: object) -> object:
    if isinstance(value, str):
        return {"name": value, "arguments": {}}
    if isinstance(value, dict) and len(value) == 1:
        ((name, arguments),) = value.items()
        return {"name": name, "arguments": arguments}
    raise ValueError("expected a check's name, or a table with one name and its arguments")


class Seeds(Table):
    """The first seed of a scenario's runs, and the number of runs."""

    root: int = Field(ge=0, le=SEED_MAX)
    """The first run's seed. Each additional run increments it."""

    count: int = Field(default=1, ge=1, le=100_000)
    """Number of runs. Default: 1."""


class Check(Table):
    """A check to run, identified by its name in the judge's registry."""

    name: str = Field(max_length=NAME_LENGTH_MAX)
    arguments: Arguments = Field(default_factory=dict)


class Budget(Table):
    """Limits for the runs of a scenario."""

    wall_ns: Duration = Field(default=120_000_000_000, alias="wall", gt=0)
    """Real time of one run, from the start of the first process to the end of the last. Default:
    120s.
    """

    checks_ns: Duration = Field(default=60_000_000_000, alias="checks", gt=0)
    """Real time in which the own checks of one file must end. Default: 60s."""

    failures: Share | None = None
    """Share of runs that may fail while the scenario still passes, unless a byte is wrong or the
    protocol is violated. There must be enough runs to show that the share is lower. Default: none.
    """


def _with_content(traffic: Any, contents: dict[str, Any]) -> Any:
    """Return the table of an archive replay, completed with the content of the replayed stream.

    A replay of an unknown stream gets any stream's content, and `validation` reports the error.
    """
    if not isinstance(traffic, dict) or "replays" not in traffic or "content" in traffic:
        return traffic
    fallback = next(iter(contents.values()), None)
    content = contents.get(str(traffic["replays"]), fallback)
    return traffic if content is None else {**traffic, "content": content}


class Scenario(Table):
    """One scenario file."""

    @model_validator(mode="before")
    @classmethod
    def _limit_fidelity(cls, data: Any) -> Any:
        """Set the default fidelity of a scenario with applications: only one level starts them."""
        if not isinstance(data, dict) or "applications" not in data or "fidelity" in data:
            return data
        return {**data, "fidelity": ["netns"]}

    @model_validator(mode="before")
    @classmethod
    def _fill_in_replays(cls, data: Any) -> Any:
        """Copy the replayed stream's content to each archive replay, because a scenario file does
        not repeat it.
        """
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
    """Name and version of the file format."""

    name: str = Field(pattern=r"^[a-z0-9-]+(/[a-z0-9-]+)*$", max_length=NAME_LENGTH_MAX)
    """Path of the file below `scenarios/`, without `.yaml`."""

    about: str = Field(min_length=1, max_length=ABOUT_LENGTH_MAX)
    """Intent, criteria, and what the scenario does not cover."""

    seeds: Seeds
    fidelity: tuple[Literal["netns", "compose", "sim"], ...] = Field(
        default=("netns", "compose"), strict=False, min_length=1, max_length=3
    )
    """Supported fidelity levels. Default: netns and compose, or netns if there are applications."""

    network: Network
    traffic: tuple[Traffic, ...] = Field(
        default=(), strict=False, min_length=1, max_length=TRAFFIC_MAX
    )
    """The streams, which all run concurrently. A scenario with applications may have none."""

    archives: tuple[Archive, ...] = Field(default=(), strict=False, max_length=ARCHIVES_MAX)
    """Archives that record streams. Default: none."""

    applications: tuple[Application, ...] = Field(
        default=(), strict=False, max_length=APPLICATIONS_MAX
    )
    """Programs of the user, in the order in which they are started. `windtunnel run` starts them
    only with `--allow-commands`. Default: none.
    """

    observe: tuple[Observed, ...] = Field(default=(), strict=False, max_length=OBSERVED_MAX)
    """Streams of the applications, which are judged by what captures and counters show. `observe:
    all` observes all streams that the captures show. Default: none.
    """

    observe_all: bool = False
    """Whether all streams between hosts that the captures show are observed. `observe: all` is the
    same. Default: false.
    """

    faults: tuple[Fault, ...] = Field(default=(), strict=False, max_length=FAULTS_MAX)
    """Fault rules in the order of evaluation. Default: none."""

    exercises: tuple[ExerciseName, ...] = Field(default=(), strict=False, max_length=len(ABOUT))
    """Exercises, which clients of the harness run between the first two hosts. They need `fidelity:
    [sim]`. Default: none.
    """

    events: tuple[HostEvent, ...] = Field(default=(), strict=False, max_length=EVENTS_MAX)
    """Host events. Default: none."""

    nemesis: Nemesis | None = None
    """Events that are drawn from the seed, in a scenario with applications alone. Default: none."""

    drivers: dict[Name, Settings] = Field(default_factory=dict)
    """Settings of the media driver on each host, by the names of Aeron's environment variables:
    `{a: {AERON_SOCKET_SO_RCVBUF: 2m}}`. Only in a scenario with applications alone: `traffic` and
    `exercises` are judged with the defaults. Default: none.
    """

    timeouts: Timeouts = Timeouts()
    """Timeouts of drivers and clients that differ from the defaults."""

    expect: tuple[
        Annotated[
            Check,
            BeforeValidator(_check),
        ],
        ...,
    ] = Field(default=(), strict=False, min_length=1, max_length=EXPECT_MAX)
    """Checks that must pass: names, or tables with one name and its arguments. Required if there is
    traffic.
    """

    checks: tuple[OwnCheckFile, ...] = Field(default=(), strict=False, max_length=FILES_MAX)
    """Python files with checks of the user, in the folder of this file or below it. `windtunnel
    run` executes them only with `--allow-commands`. Default: none.
    """

    budget: Budget = Budget()

    @property
    def changes_links(self) -> bool:
        """Return whether events change links during a run."""
        draws_changes = self.nemesis is not None and self.nemesis.changes_links
        return draws_changes or any(each.changes_links for each in self.events)
