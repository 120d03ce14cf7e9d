"""suite.json: the runs of one invocation and how each of them ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import (
    DocumentError,
    check_name,
    read_document,
    write_document,
)

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
    "One line: the first finding that decided."
    started_ns: int
    ended_ns: int

    @classmethod
    def from_document(cls, plain: dict[str, Any]) -> SuiteRun:
        """The run of a document; TypeError if it cannot be one."""
        made = cls(**plain)
        check_name(made.folder, "folder")
        return made


@dataclass
class ScenarioResult:
    """All runs of one scenario taken together."""

    scenario: str
    outcome: str
    text: str
    "How many runs failed, and what that shows."
    runs: int
    "Runs that passed or failed."
    failures: int
    known: int
    "Runs that failed by known failures only; they are in neither of the above."
    low: float
    high: float
    "Between these the true rate of failures lies with 95 % confidence."
    limit: float | None
    "The rate that the scenario tolerates; None when one failing run is too many."


@dataclass
class Suite:
    """All runs of one invocation, in the order in which they were made."""

    suite_id: str
    fidelity: str
    command: list[str]
    started_ns: int
    ended_ns: int = 0
    exit_code: int | None = None
    "None as long as the suite has not come to its end."
    runs: list[SuiteRun] = field(default_factory=list)
    scenarios: list[ScenarioResult] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    "What should be known of the file of known failures."
    publisher: str = "ours"
    "The peer on the publisher's host."
    subscriber: str = "ours"
    "The peer on the subscriber's host."

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Suite | None:
        """The suite, or None when there is none; DocumentError when it cannot be understood."""
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        plain = {key: value for key, value in document.items() if key != "schema"}
        try:
            plain["runs"] = [SuiteRun.from_document(each) for each in plain.get("runs", [])]
            scenarios = plain.get("scenarios", [])
            plain["scenarios"] = [ScenarioResult(**each) for each in scenarios]
            return cls(**plain)
        except TypeError as error:
            raise DocumentError(f"{path.name}: {error}") from error
