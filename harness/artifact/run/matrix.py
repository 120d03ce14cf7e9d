"""matrix.json: every publisher against every subscriber, under every scenario, and what came of it.

    cell = scenario x publisher x subscriber      its runs differ in their seeds alone

A cell's outcome is the worst of its runs'; UNSUPPORTED stands apart.
"""

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
from windtunnel.harness.artifact.run.suite import SuiteRun

SCHEMA = "windtunnel-matrix/1"


@dataclass
class MatrixPeer:
    """One driver of the matrix."""

    name: str
    version: str = ""
    "What it says of its build; empty when no run has shown it."
    missing: str = ""
    "Why it cannot be had on this machine; empty when it can."


@dataclass
class MatrixCell:
    """One pair under one scenario."""

    scenario: str
    publisher: str
    subscriber: str
    suite: str
    "Name of the pair's suite folder within the matrix folder."
    planned_count: int
    "Runs that were to be made; fewer were when the matrix was cut short."
    outcome: str = ""
    "The worst of the runs'; empty before there is any."
    reason: str = ""
    "Of the first run with that outcome."
    pass_count: int = 0
    runs: list[SuiteRun] = field(default_factory=list)
    "In the order of their seeds."


@dataclass
class Matrix:
    """All cells: scenario by scenario, pair by pair."""

    matrix_id: str
    fidelity: str
    command: list[str]
    jobs: int
    publishers: list[str]
    subscribers: list[str]
    started_ns: int
    ended_ns: int = 0
    exit_code: int | None = None
    "None as long as the matrix has not come to its end."
    peers: list[MatrixPeer] = field(default_factory=list)
    cells: list[MatrixCell] = field(default_factory=list)

    def write(self, path: Path) -> None:
        write_document(path, self.as_document())

    def as_document(self) -> dict[str, object]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def read(cls, path: Path) -> Matrix | None:
        """The matrix, or None when there is none; DocumentError when it cannot be understood."""
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        plain = {key: value for key, value in document.items() if key != "schema"}
        try:
            plain["peers"] = [MatrixPeer(**each) for each in plain.get("peers", [])]
            plain["cells"] = [_cell(each) for each in plain.get("cells", [])]
            return cls(**plain)
        except (AttributeError, TypeError) as error:
            raise DocumentError(f"{path.name}: {error}") from error


def _cell(plain: dict[str, Any]) -> MatrixCell:
    cell = MatrixCell(**plain)
    check_name(cell.suite, "suite")
    cell.runs = [SuiteRun.from_document(each) for each in plain.get("runs", [])]
    return cell
