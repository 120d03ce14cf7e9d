"""The runs of a suite or matrix as plain rows, for the JUnit XML and Markdown outputs."""

from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.artifact.run.matrix import Matrix
from windtunnel.harness.artifact.run.suite import Suite, SuiteRun
from windtunnel.reports.evidence import worst

NS_PER_S = 1e9


@dataclass(frozen=True)
class Row:
    """A run of a suite or matrix, with its outcome."""

    scenario: str
    publisher: str
    subscriber: str
    seed: int
    outcome: str
    reason: str
    duration_s: float
    folder: str
    """The run folder's path, relative to the suite or matrix folder."""

    @property
    def pair(self) -> str:
        return pair_name(self.publisher, self.subscriber)


@dataclass(frozen=True)
class Outcomes:
    """All runs of one suite or matrix, with the total outcome."""

    title: str
    outcome: str
    folder: Path
    rows: tuple[Row, ...]

    def pairs(self) -> list[str]:
        return list(dict.fromkeys(row.pair for row in self.rows))

    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(row.scenario for row in self.rows))

    def cell(self, scenario: str, pair: str) -> list[Row]:
        return [row for row in self.rows if (row.scenario, row.pair) == (scenario, pair)]


def pair_name(publisher: str, subscriber: str) -> str:
    """Return the display name of a driver pair."""
    return f"{publisher} → {subscriber}"


def of_suite(folder: Path, suite: Suite) -> Outcomes:
    """Return the runs of a suite as rows."""
    rows = tuple(_row(each, suite.publisher, suite.subscriber, "") for each in suite.runs)
    return Outcomes("Windtunnel", worst([row.outcome for row in rows]), folder, rows)


def of_matrix(folder: Path, matrix: Matrix) -> Outcomes:
    """Return the runs of a matrix as rows, ordered by scenario, driver pair and seed."""
    rows = tuple(
        _row(run, cell.publisher, cell.subscriber, f"{cell.suite}/")
        for cell in matrix.cells
        for run in cell.runs
    )
    return Outcomes("Windtunnel matrix", worst([row.outcome for row in rows]), folder, rows)


def _row(run: SuiteRun, publisher: str, subscriber: str, parent: str) -> Row:
    return Row(
        scenario=run.scenario,
        publisher=publisher,
        subscriber=subscriber,
        seed=run.seed,
        outcome=run.outcome,
        reason=" ".join(run.reason.split()),
        duration_s=(run.ended_ns - run.started_ns) / NS_PER_S,
        folder=parent + run.folder,
    )
