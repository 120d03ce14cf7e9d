"""The specification of an exam, and the listener for its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from windtunnel.harness.exam.document import ExamRun, MutantRow
from windtunnel.harness.exam.mutant import NONE, Mutant
from windtunnel.harness.orchestrate.fidelity import SIM


@dataclass(frozen=True)
class MutationRun:
    """The specification of an exam: the mutants to run, the folder for the results, and options."""

    mutants: Sequence[Mutant]
    folder: Path
    fidelity: str | None = None
    "The fidelity level of all runs, or None to run each mutant at the level that it specifies."
    jobs: int = 1
    keeps_all: bool = False
    sound: str = NONE
    "Name to use in place of a mutant's name for the driver without an active mutant."
    generated: str = ""
    "Name of the set if the mutants are generated ones."
    planted: Sequence[Mutant] = ()
    "All mutants that the driver contains, of which some run."
    environments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    "The environment variables of the mutated driver, by fidelity level."
    seeds: int = 1
    "Number of seeds with which a mutant is simulated until it is killed. In real time it is 1."

    def seeds_at(self, fidelity: str) -> int:
        """Return the number of seeds for each scenario at a fidelity level."""
        return self.seeds if fidelity == SIM else 1

    def fidelity_of(self, mutant: Mutant) -> str:
        """Return the fidelity level (netns, compose or sim) at which a mutant runs."""
        return self.fidelity or mutant.fidelity


class Listener(Protocol):
    """Receives the progress of an exam."""

    def on_driver_without_defect(self, run: ExamRun) -> None:
        """Called when a run with the driver without a defect has ended, unless the run will be
        repeated.
        """

    def on_mutant(self, row: MutantRow) -> None:
        """Called when all runs of a mutant have ended."""

    def on_repeat(self, name: str, run: ExamRun) -> None:
        """Called before an inconclusive run is repeated. `name` is a mutant, or `sound` for the
        driver without a defect.
        """
