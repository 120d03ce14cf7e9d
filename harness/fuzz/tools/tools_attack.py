"""Attacks the commands that read other people's files: an epoch is a number of trials.

    epoch: make undamaged files --> workers, each with every n-th trial --> violations

Trials are independent, so the attack goes on after a violation. Violations of one command that
differ only in numbers and paths count as the same one, and only the first is kept.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.fuzz.finding import Finding, Violation, packed
from windtunnel.harness.fuzz.tools.base_files import make_base_files
from windtunnel.harness.fuzz.tools.programs import mains
from windtunnel.harness.fuzz.tools.trial import BaseFiles, Trial, make_trial
from windtunnel.harness.fuzz.tools.trial import packed as inputs_of
from windtunnel.harness.fuzz.tools.worker import (
    UNDAMAGED_SHARE,
    Reporter,
    Runner,
    Worker,
    limit_resources,
)
from windtunnel.harness.fuzz.tools.workshop import Workshop

EPOCH_FILES = 20_000
VIOLATIONS_MAX = 20
"""Number of different violations after which the attack ends."""
WORKERS_MAX = 16
WATCH_S = 0.05
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|[\w./-]*/[\w./-]*|0x[0-9a-f]+|-?\d+")


@dataclass
class Counts:
    """How much an attack has done so far."""

    files: int = 0
    """Damaged files given to commands."""
    epochs: int = 0
    violations: int = 0


class ToolsAttack:
    """An attack with damaged files."""

    def __init__(self, memory: Path, seed: int, workers: int | None = None) -> None:
        self.seed, self.counts = seed, Counts()
        self.findings: list[Finding] = []
        self._memory = memory / "tools"
        self._workers = workers or min(WORKERS_MAX, os.cpu_count() or 1)
        self._seen: set[tuple[str, str]] = set()
        # Workers are forked: they inherit what was imported.
        mains()

    @property
    def is_over(self) -> bool:
        """Whether so many violations were found that the attack ends."""
        return len(self.findings) >= VIOLATIONS_MAX

    def epoch(self, number: int, trials: int, on_progress: Callable[[], object]) -> None:
        """Run one epoch. Raises LabError if the undamaged files cannot be made, or a worker fails
        by itself.
        """
        folder = self._memory / "base"
        shutil.rmtree(folder, ignore_errors=True)
        make_base_files(folder, self.seed + number)
        base = BaseFiles(folder)
        before = self.counts.files
        running: list[tuple[int, Worker]] = []
        done = 0
        try:
            for index in range(self._workers):
                running.append((index, self._worker(base, number, index, trials)))
            while running and not self.is_over:
                time.sleep(WATCH_S)
                for item in list(running):
                    index, worker = item
                    worker.watch()
                    self._take(base, number, worker)
                    if not worker.is_running:
                        running.remove(item)
                        done += worker.files
                        again = trials if worker.died_at is None else worker.died_at + self._workers
                        if again < trials:
                            running.append((index, self._worker(base, number, again, trials)))
                self.counts.files = before + done + sum(each.files for _, each in running)
                on_progress()
        finally:
            for _, worker in running:
                worker.end()
        self.counts.epochs += 1

    def _take(self, base: BaseFiles, epoch: int, worker: Worker) -> None:
        """Turn the worker's reports into findings."""
        for number, text in worker.violations:
            trial = make_trial(base, self.seed, epoch, number)
            signature = trial.program.name, _VARYING.sub("*", text.strip()[-300:])
            if signature not in self._seen and not self.is_over:
                self._seen.add(signature)
                self.counts.violations += 1
                text = f"windtunnel {trial.program.name}: trial {number}: {text}"
                inputs = packed(inputs_of(trial, base))
                self.findings.append(Finding("tools", "ours", "", self.seed, epoch, text, inputs))
        worker.violations.clear()

    def _worker(self, base: BaseFiles, epoch: int, first: int, trials: int) -> Worker:
        folder = self._memory / f"worker{first % self._workers}"

        def work(reporter: Reporter) -> None:
            runner = Runner(Workshop(folder, base))
            limit_resources()
            for number in range(first, trials, self._workers):
                trial = make_trial(base, self.seed, epoch, number)
                reporter.begin(number)
                with _reported(reporter, number):
                    runner.run(trial)
                    if number // self._workers % UNDAMAGED_SHARE == 0:
                        runner.check_undamaged(trial.program)
                reporter.end(len(trial.files))

        return Worker(work)

    def replay(self, trial: Trial) -> None:
        """Run the trial of a finding. Raises Violation if its outcome is wrong again."""
        nothing = self._memory / "nothing"
        nothing.mkdir(parents=True, exist_ok=True)
        base = BaseFiles(nothing)

        def work(reporter: Reporter) -> None:
            runner = Runner(Workshop(self._memory / "worker0", base))
            limit_resources()
            reporter.begin(0)
            with _reported(reporter, 0):
                runner.run(trial)
            reporter.end(len(trial.files))

        worker = Worker(work)
        try:
            while worker.is_running:
                time.sleep(WATCH_S)
                worker.watch()
        finally:
            worker.end()
        if worker.violations:
            raise Violation(worker.violations[0][1])


@contextlib.contextmanager
def _reported(reporter: Reporter, number: int) -> Iterator[None]:
    try:
        yield
    except Violation as violation:
        reporter.violation(number, str(violation))
