"""suite.json: the runs of one suite, with their outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from windtunnel.harness.artifact.documents import StoredDocument, check_name


@dataclass
class SuiteRun:
    """One run in a suite."""

    folder: str
    "Name of the run folder within the suite folder."
    scenario: str
    seed: int
    outcome: str
    "FAIL, KNOWN, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS, or CANCELLED."
    reason: str
    "One line with the first finding that determined the outcome."
    started_ns: int
    ended_ns: int
    sweep: str = ""
    "Name of the scenario whose sweep has this variant, or an empty string."
    settings: dict[str, str] = field(default_factory=dict)
    "The values of the scenario that differ from its file, by name."

    def __post_init__(self) -> None:
        check_name(self.folder, "folder")


@dataclass
class ScenarioResult:
    """The combined result of all runs of one scenario in a suite."""

    scenario: str
    outcome: str
    text: str
    "A sentence with the number of failed runs and the resulting failure rate."
    runs: int
    "Number of runs that passed or failed."
    failures: int
    known: int
    "Number of runs with known failures only. `runs` and `failures` do not include these runs."
    low: float
    high: float
    "`low` and `high` are the 95 % confidence interval of the failure rate."
    limit: float | None
    "The failure rate that the scenario tolerates, or None if it tolerates no failure."


@dataclass
class Suite(StoredDocument):
    """All runs of one suite, in order of execution."""

    SCHEMA: ClassVar[str] = "windtunnel-suite/1"

    suite_id: str
    fidelity: str
    command: list[str]
    started_ns: int
    ended_ns: int = 0
    exit_code: int | None = None
    "The exit code, or None until the suite has completed."
    runs: list[SuiteRun] = field(default_factory=list)
    scenarios: list[ScenarioResult] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    "Remarks on the known-failures file."
    publisher: str = "ours"
    "The driver on the publisher's host."
    subscriber: str = "ours"
    "The driver on the subscriber's host."
