"""The specification of a run: everything that is known before the run starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.fidelity import Fidelity
from windtunnel.harness.orchestrate.run.payload import Payload
from windtunnel.harness.orchestrate.subjects.subject import Pair, Subject
from windtunnel.harness.scenario.schema.model import Scenario


@dataclass(frozen=True)
class Replayed:
    """The recorded middlebox decisions of an earlier run, which a replay repeats."""

    run_id: str
    """Id of the earlier run."""

    decisions: Path
    command: tuple[str, ...]
    """The command line that starts this replay again."""


@dataclass(frozen=True)
class RunSpec:
    """Everything that defines a run before it starts, such as the scenario, the seed and the
    drivers.
    """

    run_id: str
    scenario: Scenario
    scenario_file: Path
    seed: int
    payload: Payload
    folder: RunDir
    fidelity: Fidelity
    command: tuple[str, ...]
    tested: Pair
    sabotage: str
    runs: Path
    """The folder of all runs, to which labs have access. It also contains the labs' records."""

    replayed: Replayed | None = None
    """Decisions to apply instead of the scenario's rules, or None."""

    receive: Mapping[str, str] = field(default_factory=dict)
    """Channel parameters of all subscriptions that `scenario` has instead of the file's."""

    compress: bool = False
    """Whether to compress the captures if the run passes."""

    allow_commands: bool = False
    """Whether the user has allowed the scenario's applications and own checks."""

    by_host: Mapping[str, Subject] = field(default_factory=dict)
    """The drivers under test of single hosts, which take precedence over `tested`."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """The values of the scenario that differ from its file, by name."""

    sweep: str = ""
    """Name of the scenario whose sweep has this variant, or an empty string."""

    scenario_text: str = ""
    """The scenario as a file of its own, if its file does not contain all of it."""

    def side(self, host: str) -> str:
        """Return the role of a host in the scenario's first stream: `publisher` or `subscriber`.
        Without streams, the first host counts as the publisher's.
        """
        traffic = self.scenario.traffic
        publishers = traffic[0].from_hosts if traffic else self.scenario.network.hosts[:1]
        return "publisher" if host in publishers else "subscriber"

    def subject(self, host: str) -> Subject:
        """Return the driver under test that runs on a host."""
        if host in self.by_host:
            return self.by_host[host]
        tested = self.tested
        return tested.publisher if self.side(host) == "publisher" else tested.subscriber
