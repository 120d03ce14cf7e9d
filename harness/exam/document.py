"""The document exam.json: the runs of each mutant, and whether the judge detected its defect.

    killed      one of its runs was judged FAIL
    survived    all its runs were judged PASS
    undecided   no run was judged FAIL, and at least one could not be judged, even when repeated

Mutants are in the order of their files.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.documents import write_document

SCHEMA = "windtunnel-exam/1"
KILLED, SURVIVED, UNDECIDED = "killed", "survived", "undecided"
INCONCLUSIVE = "INCONCLUSIVE"
LEAST_KILL_RATE = 0.98


@dataclass
class ExamRun:
    """One run of one mutant, or of the driver without a defect."""

    scenario: str
    outcome: str
    reason: str
    checks: list[str]
    "Names of the failed checks, without duplicates."
    seconds: float
    command: list[str]
    "The command line that repeats this run."
    folder: str = ""
    "The run folder, if it was kept."
    before: str = ""
    "Why the first execution of this run could not be judged, or empty if it was not repeated."


@dataclass
class MutantRow:
    """The result of one mutant."""

    name: str
    about: str
    file: str
    expected_checks: list[str]
    survives_because: str
    runs: list[ExamRun] = field(default_factory=list)

    @property
    def state(self) -> str:
        """The state of the mutant: killed, survived or undecided."""
        outcomes = {run.scenario: run.outcome for run in self.runs}.values()
        if "FAIL" in outcomes:
            return KILLED
        return SURVIVED if set(outcomes) == {"PASS"} else UNDECIDED

    @property
    def not_judged(self) -> list[ExamRun]:
        """Runs that were INCONCLUSIVE and have not been repeated."""
        again = {run.scenario for run in self.runs if run.before}
        return [r for r in self.runs if r.outcome == INCONCLUSIVE and r.scenario not in again]

    @property
    def can_be_tried_again(self) -> bool:
        """Whether repeating the inconclusive runs may still kill the mutant."""
        return self.state == UNDECIDED and bool(self.not_judged)

    @property
    def killer(self) -> ExamRun | None:
        """The run that was judged FAIL, or None."""
        return next((run for run in self.runs if run.outcome == "FAIL"), None)

    @property
    def is_explained(self) -> bool:
        """Whether the mutant was killed, or has a documented reason to survive."""
        return self.state == KILLED or bool(self.survives_because)


@dataclass
class Exam:
    """One exam: the runs of the driver without a defect, and the runs of each mutant."""

    fidelity: str
    command: list[str]
    started_ns: int
    ended_ns: int = 0
    is_whole: bool = False
    "Whether all selected mutants were run."
    sound: list[ExamRun] = field(default_factory=list)
    mutants: list[MutantRow] = field(default_factory=list)

    @property
    def killed_count(self) -> int:
        return sum(row.state == KILLED for row in self.mutants)

    @property
    def kill_rate(self) -> float:
        """The share of mutants that were killed, or 0 if no mutant was run."""
        return self.killed_count / len(self.mutants) if self.mutants else 0.0

    @property
    def again_count(self) -> int:
        """Number of repeated runs, of the driver without a defect and of the mutants."""
        rows = [self.sound, *(row.runs for row in self.mutants)]
        return sum(bool(run.before) for runs in rows for run in runs)

    @property
    def unexplained(self) -> list[MutantRow]:
        return [row for row in self.mutants if not row.is_explained]

    @property
    def is_void(self) -> bool:
        """Whether the driver without a defect did not pass. A mutant's FAIL then proves nothing."""
        return any(run.outcome != "PASS" for run in self.sound)

    @property
    def is_passed(self) -> bool:
        enough = bool(self.mutants) and self.kill_rate >= LEAST_KILL_RATE
        return self.is_whole and not self.is_void and enough and not self.unexplained

    def write(self, path: Path) -> None:
        document = asdict(self)
        for row, plain in zip(self.mutants, document["mutants"], strict=True):
            plain["state"] = row.state
        summary = {
            "again": self.again_count,
            "killed": self.killed_count,
            "total": len(self.mutants),
            "kill_rate": round(self.kill_rate, 4),
            "unexplained": [row.name for row in self.unexplained],
            "is_void": self.is_void,
            "is_passed": self.is_passed,
        }
        write_document(path, {"schema": SCHEMA, "summary": summary, **document})
