"""A suite under way: the orders of its runs, what has come of them, and its document.

    planned run --> Order --(one_run, here or in another process)--> Made --> suite.json

Refuses to know which scenarios were asked for, who makes the runs and who looks on.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from windtunnel.harness.artifact.run.suite import ScenarioResult, Suite, SuiteRun
from windtunnel.harness.artifact.run_dir import SuiteDir
from windtunnel.harness.orchestrate.cancel import Cancelled
from windtunnel.harness.orchestrate.run.one_run import CANCELLED, RunResult
from windtunnel.harness.orchestrate.run.payload import Payload
from windtunnel.harness.orchestrate.run.run_spec import Fidelity, Replayed, RunSpec
from windtunnel.harness.orchestrate.subjects.subject import OURS, OURS_WITH_OURS, Pair
from windtunnel.harness.orchestrate.suite.score import Score
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.uml.boot import INSIDE_VARIABLE
from windtunnel.harness.verdict.core.known import KnownBook
from windtunnel.harness.verdict.core.outcome import Outcome, exit_code, merge


@dataclass(frozen=True)
class RunSummary:
    """How one run ended."""

    scenario: str
    seed: int
    run_dir: Path
    outcome: str
    """FAIL, KNOWN, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS or CANCELLED."""

    reason: str


@dataclass
class SuiteResult:
    """How a suite ended: the exit code is the worst scenario's, or says who cancelled it."""

    exit_code: int
    suite_dir: Path
    runs: list[RunSummary] = field(default_factory=list)
    scenarios: list[ScenarioResult] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What should be known of the file of known failures."""


@dataclass(frozen=True)
class Planned:
    """A run that is to be made."""

    scenario: Scenario
    file: Path
    seed: int


@dataclass(frozen=True)
class Circumstances:
    """What all runs of a suite have in common."""

    out: Path
    """The folder of all runs."""

    fidelity: Fidelity
    payload: Payload
    sabotage: str = ""
    tested: Pair = OURS_WITH_OURS
    known: tuple[KnownFailure, ...] = ()
    replayed: Replayed | None = None


class SuiteUnderWay:
    """A suite under way: its folder, its document and what has come of its runs so far."""

    def __init__(self, folder: Path, common: Circumstances) -> None:
        self._common = common
        self._dir = SuiteDir(folder)
        self._dir.path.mkdir(parents=True)
        self._document = Suite(
            folder.name,
            common.fidelity,
            list(sys.argv),
            started_ns=time.time_ns(),
            publisher=common.tested.publisher.name,
            subscriber=common.tested.subscriber.name,
        )
        self._document.write(self._dir.document)
        self._score = Score(KnownBook(common.known, datetime.now(UTC).date()))
        self.result = SuiteResult(exit_code=0, suite_dir=folder)

    def order(self, planned: Planned) -> RunSpec:
        """Return the order of one run, complete in itself."""
        common = self._common
        folder = self._dir.run(planned.scenario.name, planned.seed)
        return RunSpec(
            run_id=str(folder.path.relative_to(common.out)),
            scenario=planned.scenario,
            scenario_file=planned.file.absolute(),
            seed=planned.seed,
            payload=common.payload,
            folder=folder,
            fidelity=common.fidelity,
            command=self._command(planned),
            tested=common.tested,
            sabotage=common.sabotage,
            runs=common.out,
            replayed=common.replayed,
        )

    def note(self, order: RunSpec, made: RunResult) -> SuiteRun:
        """Take down how a run ended; a failure that is known is no FAIL."""
        name, seed, folder = order.scenario.name, order.seed, order.folder.path
        outcome, reason = made.outcome, made.reason
        if outcome != CANCELLED:
            outcome, reason = self._score.add(order.scenario, order.folder, outcome, reason)
        self.result.runs.append(RunSummary(name, seed, folder, outcome, reason))
        row = SuiteRun(folder.name, name, seed, outcome, reason, made.started_ns, made.ended_ns)
        self._document.runs.append(row)
        self._document.write(self._dir.document)
        return row

    def close(self, cancelled: Cancelled | None = None) -> None:
        """Write the suite's end: the worst scenario gives the exit code, or who cancelled it."""
        code = self._score.exit_code() if cancelled is None else cancelled.exit_code
        self.result.scenarios = self._document.scenarios = self._score.scenarios()
        self.result.remarks = self._document.remarks = self._score.remarks()
        self.result.exit_code = self._document.exit_code = code
        self._document.ended_ns = time.time_ns()
        self._document.write(self._dir.document)

    def _command(self, planned: Planned) -> tuple[str, ...]:
        """Return the command that makes this one run again."""
        common = self._common
        if common.replayed is not None:
            return common.replayed.command
        command = ["windtunnel", "run", str(planned.file)]
        command += ["--fidelity", common.fidelity, "--seed", str(planned.seed), "--seeds", "1"]
        for side, tested in zip(("publisher", "subscriber"), common.tested, strict=True):
            if tested.name != OURS.name:
                command += [f"--{side}", tested.name]
        if backend := planned.scenario.network.weather_backend:
            command += ["--backend", backend]
        if INSIDE_VARIABLE in os.environ:
            command += ["--kernel", os.environ[INSIDE_VARIABLE]]
        if common.payload.source:
            command += ["--payload", common.payload.source]
        if common.sabotage:
            command += ["--sabotage", common.sabotage]
        if common.tested.mutant:
            command += ["--mutant", common.tested.mutant]
        return tuple(command)


def worst_exit_code(outcomes: Sequence[str]) -> int:
    """Return the exit code of a suite whose runs ended so."""
    return exit_code(merge([Outcome[name] for name in outcomes if name != CANCELLED]))
