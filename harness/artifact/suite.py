"""suite.json: the runs of one invocation and how each of them ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness.artifact.documents import DocumentError, read_document, write_document

SCHEMA = "windtunnel-suite/1"


@dataclass
class SuiteRun:
    """One run of a suite."""

    folder: str
    "Name of the run folder within the suite folder."
    scenario: str
    seed: int
    outcome: str
    "FAIL, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS, or CANCELLED."
    reason: str
    "One line: the first finding that decided."
    started_ns: int
    ended_ns: int


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
            plain["runs"] = [SuiteRun(**each) for each in plain.get("runs", [])]
            return cls(**plain)
        except TypeError as error:
            raise DocumentError(f"{path.name}: {error}") from error
