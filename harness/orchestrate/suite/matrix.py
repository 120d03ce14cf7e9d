"""Every publisher against every subscriber, under every scenario, with every seed.

    runs/<matrix>/
      matrix.json                      the cells, written anew after each run
      <publisher>-to-<subscriber>/     a suite a pair: its runs, its suite.json

A pair that this machine cannot have stands in the matrix as UNSUPPORTED and starts nothing. Refuses
to draw anything.
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
from windtunnel.harness.artifact.run_dir import MatrixDir, RunDir, new_suite_id
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.event import OnEvent, ignore
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.run.one_run import CANCELLED, RunResult
from windtunnel.harness.orchestrate.run.run_spec import Fidelity, RunSpec
from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.subjects.subject import Pair, Subject
from windtunnel.harness.orchestrate.suite import pool
from windtunnel.harness.orchestrate.suite.runner import (
    PAYLOAD_STORE,
    payload_of,
    plan,
    verdict_event,
)
from windtunnel.harness.orchestrate.suite.suite import (
    Circumstances,
    Planned,
    SuiteUnderWay,
    worst_exit_code,
)
from windtunnel.harness.verdict.core.outcome import Outcome, merge

NAME_LENGTH_MAX = 40
_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class Question:
    """What a matrix is to find out."""

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
    """Where the matrix lies, and the document as it was written last."""

    matrix_dir: Path
    document: Matrix


OnCell = Callable[[MatrixCell, int, int], None]
"""Is told each cell whose runs are all made, how many cells are so, and how many there are."""


def ignore_cell(cell: MatrixCell, done_count: int, count: int) -> None:
    """Take no notice."""


def run_matrix(
    question: Question, on_event: OnEvent = ignore, on_cell: OnCell = ignore_cell
) -> MatrixResult:
    """Make all runs of a matrix, `jobs` at once.

    Raises ScenarioError, PeerError or LabError before anything is started, as `run_suite` does;
    afterwards every outcome is in the result, and a signal ends it with exit code 128 + its number.
    """
    planned = plan(question.scenarios, question.seed, question.seeds)
    labs.require(question.fidelity)
    out = question.out.resolve()
    try:
        under_way = _MatrixRun(question, out, planned)
        _make_runs(under_way, question.jobs, on_event, on_cell)
    except OSError as error:
        raise LabError(f"{error.filename or out}: {error.strerror}") from error
    return MatrixResult(under_way.folder.path, under_way.document)


def _make_runs(under_way: _MatrixRun, jobs: int, on_event: OnEvent, on_cell: OnCell) -> None:
    orders = under_way.orders
    cells = under_way.document.cells
    done: list[MatrixCell] = []

    def on_made(index: int, made: RunResult) -> None:
        cell = under_way.note(index, made)
        on_event(verdict_event(orders, index, made))
        if len(cell.runs) == cell.planned_count:
            done.append(cell)
            on_cell(cell, len(done), len(cells))

    with Cancellation() as cancellation:
        try:
            pool.make_runs(
                orders, jobs=jobs, on_event=on_event, on_made=on_made, cancellation=cancellation
            )
        except Cancelled as cancelled:
            under_way.close(cancelled)
        else:
            under_way.close()


class _MatrixRun:
    """A matrix under way: its folder, its document, a suite for each pair."""

    def __init__(self, question: Question, out: Path, planned: Sequence[Planned]) -> None:
        publishers = _subjects(question.publishers, question.fidelity, out)
        subscribers = _subjects(question.subscribers, question.fidelity, out)
        self.folder = MatrixDir(out / f"matrix-{new_suite_id(datetime.now(UTC))}")
        self.orders: list[RunSpec] = []
        self._suites: list[SuiteUnderWay] = []
        self._places: list[tuple[SuiteUnderWay, MatrixCell]] = []
        self.document = Matrix(
            matrix_id=self.folder.path.name,
            fidelity=question.fidelity,
            command=list(sys.argv),
            jobs=question.jobs,
            publishers=list(publishers),
            subscribers=list(subscribers),
            started_ns=time.time_ns(),
            peers=[
                MatrixPeer(each.name, missing=each.missing)
                for each in {**publishers, **subscribers}.values()
            ],
        )
        sent = payload_of(out / PAYLOAD_STORE, question.payload_file)
        pairs = [Pair(a, b) for a in publishers.values() for b in subscribers.values()]
        for pair in pairs:
            common = Circumstances(out, question.fidelity, sent, tested=pair)
            self._suites.append(SuiteUnderWay(self.folder.path / folder_name(pair), common))
        self._plan(planned, pairs)
        self._write()

    def _plan(self, planned: Sequence[Planned], pairs: Sequence[Pair]) -> None:
        """Order all runs: scenario by scenario, so that no pair comes last as a whole."""
        by_scenario: dict[Path, list[Planned]] = {}
        for each in planned:
            by_scenario.setdefault(each.file, []).append(each)
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
                self.orders += [suite.order(each) for each in runs]
                self._places += [(suite, cell)] * len(runs)

    def note(self, index: int, made: RunResult) -> MatrixCell:
        """Take down how a run ended, in its suite and in the document; return its cell."""
        suite, cell = self._places[index]
        cell.runs.append(suite.note(self.orders[index], made))
        cell.runs.sort(key=lambda run: run.seed)
        settle(cell)
        self._note_versions(self.orders[index].folder)
        self._write()
        return cell

    def _note_versions(self, folder: RunDir) -> None:
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
        """Write the end of every suite and of the matrix."""
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
    """Return the peers of names, by the one name that each has; named twice, they are one."""
    found = [peers.find(name, fidelity, out / peers.STORE) for name in names]
    return {each.name: each for each in found}


def settle(cell: MatrixCell) -> None:
    """Say what the runs of a cell come to so far."""
    decided = [run for run in cell.runs if run.outcome != CANCELLED]
    cell.pass_count = sum(run.outcome == Outcome.PASS for run in decided)
    if not decided:
        cell.outcome, cell.reason = CANCELLED, "cancelled before its end"
        return
    cell.outcome = str(merge(Outcome[run.outcome] for run in decided))
    cell.reason = next(run.reason for run in decided if run.outcome == cell.outcome)


def folder_name(pair: Pair) -> str:
    """Return the name of a pair's suite folder: readable, short, and unlike any other pair's."""
    names = "-to-".join(_short(each.name) for each in pair)
    if all(name in peers.BUILT_IN_NAMES for name in (each.name for each in pair)):
        return names
    digest = hashlib.sha256("\0".join(each.name for each in pair).encode()).hexdigest()[:6]
    return f"{names}-{digest}"


def _short(name: str) -> str:
    return _NOT_IN_A_NAME.sub("-", name.rpartition("/")[2])[:NAME_LENGTH_MAX] or "peer"
