"""A matrix of runs: each publisher with each subscriber, in each scenario and with each seed.

    runs/<matrix>/
      matrix.json                      the cells, rewritten after each run
      <publisher>-to-<subscriber>/     the suite of a pair: its runs and suite.json

If this machine cannot start a pair, the pair is UNSUPPORTED in the matrix, and none of its runs is
started.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.matrix import Matrix, MatrixCell, MatrixPeer
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import MatrixDir, new_suite_id
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.event import OnEvent, compile_event, ignore
from windtunnel.harness.orchestrate.fidelity import Fidelity
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.run.one_run import CANCELLED, RunResult
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.subjects.subject import Pair, Subject
from windtunnel.harness.orchestrate.suite import pool
from windtunnel.harness.orchestrate.suite.runner import (
    PAYLOAD_STORE,
    payload_of,
    plan,
    verdict_event,
    writing_to,
)
from windtunnel.harness.orchestrate.suite.suite import (
    PlannedRun,
    RunningSuite,
    SuiteOptions,
    worst_exit_code,
)
from windtunnel.harness.verdict.core.outcome import Outcome, merge

NAME_LENGTH_MAX = 40
_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class MatrixSpec:
    """The specification of a matrix: scenarios, peers and options."""

    scenarios: Sequence[Path]
    publishers: Sequence[str]
    subscribers: Sequence[str]
    fidelity: Fidelity = "netns"
    seed: int | None = None
    seeds: int | None = None
    payload_file: Path | None = None
    out: Path = Path("runs")
    jobs: int = 1


@dataclass(frozen=True)
class MatrixResult:
    """The result of a matrix: its folder and the final contents of matrix.json."""

    matrix_dir: Path
    document: Matrix


OnCell = Callable[[MatrixCell, int, int], None]
"""A callback that receives each completed cell, the number of completed cells and the total."""


def ignore_cell(cell: MatrixCell, done_count: int, count: int) -> None:
    """Ignore the completion of a matrix cell. This is the default callback."""


def run_matrix(
    matrix_spec: MatrixSpec, on_event: OnEvent = ignore, on_cell: OnCell = ignore_cell
) -> MatrixResult:
    """Execute all runs of a matrix, up to `jobs` in parallel.

    As with `run_suite`, ScenarioError, PeerError and LabError are only raised before anything is
    started. Afterwards all outcomes are in the result, and signal N ends the matrix with exit code
    128 + N.
    """
    planned = plan(matrix_spec.scenarios, matrix_spec.seed, matrix_spec.seeds)
    labs.require_hosts(matrix_spec.fidelity, (each.scenario for each in planned))
    labs.require(matrix_spec.fidelity, lambda done: on_event(compile_event(done, len(planned))))
    out = matrix_spec.out.resolve()
    with writing_to(out):
        running = _RunningMatrix(matrix_spec, out, planned)
        _execute_runs(running, matrix_spec.jobs, on_event, on_cell)
    return MatrixResult(running.folder.path, running.document)


def _execute_runs(running: _RunningMatrix, jobs: int, on_event: OnEvent, on_cell: OnCell) -> None:
    specs = running.specs
    cells = running.document.cells
    done: list[MatrixCell] = []

    def on_result(index: int, result: RunResult) -> None:
        cell = running.record(index, result)
        on_event(verdict_event(specs, index, result))
        if len(cell.runs) == cell.planned_count:
            done.append(cell)
            on_cell(cell, len(done), len(cells))

    with Cancellation() as cancellation:
        try:
            pool.execute_runs(
                specs, jobs=jobs, on_event=on_event, on_result=on_result, cancellation=cancellation
            )
        except Cancelled as cancelled:
            running.close(cancelled)
        else:
            running.close()


class _RunningMatrix:
    """A matrix that is being executed: its folder, its document, and one suite for each pair."""

    def __init__(self, matrix_spec: MatrixSpec, out: Path, planned: Sequence[PlannedRun]) -> None:
        publishers = _subjects(matrix_spec.publishers, matrix_spec.fidelity, out)
        subscribers = _subjects(matrix_spec.subscribers, matrix_spec.fidelity, out)
        self.folder = MatrixDir(out / f"matrix-{new_suite_id(datetime.now(UTC))}")
        self.specs: list[RunSpec] = []
        self._suites: list[RunningSuite] = []
        self._places: list[tuple[RunningSuite, MatrixCell]] = []
        self.document = Matrix(
            matrix_id=self.folder.path.name,
            fidelity=matrix_spec.fidelity,
            command=list(sys.argv),
            jobs=matrix_spec.jobs,
            publishers=list(publishers),
            subscribers=list(subscribers),
            started_ns=time.time_ns(),
            peers=[
                MatrixPeer(each.name, missing=each.missing)
                for each in {**publishers, **subscribers}.values()
            ],
        )
        sent = payload_of(out / PAYLOAD_STORE, matrix_spec.payload_file)
        pairs = [Pair(a, b) for a in publishers.values() for b in subscribers.values()]
        for pair in pairs:
            common = SuiteOptions(out, matrix_spec.fidelity, sent, tested=pair)
            self._suites.append(RunningSuite(self.folder.path / folder_name(pair), common))
        self._plan(planned, pairs)
        self._write()

    def _plan(self, planned: Sequence[PlannedRun], pairs: Sequence[Pair]) -> None:
        """List all runs, scenario by scenario, so that all pairs of drivers progress together."""
        by_scenario: dict[tuple[Path, str], list[PlannedRun]] = {}
        for each in planned:
            by_scenario.setdefault((each.file, each.scenario.name), []).append(each)
        for runs in by_scenario.values():
            for suite, pair in zip(self._suites, pairs, strict=True):
                cell = MatrixCell(
                    scenario=runs[0].scenario.name,
                    publisher=pair.publisher.name,
                    subscriber=pair.subscriber.name,
                    suite=suite.result.suite_dir.name,
                    planned_count=len(runs),
                )
                self.document.cells.append(cell)
                self.specs += [suite.spec(each) for each in runs]
                self._places += [(suite, cell)] * len(runs)

    def record(self, index: int, result: RunResult) -> MatrixCell:
        """Record the result of a run in its suite and in the matrix. Returns the matrix cell to
        which the run belongs.
        """
        suite, cell = self._places[index]
        cell.runs.append(suite.record(self.specs[index], result))
        cell.runs.sort(key=lambda run: run.seed)
        update_outcome(cell)
        self._record_versions(self.specs[index].folder)
        self._write()
        return cell

    def _record_versions(self, folder: RunDir) -> None:
        try:
            manifest = Manifest.read(folder.manifest)
        except DocumentError:
            manifest = None
        seen = manifest.subjects.values() if manifest else ()
        for peer in self.document.peers:
            for subject in seen:
                if subject.peer == peer.name and subject.version:
                    peer.version = subject.version

    def close(self, cancelled: Cancelled | None = None) -> None:
        """Close the suite of every pair, and write the final matrix.json."""
        for suite in self._suites:
            suite.close(cancelled)
        outcomes = [run.outcome for cell in self.document.cells for run in cell.runs]
        worst = worst_exit_code(outcomes)
        self.document.exit_code = cancelled.exit_code if cancelled else worst
        self.document.ended_ns = time.time_ns()
        self._write()

    def _write(self) -> None:
        self.document.write(self.folder.document)


def _subjects(names: Sequence[str], fidelity: str, out: Path) -> dict[str, Subject]:
    """Return the drivers under test for a list of peer names or aliases, keyed by their full
    names.
    """
    found = [peers.find(name, fidelity, out / peers.STORE) for name in names]
    return {each.name: each for each in found}


def update_outcome(cell: MatrixCell) -> None:
    """Set the outcome of a matrix cell from the results of its runs so far."""
    decided = [run for run in cell.runs if run.outcome != CANCELLED]
    cell.pass_count = sum(run.outcome == Outcome.PASS for run in decided)
    if not decided:
        cell.outcome, cell.reason = CANCELLED, "cancelled before its end"
        return
    cell.outcome = str(merge(Outcome[run.outcome] for run in decided))
    cell.reason = next(run.reason for run in decided if run.outcome == cell.outcome)


def folder_name(pair: Pair) -> str:
    """Return a readable, short and unique name for the suite folder of a pair of drivers."""
    names = "-to-".join(_short(each.name) for each in pair)
    if all(name in peers.BUILT_IN_NAMES for name in (each.name for each in pair)):
        return names
    digest = hashlib.sha256("\0".join(each.name for each in pair).encode()).hexdigest()[:6]
    return f"{names}-{digest}"


def _short(name: str) -> str:
    return _NOT_IN_A_NAME.sub("-", name.rpartition("/")[2])[:NAME_LENGTH_MAX] or "peer"
