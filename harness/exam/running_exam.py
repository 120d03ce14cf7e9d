"""An exam in progress: its runs, and what the driver without a defect showed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.exam.document import SURVIVED, Exam, ExamRun, MutantRow
from windtunnel.harness.exam.evidence_difference import Difference
from windtunnel.harness.exam.generated.generation import number_of
from windtunnel.harness.exam.generated.scenario_choice import executing
from windtunnel.harness.exam.mutant import Mutant
from windtunnel.harness.exam.mutation_run import Listener, MutationRun
from windtunnel.harness.exam.worker_run import RUN_LIMIT_S, executions_in
from windtunnel.harness.orchestrate.fidelity import SIM

WITHOUT_DEFECT = "sound"
Case = tuple[str, str, int]
"""Fidelity level, scenario and seed index of a run."""
ExecuteRun = Callable[[str, str, str, Path, threading.Event, int, float], ExamRun]
"""Function that executes a run: (scenario, mutant or `none`, fidelity, folder, stop, seed index,
time limit in seconds) -> result. The seed index counts from the scenario's first seed.
"""
SLOWNESS_MAX, SLOWNESS_S = 10, 60.0
"""A mutant's simulated run may take so many times as long as that of the driver without a defect,
and so many seconds more. Defects can be endless loops."""
Compare = Callable[[RunDir, RunDir], list[Difference]]
"""Function that compares the run of the driver without a defect with a mutant's."""


@dataclass(frozen=True)
class RunningExam:
    """An exam in progress: its specification, its results so far, and its resources."""

    mutation_run: MutationRun
    exam: Exam
    pool: ThreadPoolExecutor
    execute_run: ExecuteRun
    stop: threading.Event
    listener: Listener
    compare: Compare
    sound: dict[tuple[str, str, int], str] = field(default_factory=dict)
    "Run folders of the driver without a defect, by fidelity level, scenario and seed."
    took_s: dict[Case, float] = field(default_factory=dict)
    "Duration of each run of the driver without a defect."
    counted: dict[Case, dict[int, int]] = field(default_factory=dict)
    "Executions of what each mutant changes, by run of the driver without a defect."

    def execute(self, scenario: str, mutant: str, fidelity: str, seed_index: int) -> ExamRun:
        """Execute one run in a folder named after its mutant. Without a mutant, the folder is named
        after the fidelity level, the scenario and the seed's index.
        """
        case = fidelity, scenario, seed_index
        folder, limit_s = self.mutation_run.folder / mutant, RUN_LIMIT_S
        if mutant == self.mutation_run.sound:
            folder = self.sound_folder(case)
        elif fidelity == SIM:
            limit_s = SLOWNESS_MAX * self.took_s[case] + SLOWNESS_S
        return self.execute_run(scenario, mutant, fidelity, folder, self.stop, seed_index, limit_s)

    def sound_folder(self, case: Case) -> Path:
        """Return the folder of a run of the driver without a defect."""
        fidelity, scenario, seed_index = case
        name = f"{scenario.replace('/', '-')}-{seed_index}"
        return self.mutation_run.folder / f"{WITHOUT_DEFECT}-{fidelity}" / name

    def note_sound(self, case: Case, run: ExamRun) -> None:
        """Record a run of the driver without a defect."""
        self.exam.sound.append(run)
        self.sound[case[0], run.scenario, run.seed] = run.folder
        self.counted[case] = executions_in(self.sound_folder(case))
        self.took_s[case] = run.seconds
        self.listener.on_driver_without_defect(run)

    def with_scenarios(self, mutant: Mutant) -> Mutant:
        """Return a generated mutant with the scenarios that execute what it changes."""
        fidelity = self.mutation_run.fidelity_of(mutant)
        executions = {name: self.counted[fidelity, name, 0] for name in mutant.scenarios}
        chosen = executing(number_of(mutant.name), executions)
        return mutant.model_copy(update={"scenarios": chosen})

    def note_differences(self, fidelity: str, row: MutantRow) -> None:
        """Compare a survivor's simulated runs with those of the driver without a defect."""
        if fidelity == SIM and row.state == SURVIVED:
            for run in row.runs:
                sound = self.sound[fidelity, run.scenario, run.seed]
                run.differences = self.compare(RunDir(Path(sound)), RunDir(Path(run.folder)))
