"""A running suite: the specifications and results of its runs, and the suite document.

    PlannedRun --> RunSpec --(one_run, here or in a worker)--> RunResult --> suite.json

Other modules select the scenarios, execute the runs and display them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from windtunnel.harness.artifact.run.suite import ScenarioResult, Suite, SuiteRun
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.orchestrate.allowed_commands import OPTION
from windtunnel.harness.orchestrate.cancel import SIGNAL_EXIT_BASE, Cancelled
from windtunnel.harness.orchestrate.fidelity import Fidelity
from windtunnel.harness.orchestrate.run.one_run import CANCELLED, RunResult
from windtunnel.harness.orchestrate.run.payload import Payload
from windtunnel.harness.orchestrate.run.run_spec import Replayed, RunSpec
from windtunnel.harness.orchestrate.subjects.subject import (
    OURS,
    OURS_WITH_OURS,
    Pair,
    Subject,
)
from windtunnel.harness.orchestrate.suite.score import Score
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.uml.boot import INSIDE_VARIABLE
from windtunnel.harness.verdict.core.known import KnownFailureList
from windtunnel.harness.verdict.core.outcome import Outcome, exit_code, merge


@dataclass(frozen=True)
class RunSummary:
    """The outcome of one run of a suite, and the run's folder."""

    scenario: str
    seed: int
    run_dir: Path
    outcome: str
    """Name of the outcome: FAIL, KNOWN, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS or CANCELLED."""

    reason: str


@dataclass
class SuiteResult:
    """The result of a suite. Its exit code is that of the worst scenario, or of the signal that
    cancelled the suite.
    """

    exit_code: int
    suite_dir: Path
    runs: list[RunSummary] = field(default_factory=list)
    scenarios: list[ScenarioResult] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """Remarks about the known-failures file."""

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled if a signal cancelled the suite, so that its caller ends as well."""
        if self.exit_code > SIGNAL_EXIT_BASE:
            raise Cancelled(self.exit_code - SIGNAL_EXIT_BASE)


@dataclass(frozen=True)
class PlannedRun:
    """A scenario and a seed with which to run it."""

    scenario: Scenario
    file: Path
    seed: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """The values of the scenario that differ from the file, by name."""

    sweep: str = ""
    """Name of the scenario whose sweep has this variant, or an empty string."""

    text: str = ""
    """The scenario as a file of its own, if `file` does not contain all of it."""


@dataclass(frozen=True)
class SuiteOptions:
    """The options that all runs of a suite share."""

    out: Path
    """The folder of all runs."""

    fidelity: Fidelity
    payload: Payload
    sabotage: str = ""
    tested: Pair = OURS_WITH_OURS
    known: tuple[KnownFailure, ...] = ()
    replayed: Replayed | None = None
    compress: bool = False
    """Whether to compress the captures of passed runs."""

    allow_commands: bool = False
    """Whether the user has allowed the commands of the scenarios' applications."""

    receive: Mapping[str, str] = field(default_factory=dict)
    """Channel parameters that override those of all subscriptions."""

    by_host: Mapping[str, Subject] = field(default_factory=dict)
    """The drivers under test of single hosts, which take precedence over `tested`."""


class RunningSuite:
    """A suite that is being executed: its folder, its document and its results so far."""

    def __init__(
        self, folder: Path, common: SuiteOptions, program: Sequence[str] | None = None
    ) -> None:
        """Create the folder of a suite. `program` is the command line of the program that controls
        its runs, if there is one.
        """
        self._common = common
        self._program = program
        self._dir = SuiteDir(folder)
        self._dir.path.mkdir(parents=True)
        self._document = Suite(
            folder.name,
            common.fidelity,
            list(sys.argv if program is None else program),
            started_ns=time.time_ns(),
            publisher=common.tested.publisher.name,
            subscriber=common.tested.subscriber.name,
        )
        self._document.write(self._dir.document)
        self._score = Score(KnownFailureList(common.known, datetime.now(UTC).date()))
        self.result = SuiteResult(exit_code=0, suite_dir=folder)

    def spec(self, planned: PlannedRun) -> RunSpec:
        """Return the complete specification of a run."""
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
            receive=common.receive,
            compress=common.compress,
            allow_commands=common.allow_commands,
            by_host=common.by_host,
            settings=planned.settings,
            sweep=planned.sweep,
            scenario_text=planned.text,
        )

    def record(self, spec: RunSpec, result: RunResult) -> SuiteRun:
        """Record the result of a run. The outcome of a known failure is KNOWN instead of FAIL."""
        name, seed, folder = spec.scenario.name, spec.seed, spec.folder.path
        outcome, reason = result.outcome, result.reason
        if outcome != CANCELLED:
            outcome, reason = self._score.add(spec.scenario, spec.folder, outcome, reason)
        self.result.runs.append(RunSummary(name, seed, folder, outcome, reason))
        row = SuiteRun(
            folder.name,
            name,
            seed,
            outcome,
            reason,
            result.started_ns,
            result.ended_ns,
            sweep=spec.sweep,
            settings=dict(spec.settings),
        )
        self._document.runs.append(row)
        self._document.write(self._dir.document)
        return row

    def close(self, cancelled: Cancelled | None = None) -> None:
        """Write the final suite document, with the exit code of the worst scenario or of the signal
        that cancelled the suite.
        """
        code = self._score.exit_code() if cancelled is None else cancelled.exit_code
        self.result.scenarios = self._document.scenarios = self._score.scenarios()
        self.result.remarks = self._document.remarks = self._score.remarks()
        self.result.exit_code = self._document.exit_code = code
        self._document.ended_ns = time.time_ns()
        self._document.write(self._dir.document)

    def _command(self, planned: PlannedRun) -> tuple[str, ...]:
        """Return the command line that repeats one run of the suite."""
        common = self._common
        if common.replayed is not None:
            return common.replayed.command
        if self._program is not None:
            return tuple(self._program)
        command = ["windtunnel", "run", str(planned.file)]
        command += ["--fidelity", common.fidelity, "--seed", str(planned.seed), "--seeds", "1"]
        for side, tested in zip(("publisher", "subscriber"), common.tested, strict=True):
            if tested.name != OURS.name:
                command += [f"--{side}", tested.name]
        if backend := planned.scenario.network.impairment_backend:
            command += ["--backend", backend]
        if INSIDE_VARIABLE in os.environ:
            command += ["--kernel", os.environ[INSIDE_VARIABLE]]
        if planned.scenario.applications or planned.scenario.checks:
            command += [OPTION]
        for name, value in planned.settings.items():
            command += ["--set", f"{name}={value}"]
        for name, value in common.receive.items():
            command += ["--receive", f"{name}={value}"]
        if common.payload.source:
            command += ["--payload", common.payload.source]
        if common.sabotage:
            command += ["--sabotage", common.sabotage]
        if common.tested.mutant:
            command += ["--mutant", common.tested.mutant]
        return tuple(command)


def worst_exit_code(outcomes: Sequence[str]) -> int:
    """Return the exit code of a suite or matrix from the outcomes of its runs. Cancelled runs are
    ignored.
    """
    return exit_code(merge([Outcome[name] for name in outcomes if name != CANCELLED]))
