"""Is the same check still violated? A candidate is run and judged, and the answer is yes or no.

    candidate --Order--> run --judge--> was `check` violated?
      scenario: which streams, how long        in sim once, for equal cases have equal events
      decisions: of another run, or None       elsewhere several times; most must agree
                 where its rules decide

Only the check in question is looked at, so a candidate that fails for another reason does not
count. Refuses to know what a candidate is good for.
"""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.records import Records, write_records
from windtunnel.harness.artifact.regular_file import read_text
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.cancel import Cancellation
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.run.one_run import Begin, RunResult, begin_alone, make_run
from windtunnel.harness.orchestrate.run.run_spec import Replayed, RunSpec
from windtunnel.harness.orchestrate.run.simulator_session import SimulatorSession
from windtunnel.harness.scenario.schema.model import Scenario

RUN = "run"
DECISIONS = "tried.bin"


class TrialError(Exception):
    """A trial that could not be judged at all; the text says why."""


@dataclass(frozen=True)
class Candidate:
    """What is tried."""

    scenario: Scenario
    decisions: Records | None = None
    """The decisions that are repeated; None where the scenario's rules decide."""


class Trials:
    """Makes trials, one after the other, in one folder."""

    def __init__(self, order: RunSpec, cancellation: Cancellation, repeats: int) -> None:
        """`order` has everything but the candidate; its folder's parent is where trials are made.

        `repeats` is how often a candidate is run where runs of equal cases may differ.
        """
        self._order = order
        self._cancellation = cancellation
        self._repeats = 1 if order.fidelity == labs.SIM else repeats
        self._home = order.folder.path.parent
        self._stack = ExitStack()
        self._begin: Begin = begin_alone
        self.count = 0
        """Runs made so far."""

    def __enter__(self) -> Trials:
        if self._order.fidelity == labs.SIM:
            self._begin = self._stack.enter_context(SimulatorSession(self._order)).begin
        return self

    def __exit__(self, *error: Any) -> None:
        with self._cancellation.shielded():
            self._stack.close()

    @property
    def last(self) -> RunDir:
        """The folder of the last run."""
        return self._order.folder

    def use_file(self, file: Path) -> None:
        """Keep another scenario file in the folders of the runs to come."""
        self._order = replace(self._order, scenario_file=file)

    def decisions(self) -> Records:
        """What the middlebox of the last run decided."""
        found = read_decisions(self.last.decisions)
        if found is None:
            raise TrialError(f"{self.last.decisions}: the run left no decision log")
        return found

    def violated(self, candidate: Candidate) -> dict[str, str]:
        """The checks that a candidate violates in one run, each with what was found."""
        folder = self.last
        shutil.rmtree(folder.path, ignore_errors=True)
        order = replace(self._order, scenario=candidate.scenario)
        if candidate.decisions is not None:
            path = self._home / DECISIONS
            write_records(path, candidate.decisions)
            order = replace(order, replayed=Replayed(order.run_id, path, order.command))
        made: list[RunResult] = []
        make_run(order, _silent, self._cancellation, made.append, self._begin)
        self.count += 1
        if made[0].outcome == "UNSUPPORTED":
            raise TrialError(made[0].reason)
        return violated_checks(folder)

    def fails(self, candidate: Candidate, check: str) -> bool:
        """Whether a candidate violates a check, in most of the runs that it takes to tell."""
        needed = self._repeats // 2 + 1
        yes = no = 0
        while yes < needed and no < needed:
            if check in self.violated(candidate):
                yes += 1
            else:
                no += 1
        return yes == needed


def violated_checks(folder: RunDir) -> dict[str, str]:
    """The checks that said no, by the verdict of a run, each with its first finding."""
    found: dict[str, str] = {}
    try:
        for each in json.loads(read_text(folder.verdict))["checks"]:
            if each["outcome"] == "FAIL":
                found.setdefault(str(each["name"]), str(each["text"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TrialError(f"{folder.verdict}: no verdict that can be read: {error}") from error
    return found


def _silent(**what: Any) -> None:
    """Nobody watches a trial."""
