"""Executes an exam: first the driver without a defect, then each mutant until a run fails.

    driver without a defect, in all scenarios      not all PASS: the exam is void
    mutant 1: scenario 1, 2, ...                   up to the first FAIL
    mutant 2: ...                                  `jobs` mutants in parallel
    inconclusive runs                              repeated once, one at a time

An INCONCLUSIVE run proves nothing about the driver or the judge: the machine was too slow, and
parallel runs make it slower. The driver without a defect is the copy that contains all mutants,
with none of them active. It is compiled before the first run. exam.json is rewritten after each
mutant, so partial results survive an interruption. A killed mutant's folder is removed, because the
verdict is in exam.json. A surviving mutant's folder is kept.
"""

from __future__ import annotations

import random
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from windtunnel.harness.exam import child_run
from windtunnel.harness.exam.child_run import CANCELLED
from windtunnel.harness.exam.document import (
    INCONCLUSIVE,
    KILLED,
    UNDECIDED,
    Exam,
    ExamRun,
    MutantRow,
)
from windtunnel.harness.exam.mutant import NONE, Mutant
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled

DOCUMENT = "exam.json"
WITHOUT_DEFECT = "sound"
OWN = "of each mutant"
PAYLOAD = "payload.bin"
PAYLOAD_BYTES = 1_000_003
"""A prime number, so the repetition of the payload does not coincide with term boundaries."""
PAYLOAD_SEED = 0xE8A3
POLL_S = 0.2

_RESULT = TypeVar("_RESULT")
ExecuteRun = Callable[[str, str, str, Path, threading.Event], ExamRun]
"""Function that executes a run: (scenario, mutant or `none`, fidelity, folder, stop) -> result."""


@dataclass(frozen=True)
class MutationRun:
    """The specification of an exam: the mutants to run, the folder for the results, and options."""

    mutants: Sequence[Mutant]
    folder: Path
    fidelity: str | None = None
    "The fidelity level of all runs, or None to run each mutant at the level that it specifies."
    jobs: int = 1
    keeps_all: bool = False

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


def examine(
    mutation_run: MutationRun, listener: Listener, execute: ExecuteRun | None = None
) -> tuple[Exam, int | None]:
    """Execute an exam: run the driver without a defect, then every mutant. A signal cancels the
    exam.

    Returns: (results, exit code if a signal cancelled the exam, else None)
    """
    exam = Exam(mutation_run.fidelity or OWN, list(sys.argv), started_ns=time.time_ns())
    mutation_run.folder.mkdir(parents=True, exist_ok=True)
    execute = execute or _default_execute(mutation_run)
    signal_exit_code = None
    pool = ThreadPoolExecutor(max_workers=mutation_run.jobs)
    running = _RunningExam(mutation_run, exam, pool, execute, threading.Event(), listener)
    with Cancellation() as cancellation:
        try:
            _run_exam(running)
        except Cancelled as cancelled:
            signal_exit_code = cancelled.exit_code
        finally:
            with cancellation.shielded():
                # Wait until all active runs have removed their labs.
                running.stop.set()
                pool.shutdown(cancel_futures=True)
                exam.ended_ns = time.time_ns()
                exam.write(mutation_run.folder / DOCUMENT)
    return exam, signal_exit_code


@dataclass(frozen=True)
class _RunningExam:
    """An exam in progress: its specification, its results so far, and its resources."""

    mutation_run: MutationRun
    exam: Exam
    pool: ThreadPoolExecutor
    execute_run: ExecuteRun
    stop: threading.Event
    listener: Listener

    def execute(self, scenario: str, mutant: str, fidelity: str) -> ExamRun:
        """Execute one run in a folder named after its mutant. Without a mutant, the folder is named
        after the fidelity level and the scenario.
        """
        folder = self.mutation_run.folder / mutant
        if mutant == NONE:
            folder = (
                self.mutation_run.folder
                / f"{WITHOUT_DEFECT}-{fidelity}"
                / scenario.replace("/", "-")
            )
        return self.execute_run(scenario, mutant, fidelity, folder, self.stop)


def _run_exam(running: _RunningExam) -> None:
    exam, pool = running.exam, running.pool
    _run_without_defect(running)
    if exam.is_void:
        return
    recorder = _RowRecorder(running.mutation_run, exam)

    def try_and_record(mutant: Mutant, before: MutantRow | None = None) -> MutantRow:
        row = _try(running, mutant) if before is None else _try_again(running, mutant, before)
        # The row is recorded here because the return value is not read after a signal.
        recorder.record(row)
        return row

    repeats: list[MutantRow] = []
    for row in _as_ended(
        [pool.submit(try_and_record, each) for each in running.mutation_run.mutants]
    ):
        if row.can_be_tried_again:
            repeats.append(row)
        else:
            running.listener.on_mutant(row)
    mutants = {each.name: each for each in running.mutation_run.mutants}
    for before in repeats:
        for run in before.not_judged:
            running.listener.on_repeat(before.name, run)
        for row in _as_ended([pool.submit(try_and_record, mutants[before.name], before)]):
            running.listener.on_mutant(row)
    exam.is_whole = True


def _run_without_defect(running: _RunningExam) -> None:
    mutation_run, exam, listener = running.mutation_run, running.exam, running.listener
    cases = {
        (mutation_run.fidelity_of(each), name)
        for each in mutation_run.mutants
        for name in each.scenarios
    }

    def begin(place: str, scenario: str) -> Future[tuple[str, ExamRun]]:
        return running.pool.submit(lambda: (place, running.execute(scenario, NONE, place)))

    repeats: list[tuple[str, ExamRun]] = []
    for place, run in _as_ended([begin(*each) for each in sorted(cases)]):
        if run.outcome == INCONCLUSIVE:
            repeats.append((place, run))
        else:
            exam.sound.append(run)
            listener.on_driver_without_defect(run)
    for place, before in repeats:
        listener.on_repeat(WITHOUT_DEFECT, before)
        for _, run in _as_ended([begin(place, before.scenario)]):
            run.before = before.reason
            exam.sound.append(run)
            listener.on_driver_without_defect(run)


class _RowRecorder:
    """Records the latest result for each mutant in exam.json, in the order of the mutants.
    Thread-safe.
    """

    def __init__(self, mutation_run: MutationRun, exam: Exam) -> None:
        self._exam = exam
        self._path = mutation_run.folder / DOCUMENT
        self._order = {each.name: index for index, each in enumerate(mutation_run.mutants)}
        self._lock = threading.Lock()

    def record(self, row: MutantRow) -> None:
        """Record a mutant's result, unless a cancelled run leaves it undecided."""
        if row.state == UNDECIDED and any(run.outcome == CANCELLED for run in row.runs):
            return
        with self._lock:
            rows = self._exam.mutants
            rows[:] = [*(each for each in rows if each.name != row.name), row]
            rows.sort(key=lambda each: self._order[each.name])
            self._exam.write(self._path)


def _as_ended(futures: Sequence[Future[_RESULT]]) -> Iterator[_RESULT]:
    """Yield the results of futures as they complete. Waits by polling, so that signals are handled
    while it waits.
    """
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
        for each in done:
            yield each.result()


def _try(running: _RunningExam, mutant: Mutant) -> MutantRow:
    """Run a mutant in its scenarios, one after the other, until the judge reports FAIL."""
    row = MutantRow(
        mutant.name,
        mutant.about,
        mutant.file,
        list(mutant.killed_by),
        mutant.survives_because,
    )
    return _run_in(running, mutant, row, mutant.scenarios)


def _try_again(running: _RunningExam, mutant: Mutant, before: MutantRow) -> MutantRow:
    """Run a mutant again in the scenarios in which its runs were inconclusive."""
    row = replace(before, runs=list(before.runs))
    return _run_in(running, mutant, row, [each.scenario for each in before.not_judged])


def _run_in(
    running: _RunningExam, mutant: Mutant, row: MutantRow, scenarios: Sequence[str]
) -> MutantRow:
    mutation_run = running.mutation_run
    before = {run.scenario: run.reason for run in row.runs}
    for scenario in scenarios:
        if running.stop.is_set() or row.state == KILLED:
            break
        run = running.execute(scenario, mutant.name, mutation_run.fidelity_of(mutant))
        run.before = before.get(scenario, "")
        row.runs.append(run)
    if row.state == KILLED and not mutation_run.keeps_all:
        shutil.rmtree(mutation_run.folder / mutant.name, ignore_errors=True)
        for run in row.runs:
            run.folder = ""
    return row


def _default_execute(mutation_run: MutationRun) -> ExecuteRun:
    payload = mutation_run.folder / PAYLOAD
    payload.write_bytes(random.Random(PAYLOAD_SEED).randbytes(PAYLOAD_BYTES))

    def execute(
        scenario: str, mutant: str, fidelity: str, out: Path, stop: threading.Event
    ) -> ExamRun:
        return child_run.execute_run(
            scenario, mutant, fidelity=fidelity, payload=payload, out=out, stop=stop
        )

    return execute
