"""A sitting of the exam: the sound driver first, then each mutant until a scenario kills it.

    sound driver, wherever a mutant will run       not all PASS: the exam is void
    mutant 1: scenario 1, 2, ...                   up to the first FAIL
    mutant 2: ...                                  some at a time, if asked for
    what nobody could judge                        once more, with no run beside it

A run that is INCONCLUSIVE says nothing of driver or judge: the machine was too slow, and runs
beside each other make it slower. The sound driver is the very copy that has all mutants, with none
at work; it is compiled before the first run. exam.json is written anew after each mutant, so
whatever ends the sitting, what was found is there. Of a killed mutant the folder is removed, its
verdict being in exam.json; a survivor's stays.
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
SOUND = "sound"
OWN = "of each mutant"
PAYLOAD = "payload.bin"
PAYLOAD_BYTES = 1_000_003
"""A prime, so that messages do not repeat with any period of the log."""
PAYLOAD_SEED = 0xE8A3
POLL_S = 0.2

_RESULT = TypeVar("_RESULT")
MakeRun = Callable[[str, str, str, Path, threading.Event], ExamRun]
"""(scenario, mutant or `none`, fidelity, folder, stop) -> how the run ended"""


@dataclass(frozen=True)
class MutationRun:
    """What is to be examined."""

    mutants: Sequence[Mutant]
    folder: Path
    fidelity: str | None = None
    "Where all of them run; None: each where it is to be examined."
    jobs: int = 1
    keeps_all: bool = False

    def place(self, mutant: Mutant) -> str:
        """Where a mutant runs."""
        return self.fidelity or mutant.fidelity


class Listener(Protocol):
    """Is told what happens."""

    def on_sound(self, run: ExamRun) -> None:
        """A run of the sound driver has ended, and will not be made again."""

    def on_mutant(self, row: MutantRow) -> None:
        """All runs of a mutant have ended."""

    def on_again(self, name: str, run: ExamRun) -> None:
        """A run of a mutant, or of the sound driver, could not be judged; it is made once more."""


def examine(
    sitting: MutationRun, audience: Listener, make_run: MakeRun | None = None
) -> tuple[Exam, int | None]:
    """Examine the judge.

    Returns: (what was found, the exit code that a signal asks for, or None when none came)
    """
    exam = Exam(sitting.fidelity or OWN, list(sys.argv), started_ns=time.time_ns())
    sitting.folder.mkdir(parents=True, exist_ok=True)
    make = make_run or _runs_of(sitting)
    asked = None
    pool = ThreadPoolExecutor(max_workers=sitting.jobs)
    under_way = _RunningMutant(sitting, exam, pool, make, threading.Event(), audience)
    with Cancellation() as cancellation:
        try:
            _sit(under_way)
        except Cancelled as cancelled:
            asked = cancelled.exit_code
        finally:
            with cancellation.shielded():
                # Runs that are under way take their labs down before the pool lets go of them.
                under_way.stop.set()
                pool.shutdown(cancel_futures=True)
                exam.ended_ns = time.time_ns()
                exam.write(sitting.folder / DOCUMENT)
    return exam, asked


@dataclass(frozen=True)
class _RunningMutant:
    """A sitting, what has come of it, and what it is done with."""

    sitting: MutationRun
    exam: Exam
    pool: ThreadPoolExecutor
    make_run: MakeRun
    stop: threading.Event
    audience: Listener

    def make(self, scenario: str, mutant: str, fidelity: str) -> ExamRun:
        """One run, in a folder of its own mutant's or scenario's."""
        folder = self.sitting.folder / mutant
        if mutant == NONE:
            folder = self.sitting.folder / f"{SOUND}-{fidelity}" / scenario.replace("/", "-")
        return self.make_run(scenario, mutant, fidelity, folder, self.stop)


def _sit(under_way: _RunningMutant) -> None:
    exam, pool = under_way.exam, under_way.pool
    _examine_sound(under_way)
    if exam.is_void:
        return
    books = _Books(under_way.sitting, exam)

    def try_and_note(mutant: Mutant, before: MutantRow | None = None) -> MutantRow:
        row = _try(under_way, mutant) if before is None else _try_again(under_way, mutant, before)
        # Noted here, since after a signal nobody waits for what this returns.
        books.note(row)
        return row

    again: list[MutantRow] = []
    for row in _as_ended([pool.submit(try_and_note, each) for each in under_way.sitting.mutants]):
        if row.can_be_tried_again:
            again.append(row)
        else:
            under_way.audience.on_mutant(row)
    mutants = {each.name: each for each in under_way.sitting.mutants}
    for before in again:
        for run in before.not_judged:
            under_way.audience.on_again(before.name, run)
        for row in _as_ended([pool.submit(try_and_note, mutants[before.name], before)]):
            under_way.audience.on_mutant(row)
    exam.is_whole = True


def _examine_sound(under_way: _RunningMutant) -> None:
    sitting, exam, audience = under_way.sitting, under_way.exam, under_way.audience
    wanted = {(sitting.place(each), name) for each in sitting.mutants for name in each.scenarios}

    def begin(place: str, scenario: str) -> Future[tuple[str, ExamRun]]:
        return under_way.pool.submit(lambda: (place, under_way.make(scenario, NONE, place)))

    again: list[tuple[str, ExamRun]] = []
    for place, run in _as_ended([begin(*each) for each in sorted(wanted)]):
        if run.outcome == INCONCLUSIVE:
            again.append((place, run))
        else:
            exam.sound.append(run)
            audience.on_sound(run)
    for place, before in again:
        audience.on_again(SOUND, before)
        for _, run in _as_ended([begin(place, before.scenario)]):
            run.before = before.reason
            exam.sound.append(run)
            audience.on_sound(run)


class _Books:
    """Rows in the order of the mutants, the last of each, noted by whichever thread has one."""

    def __init__(self, sitting: MutationRun, exam: Exam) -> None:
        self._exam = exam
        self._path = sitting.folder / DOCUMENT
        self._order = {each.name: index for index, each in enumerate(sitting.mutants)}
        self._lock = threading.Lock()

    def note(self, row: MutantRow) -> None:
        """Add a row, unless its runs were cut short before any of them could tell."""
        if row.state == UNDECIDED and any(run.outcome == CANCELLED for run in row.runs):
            return
        with self._lock:
            rows = self._exam.mutants
            rows[:] = [*(each for each in rows if each.name != row.name), row]
            rows.sort(key=lambda each: self._order[each.name])
            self._exam.write(self._path)


def _as_ended(futures: Sequence[Future[_RESULT]]) -> Iterator[_RESULT]:
    """Results as they come; between looks, a signal finds this thread awake."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
        for each in done:
            yield each.result()


def _try(under_way: _RunningMutant, mutant: Mutant) -> MutantRow:
    """Run one mutant in its scenarios until one kills it."""
    row = MutantRow(
        mutant.name,
        mutant.about,
        mutant.file,
        list(mutant.killed_by),
        mutant.survives_because,
    )
    return _run_in(under_way, mutant, row, mutant.scenarios)


def _try_again(under_way: _RunningMutant, mutant: Mutant, before: MutantRow) -> MutantRow:
    """Run it once more in the scenarios that could not be judged."""
    row = replace(before, runs=list(before.runs))
    return _run_in(under_way, mutant, row, [each.scenario for each in before.not_judged])


def _run_in(
    under_way: _RunningMutant, mutant: Mutant, row: MutantRow, scenarios: Sequence[str]
) -> MutantRow:
    sitting = under_way.sitting
    before = {run.scenario: run.reason for run in row.runs}
    for scenario in scenarios:
        if under_way.stop.is_set() or row.state == KILLED:
            break
        run = under_way.make(scenario, mutant.name, sitting.place(mutant))
        run.before = before.get(scenario, "")
        row.runs.append(run)
    if row.state == KILLED and not sitting.keeps_all:
        shutil.rmtree(sitting.folder / mutant.name, ignore_errors=True)
        for run in row.runs:
            run.folder = ""
    return row


def _runs_of(sitting: MutationRun) -> MakeRun:
    payload = sitting.folder / PAYLOAD
    payload.write_bytes(random.Random(PAYLOAD_SEED).randbytes(PAYLOAD_BYTES))

    def make(
        scenario: str, mutant: str, fidelity: str, out: Path, stop: threading.Event
    ) -> ExamRun:
        return child_run.make_run(
            scenario, mutant, fidelity=fidelity, payload=payload, out=out, stop=stop
        )

    return make
