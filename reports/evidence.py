"""Reads a run folder's documents for a report.

A missing or damaged document is left empty, and a note is added. Reading never fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from windtunnel.harness.artifact.document_values import ValueTypeError, parse
from windtunnel.harness.artifact.documents import Document, DocumentError, read_document
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.artifact.regular_file import read_text
from windtunnel.harness.artifact.run.manifest import Manifest, version_text
from windtunnel.harness.artifact.run.suite import Suite, SuiteRun
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.scenario.resolved.case import Case

_Read = TypeVar("_Read")

UNJUDGED = "INCONCLUSIVE"
ANALYSIS_SCHEMA = "windtunnel-run-analysis/1"
KNOWN = "KNOWN"
"""The outcome that suite.json states for a run that failed with a known failure."""


@dataclass
class RunDocuments:
    """The documents of one run: its manifest, verdict, ledger and others."""

    run: RunDir
    manifest: Manifest | None = None
    verdict: Document = field(default_factory=dict)
    ledger: Ledger | None = None
    case: Case | None = None
    repro: str = ""
    capture_summary: list[str] = field(default_factory=list)
    "The summary lines of the run's capture analysis. Empty if there is no analysis."
    summary: SuiteRun | None = None
    "The run's entry in suite.json."
    notes: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """The verdict's outcome. If there is no verdict, or suite.json says KNOWN, this is the
        outcome in suite.json.
        """
        noted = self.summary.outcome if self.summary else UNJUDGED
        if noted == KNOWN:
            return noted
        return str(self.verdict.get("outcome", noted))

    @property
    def reason(self) -> str:
        noted = self.summary.reason if self.summary else "no verdict was written"
        if self.summary and self.summary.outcome == KNOWN:
            return noted
        return str(self.verdict.get("reason", noted))

    @property
    def scenario(self) -> str:
        if self.manifest is not None:
            return self.manifest.scenario
        return self.summary.scenario if self.summary else self.run.path.name

    @property
    def seed(self) -> int | None:
        if self.manifest is not None:
            return self.manifest.seed
        return self.summary.seed if self.summary else None

    @property
    def subjects(self) -> str:
        """The names and versions of the drivers under test, as text. Empty if they were not
        recorded.
        """
        if self.manifest is None:
            return ""
        own = self.manifest.versions.get("windtunnel", "")
        has_traffic = self.case is None or bool(self.case.traffic)
        return " · ".join(
            f"{each.side if has_traffic else 'driver'} on {host}: "
            f"{each.peer} {version_text(each.version, own)}".rstrip()
            for host, each in self.manifest.subjects.items()
        )

    @property
    def duration_s(self) -> float | None:
        """The run's duration from suite.json or, if that is missing, the sum of its phases'
        durations.

        The phases of a simulated run are measured by two clocks, so only their durations can be
        added.
        """
        if self.summary:
            return (self.summary.ended_ns - self.summary.started_ns) / 1e9
        if self.manifest is None or not self.manifest.phases:
            return None
        return sum(each.ended_ns - each.started_ns for each in self.manifest.phases) / 1e9

    def findings(self, kind: str) -> list[Document]:
        """Return the verdict's findings of one kind, `gates` or `checks`."""
        found = self.verdict.get(kind, [])
        return [each for each in found if isinstance(each, dict)]

    def rule_names(self) -> list[str]:
        return [each.id for each in self.case.faults] if self.case else []


def read_run(run: RunDir, summary: SuiteRun | None = None) -> RunDocuments:
    """Read a run folder's documents. Adds a note for each document that is missing or damaged."""
    documents = RunDocuments(run, summary=summary)

    def attempt(read: Callable[[], _Read | None], what: str) -> _Read | None:
        try:
            found = read()
        except FileNotFoundError:
            found = None
        except (OSError, ValueError) as error:
            documents.notes.append(str(error))
            return None
        if found is None:
            documents.notes.append(f"{what} is missing")
        return found

    documents.manifest = attempt(lambda: Manifest.read(run.manifest), run.manifest.name)
    documents.verdict = attempt(lambda: read_verdict(run.verdict), run.verdict.name) or {}
    documents.ledger = attempt(lambda: Ledger.read(run.ledger), run.ledger.name)
    documents.case = attempt(lambda: Case.read(run.case), run.case.name)
    if run.analysis.is_file():
        summary_lines = attempt(lambda: _summary(run), run.analysis.name)
        documents.capture_summary = summary_lines or []
    documents.repro = attempt(lambda: read_text(run.repro).strip(), run.repro.name) or ""
    return documents


def _summary(run: RunDir) -> list[str] | None:
    """Read the summary lines of a run's capture analysis."""
    document = read_document(run.analysis, ANALYSIS_SCHEMA)
    if document is None:
        return None
    try:
        return parse(list[str], document.get("summary", []), "summary")
    except ValueTypeError as error:
        raise DocumentError(f"{run.analysis.name}: {error}") from error


def read_suite(suite_dir: SuiteDir) -> tuple[Suite | None, list[RunDocuments]]:
    """Read a suite and its runs, in the order of suite.json. Runs not listed there come last."""
    try:
        suite, why = Suite.read(suite_dir.document), ""
    except (OSError, ValueError) as error:
        suite, why = None, str(error)
    named = {each.folder: each for each in suite.runs} if suite else {}
    folders = list(named)
    folders += [run.path.name for run in suite_dir.runs() if run.path.name not in named]
    runs = [read_run(RunDir(suite_dir.path / folder), named.get(folder)) for folder in folders]
    if why and runs:
        runs[0].notes.insert(0, why)
    return suite, runs


def worst(outcomes: list[str]) -> str:
    """Return the worst of the runs' outcomes, or INCONCLUSIVE if there are no runs."""
    order: tuple[Any, ...] = (
        *("FAIL", "HARNESS", "CANCELLED", "INCONCLUSIVE"),
        *("KNOWN", "PASS", "UNSUPPORTED"),
    )
    return next((each for each in order if each in outcomes), UNJUDGED)
