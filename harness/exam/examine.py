"""A sitting of the exam: the sound driver first, then each mutant until a scenario kills it.

    sound driver, wherever a mutant will run       not all PASS: the exam is void
    mutant 1: scenario 1, 2, ...                   up to the first FAIL
    mutant 2: ...                                  some at a time, if asked for

The sound driver is the very copy that has all mutants, with none at work; it is compiled before
the first run. exam.json is written anew after each mutant, so whatever ends the sitting, what was
found is there. Of a killed mutant the folder is removed, its verdict being in exam.json; a
survivor's stays.
"""

from __future__ import annotations

import random
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.exam import child_run
from harness.exam.child_run import CANCELLED
from harness.exam.document import KILLED, UNDECIDED, Exam, ExamRun, MutantRow
from harness.exam.mutant import NONE, Mutant
from harness.orchestrate.cancel import Cancellation, Cancelled

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
class Sitting:
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


def examine(
    sitting: Sitting,
    on_sound: Callable[[ExamRun], None] = lambda run: None,
    on_mutant: Callable[[MutantRow], None] = lambda row: None,
    make_run: MakeRun | None = None,
) -> tuple[Exam, int | None]:
    """Examine the judge.

    Returns: (what was found, the exit code that a signal asks for, or None when none came)
    """
    exam = Exam(sitting.fidelity or OWN, list(sys.argv), started_ns=time.time_ns())
    sitting.folder.mkdir(parents=True, exist_ok=True)
    make = make_run or _runs_of(sitting)
    stop, asked = threading.Event(), None
    pool = ThreadPoolExecutor(max_workers=sitting.jobs)
    with Cancellation() as cancellation:
        try:
            _sit(sitting, exam, pool, make, stop, on_sound, on_mutant)
        except Cancelled as cancelled:
            asked = cancelled.exit_code
        finally:
            with cancellation.shielded():
                # Runs that are under way take their labs down before the pool lets go of them.
                stop.set()
                pool.shutdown(cancel_futures=True)
                exam.ended_ns = time.time_ns()
                exam.write(sitting.folder / DOCUMENT)
    return exam, asked


def _sit(
    sitting: Sitting,
    exam: Exam,
    pool: ThreadPoolExecutor,
    make: MakeRun,
    stop: threading.Event,
    on_sound: Callable[[ExamRun], None],
    on_mutant: Callable[[MutantRow], None],
) -> None:
    wanted = {(sitting.place(each), name) for each in sitting.mutants for name in each.scenarios}
    sound = [
        pool.submit(make, name, NONE, fidelity, sitting.folder / f"{SOUND}-{fidelity}", stop)
        for fidelity, name in sorted(wanted)
    ]
    for run in _as_ended(sound):
        exam.sound.append(run)
        on_sound(run)
    if exam.is_void:
        return
    books = _Books(sitting, exam)

    def try_and_note(mutant: Mutant) -> MutantRow:
        row = _try(sitting, mutant, make, stop)
        # Noted here, since after a signal nobody waits for what this returns.
        books.note(row)
        return row

    for row in _as_ended([pool.submit(try_and_note, each) for each in sitting.mutants]):
        on_mutant(row)
    exam.is_whole = True


class _Books:
    """Rows in the order of the mutants, noted by whichever thread has one."""

    def __init__(self, sitting: Sitting, exam: Exam) -> None:
        self._exam = exam
        self._path = sitting.folder / DOCUMENT
        self._order = {each.name: index for index, each in enumerate(sitting.mutants)}
        self._lock = threading.Lock()

    def note(self, row: MutantRow) -> None:
        """Add a row, unless its runs were cut short before any of them could tell."""
        if row.state == UNDECIDED and any(run.outcome == CANCELLED for run in row.runs):
            return
        with self._lock:
            self._exam.mutants.append(row)
            self._exam.mutants.sort(key=lambda each: self._order[each.name])
            self._exam.write(self._path)


def _as_ended(futures: Sequence[Future[_RESULT]]) -> Iterator[_RESULT]:
    """Results as they come; between looks, a signal finds this thread awake."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
        for each in done:
            yield each.result()


def _try(sitting: Sitting, mutant: Mutant, make: MakeRun, stop: threading.Event) -> MutantRow:
    """Run one mutant in its scenarios until one kills it."""
    row = MutantRow(
        mutant.name,
        mutant.about,
        mutant.file,
        list(mutant.killed_by),
        mutant.survives_because,
    )
    folder = sitting.folder / mutant.name
    for scenario in mutant.scenarios:
        if stop.is_set() or row.state == KILLED:
            break
        row.runs.append(make(scenario, mutant.name, sitting.place(mutant), folder, stop))
    if sitting.keeps_all:
        return row
    if row.state == KILLED:
        shutil.rmtree(folder, ignore_errors=True)
        for run in row.runs:
            run.folder = ""
    return row


def _runs_of(sitting: Sitting) -> MakeRun:
    payload = sitting.folder / PAYLOAD
    payload.write_bytes(random.Random(PAYLOAD_SEED).randbytes(PAYLOAD_BYTES))

    def make(
        scenario: str, mutant: str, fidelity: str, out: Path, stop: threading.Event
    ) -> ExamRun:
        return child_run.make_run(
            scenario, mutant, fidelity=fidelity, payload=payload, out=out, stop=stop
        )

    return make
