"""exam.json: which mutants were killed, by which check in which scenario, and why others lived.

    killed      a run of it was judged FAIL
    survived    all its runs were judged, and none FAIL
    undecided   none FAIL, and one or more could not be judged, not even when made once more

Rows come in the order of the mutants' files, whatever ended first.
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
    """One run of one mutant, or of the sound driver."""

    scenario: str
    outcome: str
    reason: str
    checks: list[str]
    "Names of the checks that said no, each once."
    seconds: float
    command: list[str]
    "Makes this one run again."
    folder: str = ""
    "The run folder, where it was kept."
    before: str = ""
    "Why the same run, made before, could not be judged; empty of one that was made once."


@dataclass
class MutantRow:
    """What came of one mutant."""

    name: str
    about: str
    file: str
    expected_checks: list[str]
    survives_because: str
    runs: list[ExamRun] = field(default_factory=list)

    @property
    def state(self) -> str:
        """killed, survived or undecided."""
        outcomes = {run.scenario: run.outcome for run in self.runs}.values()
        if "FAIL" in outcomes:
            return KILLED
        return SURVIVED if set(outcomes) == {"PASS"} else UNDECIDED

    @property
    def not_judged(self) -> list[ExamRun]:
        """Runs that were INCONCLUSIVE, and were made once."""
        again = {run.scenario for run in self.runs if run.before}
        return [r for r in self.runs if r.outcome == INCONCLUSIVE and r.scenario not in again]

    @property
    def can_be_tried_again(self) -> bool:
        """Whether it may yet be killed, by making what could not be judged once more."""
        return self.state == UNDECIDED and bool(self.not_judged)

    @property
    def killer(self) -> ExamRun | None:
        """The run that was judged FAIL."""
        return next((run for run in self.runs if run.outcome == "FAIL"), None)

    @property
    def is_explained(self) -> bool:
        """Whether it was killed, or lives for a reason that is written down."""
        return self.state == KILLED or bool(self.survives_because)


@dataclass
class Exam:
    """One sitting: the sound driver's runs, then each mutant's."""

    fidelity: str
    command: list[str]
    started_ns: int
    ended_ns: int = 0
    is_whole: bool = False
    "Whether every mutant that was to be run was run."
    sound: list[ExamRun] = field(default_factory=list)
    mutants: list[MutantRow] = field(default_factory=list)

    @property
    def killed_count(self) -> int:
        return sum(row.state == KILLED for row in self.mutants)

    @property
    def kill_rate(self) -> float:
        """The share of mutants that were killed; 0 when none was run."""
        return self.killed_count / len(self.mutants) if self.mutants else 0.0

    @property
    def again_count(self) -> int:
        """Runs that were made once more, of the sound driver's and the mutants'."""
        rows = [self.sound, *(row.runs for row in self.mutants)]
        return sum(bool(run.before) for runs in rows for run in runs)

    @property
    def unexplained(self) -> list[MutantRow]:
        return [row for row in self.mutants if not row.is_explained]

    @property
    def is_void(self) -> bool:
        """Whether the sound driver itself did not pass, so that a FAIL says nothing."""
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
