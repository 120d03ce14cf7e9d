"""matrix.json: the outcomes of all pairs of publisher and subscriber in all scenarios.

    cell = scenario x publisher x subscriber      the runs of a cell differ only in their seeds

A cell's outcome is the worst outcome of its runs. It is UNSUPPORTED only if all of its runs are.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import ClassVar

from windtunnel.harness.artifact.documents import StoredDocument, check_name
from windtunnel.harness.artifact.run.suite import SuiteRun


@dataclass
class MatrixPeer:
    """One of the drivers that a matrix run compares."""

    name: str
    version: str = ""
    "The version that the driver reports, or an empty string if no run has shown it."
    missing: str = ""
    "The reason why the driver is not available on this machine, or an empty string."


@dataclass
class MatrixCell:
    """The result of one pair of publishing and subscribing driver in one scenario."""

    scenario: str
    publisher: str
    subscriber: str
    suite: str
    "Name of the pair's suite folder within the matrix folder."
    planned_count: int
    "Number of planned runs. Fewer were executed if the matrix was interrupted."
    outcome: str = ""
    "The worst outcome of the runs, or an empty string before the first run."
    reason: str = ""
    "The reason of the first run with that outcome."
    pass_count: int = 0
    runs: list[SuiteRun] = field(default_factory=list)
    "The runs in the order of their seeds."

    def __post_init__(self) -> None:
        check_name(self.suite, "suite")


@dataclass
class Matrix(StoredDocument):
    """All cells of a matrix run, ordered by scenario and then by pair."""

    SCHEMA: ClassVar[str] = "windtunnel-matrix/1"

    matrix_id: str
    fidelity: str
    command: list[str]
    jobs: int
    publishers: list[str]
    subscribers: list[str]
    started_ns: int
    ended_ns: int = 0
    exit_code: int | None = None
    "The exit code, or None until the matrix has completed."
    peers: list[MatrixPeer] = field(default_factory=list)
    cells: list[MatrixCell] = field(default_factory=list)

    def as_document(self) -> dict[str, object]:
        return {"schema": self.SCHEMA, **asdict(self)}
