"""suite.json: the runs of one suite and their outcomes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.documents import check_name, read_as, write_document

SCHEMA = "windtunnel-suite/1"


@dataclass
class SuiteRun:
    """One run of a suite."""

    folder: str
    "Name of the run folder within the suite folder."
    scenario: str
    seed: int
    outcome: str
    "FAIL, KNOWN, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS, or CANCELLED."
    reason: str
    "One line: the first finding that determined the outcome."
    started_ns: int
    ended_ns: int

    def __post_init__(self) -> None:
        check_name(self.folder, "folder")


@dataclass
class ScenarioResult:
    """The combined result of all runs of one scenario."""

    scenario: str
    outcome: str
    text: str
    "How many runs failed, and the resulting failure rate."
    runs: int
    "Runs that passed or failed."
    failures: int
    known: int
    "Runs with known failures only; not included in the two above."
    low: float
    high: float
    "`low` and `high` are the 95 % confidence interval of the failure rate."
    limit: float | None
    "The failure rate that the scenario tolerates; None if it tolerates no failure."


@dataclass
class Suite:
    """All runs of one suite, in order of execution."""

    suite_id: str
    fidelity: str
    command: list[str]
    started_ns: int
    ended_ns: int = 0
    exit_code: int | None = None
    "None until the suite has completed."
    runs: list[SuiteRun] = field(default_factory=list)
    scenarios: list[ScenarioResult] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    "Remarks on the file of known failures."
    publisher: str = "ours"
    "The peer on the publisher's host."
    subscriber: str = "ours"
    "The peer on the subscriber's host."

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Suite | None:
        """Return the suite, or None if the file is missing; raise DocumentError if damaged."""
        return read_as(cls, path, SCHEMA)
