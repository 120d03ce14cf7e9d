"""What is known of a run before it begins, and nothing that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.run.payload import Payload
from windtunnel.harness.orchestrate.subjects.subject import Pair, Subject
from windtunnel.harness.scenario.schema.model import Scenario

Fidelity = Literal["netns", "compose", "sim"]


@dataclass(frozen=True)
class Replayed:
    """The decisions that a run is to repeat."""

    run_id: str
    """Of the run that made them."""

    decisions: Path
    command: tuple[str, ...]
    """What makes this replay again."""


@dataclass(frozen=True)
class RunSpec:
    """Everything that is known about a run before it begins."""

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
    """The folder of all runs, which a lab can see and in which it notes what it changes."""

    replayed: Replayed | None = None
    """What decides in place of the scenario's rules, if anything does."""

    def side(self, host: str) -> str:
        """Which side of the pair a host is."""
        return "publisher" if host in self.scenario.traffic[0].from_hosts else "subscriber"

    def subject(self, host: str) -> Subject:
        """Who is tested on a host."""
        tested = self.tested
        return tested.publisher if self.side(host) == "publisher" else tested.subscriber
