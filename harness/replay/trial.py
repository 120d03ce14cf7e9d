"""Runs and judges a candidate scenario, to determine whether it still violates a given check.

    candidate --RunSpec--> run --judge--> was `check` violated?
      scenario: which streams, how long        in sim once, since equal cases have equal events
      decisions: of another run, or None       elsewhere several times; the majority decides
                 if its rules decide

Only the check in question counts, so a candidate that fails for another reason is not accepted.
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
from windtunnel.harness.orchestrate.fidelity import SIM
from windtunnel.harness.orchestrate.run.one_run import Begin, RunResult, begin_isolated, execute_run
from windtunnel.harness.orchestrate.run.run_spec import Replayed, RunSpec
from windtunnel.harness.orchestrate.run.simulator_session import SimulatorSession
from windtunnel.harness.scenario.frame_expectation import NAME as EXPECT_FRAMES
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.verdict.core.kind import Kind

RUN = "run"
DECISIONS = "tried.bin"


class TrialError(Exception):
    """Raised if a trial could not be run or judged. The message gives the reason."""


@dataclass(frozen=True)
class Candidate:
    """A scenario to try, and the middlebox decisions to replay with it."""

    scenario: Scenario
    decisions: Records | None = None
    """The decisions to replay, or None to apply the scenario's rules."""


class Trials:
    """Runs trials one after the other, in the same run folder."""

    def __init__(self, order: RunSpec, cancellation: Cancellation, repeats: int) -> None:
        """Prepare trial runs with the settings in `order`. Each candidate replaces the scenario and
        the decisions.

        `repeats` is the number of runs per candidate at fidelity levels where equal runs can have
        different results.
        """
        self._order = order
        self._cancellation = cancellation
        self._repeats = 1 if order.fidelity == SIM else repeats
        self._home = order.folder.path.parent
        self._stack = ExitStack()
        self._begin: Begin = begin_isolated
        self.count = 0
        """Number of runs executed so far."""

    def __enter__(self) -> Trials:
        if self._order.fidelity == SIM:
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
        """Copy the given scenario file into the run folder of all later trials."""
        self._order = replace(self._order, scenario_file=file)

    def decisions(self) -> Records:
        """Return the decisions that the middlebox made in the last run."""
        found = read_decisions(self.last.decisions)
        if found is None:
            raise TrialError(f"{self.last.decisions}: the run wrote no decision log")
        return found

    def violated(self, candidate: Candidate) -> dict[str, str]:
        """Run a candidate once. Returns the checks that the run violates, each with its finding."""
        folder = self.last
        shutil.rmtree(folder.path, ignore_errors=True)
        order = replace(self._order, scenario=candidate.scenario)
        if candidate.decisions is not None:
            path = self._home / DECISIONS
            write_records(path, candidate.decisions)
            order = replace(order, replayed=Replayed(order.run_id, path, order.command))
        made: list[RunResult] = []
        execute_run(order, _silent, self._cancellation, made.append, self._begin)
        self.count += 1
        if made[0].outcome == "UNSUPPORTED":
            raise TrialError(made[0].reason)
        return violated_checks(folder)

    def fails(self, candidate: Candidate, check: str) -> bool:
        """Run a candidate repeatedly until the result of the majority is certain. Returns whether
        the majority violates the check.
        """
        needed = self._repeats // 2 + 1
        yes = no = 0
        while yes < needed and no < needed:
            if check in self.violated(candidate):
                yes += 1
            else:
                no += 1
        return yes == needed


def violated_checks(folder: RunDir) -> dict[str, str]:
    """Return the failed checks in a run's verdict, each with its first finding.

    Own checks are left out, since trials do not execute them, and so are expected frames, which
    refer to a rule of the scenario.
    """
    found: dict[str, str] = {}
    try:
        for each in json.loads(read_text(folder.verdict))["checks"]:
            is_left_out = each["name"] == EXPECT_FRAMES or each.get("kind") == Kind.OWN
            if each["outcome"] == "FAIL" and not is_left_out:
                found.setdefault(str(each["name"]), str(each["text"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TrialError(f"{folder.verdict}: cannot read the verdict: {error}") from error
    return found


def _silent(**what: Any) -> None:
    """Discard the progress events of a trial."""
