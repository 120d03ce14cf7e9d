"""Executes an exam: first the driver without a defect, then each mutant until a run fails.

    driver without a defect, in all scenarios      not all PASS: the exam is void
    generated mutants                              get the scenarios that execute what they change
    mutant 1: scenario 1, 2, ..., other seeds      up to the first FAIL; a survivor's runs are
                                                   compared with the sound driver's
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
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TypeVar

from windtunnel.harness.exam.document import (
    INCONCLUSIVE,
    KILLED,
    UNDECIDED,
    Exam,
    ExamRun,
    MutantRow,
)
from windtunnel.harness.exam.evidence_difference import differences
from windtunnel.harness.exam.mutant import Mutant
from windtunnel.harness.exam.mutation_run import Listener, MutationRun
from windtunnel.harness.exam.running_exam import (
    WITHOUT_DEFECT,
    Case,
    Compare,
    ExecuteRun,
    RunningExam,
)
from windtunnel.harness.exam.worker_run import WorkerRuns
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.run.one_run import CANCELLED

DOCUMENT = "exam.json"
OWN = "of each mutant"
PAYLOAD = "payload.bin"
PAYLOAD_BYTES = 1_000_003
"""A prime number, so the repetition of the payload does not coincide with term boundaries."""
PAYLOAD_SEED = 0xE8A3
POLL_S = 0.2

_RESULT = TypeVar("_RESULT")


def examine(
    mutation_run: MutationRun,
    listener: Listener,
    execute: ExecuteRun | None = None,
    compare: Compare = differences,
) -> tuple[Exam, int | None]:
    """Execute an exam: run the driver without a defect, then every mutant. A signal cancels the
    exam.

    Returns: (results, exit code if a signal cancelled the exam, else None)
    """
    exam = Exam(
        mutation_run.fidelity or OWN,
        list(sys.argv),
        started_ns=time.time_ns(),
        generated=mutation_run.generated,
    )
    mutation_run.folder.mkdir(parents=True, exist_ok=True)
    payload = mutation_run.folder / PAYLOAD
    workers = WorkerRuns(mutation_run.planted, mutation_run.environments, payload)
    if execute is None:
        payload.write_bytes(random.Random(PAYLOAD_SEED).randbytes(PAYLOAD_BYTES))
    signal_exit_code = None
    pool = ThreadPoolExecutor(max_workers=mutation_run.jobs)
    running = RunningExam(
        mutation_run, exam, pool, execute or workers.execute, threading.Event(), listener, compare
    )
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
                workers.close()
                exam.ended_ns = time.time_ns()
                exam.write(mutation_run.folder / DOCUMENT)
    return exam, signal_exit_code


def _run_exam(running: RunningExam) -> None:
    exam, pool, mutants = running.exam, running.pool, running.mutation_run.mutants
    if running.mutation_run.generated:
        _run_without_defect(running, mutants, seeds=1)
        mutants = [running.with_scenarios(each) for each in mutants]
    _run_without_defect(running, mutants)
    if exam.is_void:
        return
    recorder = _RowRecorder(running.mutation_run, exam)

    def try_and_record(mutant: Mutant, before: MutantRow | None = None) -> MutantRow:
        row = _try(running, mutant) if before is None else _try_again(running, mutant, before)
        # The row is recorded here because the return value is not read after a signal.
        recorder.record(row)
        return row

    repeats: list[MutantRow] = []
    for row in _as_ended([pool.submit(try_and_record, each) for each in mutants]):
        if row.can_be_tried_again:
            repeats.append(row)
        else:
            running.listener.on_mutant(row)
    by_name = {each.name: each for each in mutants}
    for before in repeats:
        for run in before.not_judged:
            running.listener.on_repeat(before.name, run)
        for row in _as_ended([pool.submit(try_and_record, by_name[before.name], before)]):
            running.listener.on_mutant(row)
    exam.is_whole = True


def _run_without_defect(
    running: RunningExam, mutants: Sequence[Mutant], seeds: int | None = None
) -> None:
    """Run the driver without a defect in the mutants' scenarios, unless it has been. `seeds` is a
    limit for the number of seeds.
    """
    mutation_run, listener = running.mutation_run, running.listener
    cases = {
        (mutation_run.fidelity_of(each), name, seed_index)
        for each in mutants
        for name in each.scenarios
        for seed_index in range(seeds or mutation_run.seeds_at(mutation_run.fidelity_of(each)))
    } - running.counted.keys()

    def begin(case: Case) -> Future[tuple[Case, ExamRun]]:
        place, scenario, seed_index = case
        return running.pool.submit(
            lambda: (case, running.execute(scenario, mutation_run.sound, place, seed_index))
        )

    repeats: list[tuple[Case, ExamRun]] = []
    for case, run in _as_ended([begin(each) for each in sorted(cases)]):
        if run.outcome == INCONCLUSIVE:
            repeats.append((case, run))
        else:
            running.note_sound(case, run)
    for case, before in repeats:
        listener.on_repeat(WITHOUT_DEFECT, before)
        for _, run in _as_ended([begin(case)]):
            run.before = before.reason
            running.note_sound(case, run)


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


def _try(running: RunningExam, mutant: Mutant) -> MutantRow:
    """Run a mutant in its scenarios, one after the other, until the judge reports FAIL."""
    row = MutantRow(
        mutant.name,
        mutant.about,
        mutant.file,
        list(mutant.killed_by),
        mutant.survives_because,
        list(mutant.scenarios),
    )
    seeds = running.mutation_run.seeds_at(running.mutation_run.fidelity_of(mutant))
    # The first seed of all scenarios comes first: most mutants are killed by it.
    planned = [(name, index) for index in range(seeds) for name in mutant.scenarios]
    return _run_in(running, mutant, row, planned)


def _try_again(running: RunningExam, mutant: Mutant, before: MutantRow) -> MutantRow:
    """Run a mutant again in the scenarios in which its runs were inconclusive."""
    row = replace(before, runs=list(before.runs))
    first = {run.scenario: run.seed for run in reversed(before.runs)}
    planned = [(run.scenario, run.seed - first[run.scenario]) for run in before.not_judged]
    return _run_in(running, mutant, row, planned)


def _run_in(
    running: RunningExam, mutant: Mutant, row: MutantRow, planned: Sequence[tuple[str, int]]
) -> MutantRow:
    """Run a mutant in scenarios, each with the seed of an index."""
    mutation_run, fidelity = running.mutation_run, running.mutation_run.fidelity_of(mutant)
    before = {(run.scenario, run.seed): run.reason for run in row.runs}
    for scenario, seed_index in planned:
        if running.stop.is_set() or row.state == KILLED:
            break
        run = running.execute(scenario, mutant.name, fidelity, seed_index)
        run.before = before.get((scenario, run.seed), "")
        row.runs.append(run)
    running.note_differences(fidelity, row)
    if row.state == KILLED and not mutation_run.keeps_all:
        shutil.rmtree(mutation_run.folder / mutant.name, ignore_errors=True)
        for run in row.runs:
            run.folder = ""
    return row
