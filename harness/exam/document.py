"""The document exam.json: each mutant's runs, and whether the judge detected the planted defect.

    killed      one of its runs was judged FAIL
    survived    all its runs were judged PASS: with an effect that no check reads if their evidence
                differs from the sound driver's runs, with a shift if it only differs in times that
                no promise can be so precise about, else without an effect
    undecided   no run was judged FAIL, and at least one could not be judged, even when repeated

Mutants are in file order.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.exam.evidence_difference import Difference

SCHEMA = "windtunnel-exam/1"
KILLED, SURVIVED, UNDECIDED = "killed", "survived", "undecided"
INCONCLUSIVE = "INCONCLUSIVE"
LEAST_KILL_RATE = 0.98
LEAST_RATE_OF_GENERATED = 0.85
"""Required fraction of generated mutants with an effect that are killed. Their survivors need no
explanation.
"""


@dataclass
class ExamRun:
    """One run in an exam, either of a mutant or of the driver without a defect."""

    scenario: str
    outcome: str
    reason: str
    checks: list[str]
    "Names of the failed checks, without duplicates."
    seconds: float
    command: list[str]
    "The command line that repeats this run."
    folder: str = ""
    "The run folder, or empty if it was removed."
    seed: int = 0
    executions: int = 0
    "How often what the mutant changes was executed, in all its processes together."
    differences: list[Difference] | None = None
    """What differs first from the run of the driver without a defect, of each kind of evidence.
    None if the runs were not compared: the mutant was killed, or the run was not simulated.
    """
    before: str = ""
    "If this run is a repetition, the reason why the first one could not be judged, else empty."


@dataclass
class MutantRow:
    """The result for one mutant."""

    name: str
    about: str
    file: str
    expected_checks: list[str]
    survives_because: str
    scenarios: list[str]
    "The scenarios in which it runs: none if no scenario executes what a generated mutant changes."
    runs: list[ExamRun] = field(default_factory=list)

    @property
    def state(self) -> str:
        """The mutant's result as one word: killed, survived or undecided."""
        outcomes = {(run.scenario, run.seed): run.outcome for run in self.runs}.values()
        if "FAIL" in outcomes:
            return KILLED
        passed = set(outcomes) == {"PASS"} or not self.scenarios
        return SURVIVED if passed else UNDECIDED

    @property
    def not_judged(self) -> list[ExamRun]:
        """The mutant's runs that were INCONCLUSIVE and have not been repeated."""
        again = {(run.scenario, run.seed) for run in self.runs if run.before}
        return [
            run
            for run in self.runs
            if run.outcome == INCONCLUSIVE and (run.scenario, run.seed) not in again
        ]

    @property
    def can_be_tried_again(self) -> bool:
        """Whether the mutant is undecided and has inconclusive runs that have not been repeated."""
        return self.state == UNDECIDED and bool(self.not_judged)

    @property
    def killer(self) -> ExamRun | None:
        """The run that was judged FAIL, which kills the mutant. None if there is no such run."""
        return next((run for run in self.runs if run.outcome == "FAIL"), None)

    @property
    def effect(self) -> tuple[ExamRun, Difference] | None:
        """The first run whose evidence differs from the sound driver's, and what differs first.
        None if no run differs, or none was compared. A run that differs in more than times comes
        before the others.
        """
        found = [(run, run.differences[0]) for run in self.runs if run.differences]
        return min(found, key=lambda each: each[1].shift_ns is not None, default=None)

    @property
    def is_shifted(self) -> bool:
        """Whether the mutant survived, and its runs differ from those of the sound driver only by
        shifts of times.
        """
        effect = self.effect
        return self.state == SURVIVED and effect is not None and effect[1].shift_ns is not None

    @property
    def is_without_effect(self) -> bool:
        """Whether the mutant survived, and all its runs equal those of the sound driver."""
        return self.state == SURVIVED and all(run.differences == [] for run in self.runs)

    @property
    def executions(self) -> int:
        """How often what the mutant changes was executed, in all runs together."""
        return sum(run.executions for run in self.runs)

    @property
    def is_explained(self) -> bool:
        """Whether the mutant was killed, or a documented reason explains why it survived."""
        return self.state == KILLED or bool(self.survives_because)


@dataclass
class Exam:
    """One exam: the runs of the driver without a defect, and the runs of each mutant."""

    fidelity: str
    command: list[str]
    started_ns: int
    ended_ns: int = 0
    generated: str = ""
    "Name of the set if the mutants are generated ones."
    is_whole: bool = False
    "Whether the runs of all selected mutants have ended."
    sound: list[ExamRun] = field(default_factory=list)
    mutants: list[MutantRow] = field(default_factory=list)

    @property
    def killed_count(self) -> int:
        return sum(row.state == KILLED for row in self.mutants)

    @property
    def counted(self) -> list[MutantRow]:
        """The mutants that the kill rate counts. A generated one without an effect may be
        equivalent, so only those with an effect count. A small shift of times violates no
        requirement, so a mutant that causes nothing else does not count either.
        """
        if not self.generated:
            return self.mutants
        return [row for row in self.mutants if not (row.is_without_effect or row.is_shifted)]

    @property
    def kill_rate(self) -> float:
        """The fraction of counted mutants that were killed, or 0 if there are none."""
        return self.killed_count / len(self.counted) if self.counted else 0.0

    @property
    def least_kill_rate(self) -> float:
        return LEAST_RATE_OF_GENERATED if self.generated else LEAST_KILL_RATE

    @property
    def again_count(self) -> int:
        """The number of repeated runs, including those with the driver without a defect."""
        rows = [self.sound, *(row.runs for row in self.mutants)]
        return sum(bool(run.before) for runs in rows for run in runs)

    @property
    def unexplained(self) -> list[MutantRow]:
        if self.generated:
            return []
        return [row for row in self.mutants if not row.is_explained]

    @property
    def is_void(self) -> bool:
        """Whether the exam is void: the driver without a defect did not pass all runs, so a
        mutant's FAIL proves nothing.
        """
        return any(run.outcome != "PASS" for run in self.sound)

    @property
    def is_passed(self) -> bool:
        enough = bool(self.mutants) and self.kill_rate >= self.least_kill_rate
        return self.is_whole and not self.is_void and enough and not self.unexplained

    def write(self, path: Path) -> None:
        document = asdict(self)
        for row, plain in zip(self.mutants, document["mutants"], strict=True):
            plain["state"] = row.state
        summary = {
            "again": self.again_count,
            "killed": self.killed_count,
            "total": len(self.mutants),
            "counted": len(self.counted),
            "kill_rate": round(self.kill_rate, 4),
            "survived_with_effect": [r.name for r in self.mutants if r.effect and not r.is_shifted],
            "survived_with_shift": [row.name for row in self.mutants if row.is_shifted],
            "survived_without_effect": [r.name for r in self.mutants if r.is_without_effect],
            "never_executed": [row.name for row in self.mutants if not row.executions],
            "unexplained": [row.name for row in self.unexplained],
            "is_void": self.is_void,
            "is_passed": self.is_passed,
        }
        write_document(path, {"schema": SCHEMA, "summary": summary, **document})
