"""What the documents of a run say, for a reader who must never fail.

Each document may be missing or damaged; then its place is empty and a note says so.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from windtunnel.harness.artifact.documents import Document, read_document
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.artifact.regular_file import read_text
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.suite import Suite, SuiteRun
from windtunnel.harness.artifact.run_dir import RunDir, SuiteDir

_Read = TypeVar("_Read")

UNJUDGED = "INCONCLUSIVE"
ANALYSIS_SCHEMA = "windtunnel-run-analysis/1"
KNOWN = "KNOWN"
"""In suite.json: the run failed as it is known to."""


@dataclass
class RunDocuments:
    """The documents of one run."""

    run: RunDir
    manifest: Manifest | None = None
    verdict: Document = field(default_factory=dict)
    ledger: Ledger | None = None
    case: Document = field(default_factory=dict)
    repro: str = ""
    captures_say: list[str] = field(default_factory=list)
    "What an analysis of its captures told, in plain words; empty if there was none."
    summary: SuiteRun | None = None
    "The run's line in suite.json."
    notes: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """The judge's outcome; what the suite noted where the judge said nothing or it is known."""
        noted = self.summary.outcome if self.summary else UNJUDGED
        if noted == KNOWN:
            return noted
        return str(self.verdict.get("outcome", noted))

    @property
    def reason(self) -> str:
        noted = self.summary.reason if self.summary else "there is no verdict"
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
        """Who was tested, host by host; empty where nobody noted it."""
        found = self.manifest.subjects if self.manifest else {}
        return " · ".join(
            f"{each.side} on {host}: {each.peer} {each.version}".rstrip()
            for host, each in found.items()
        )

    @property
    def duration_s(self) -> float | None:
        """How long the run took, as its suite tells; of a run by itself, all its phases together.

        A simulated run's phases lie on two clocks, so only their lengths can be added up.
        """
        if self.summary:
            return (self.summary.ended_ns - self.summary.started_ns) / 1e9
        if self.manifest is None or not self.manifest.phases:
            return None
        return sum(each.ended_ns - each.started_ns for each in self.manifest.phases) / 1e9

    def findings(self, kind: str) -> list[Document]:
        """The verdict's `gates` or `checks`."""
        found = self.verdict.get(kind, [])
        return [each for each in found if isinstance(each, dict)]

    def rule_names(self) -> list[str]:
        return [str(each.get("id", "")) for each in self.case.get("faults", [])]


def read_run(run: RunDir, summary: SuiteRun | None = None) -> RunDocuments:
    """Read all documents of a run folder, whatever state it is in."""
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
    documents.verdict = attempt(lambda: read_document(run.verdict), run.verdict.name) or {}
    documents.ledger = attempt(lambda: Ledger.read(run.ledger), run.ledger.name)
    documents.case = attempt(lambda: read_document(run.case), run.case.name) or {}
    if run.analysis.is_file():
        read = attempt(lambda: read_document(run.analysis, ANALYSIS_SCHEMA), run.analysis.name)
        documents.captures_say = [str(line) for line in (read or {}).get("summary", [])]
    documents.repro = attempt(lambda: read_text(run.repro).strip(), run.repro.name) or ""
    return documents


def read_suite(suite_dir: SuiteDir) -> tuple[Suite | None, list[RunDocuments]]:
    """The suite and its runs in the order made; runs that suite.json does not name come last."""
    try:
        suite = Suite.read(suite_dir.document)
    except (OSError, ValueError):
        suite = None
    named = {each.folder: each for each in suite.runs} if suite else {}
    folders = list(named)
    folders += [run.path.name for run in suite_dir.runs() if run.path.name not in named]
    runs = [read_run(RunDir(suite_dir.path / folder), named.get(folder)) for folder in folders]
    return suite, runs


def worst(outcomes: list[str]) -> str:
    """The outcome of a suite: the worst of its runs, and INCONCLUSIVE of none."""
    order: tuple[Any, ...] = (
        *("FAIL", "HARNESS", "CANCELLED", "INCONCLUSIVE"),
        *("KNOWN", "PASS", "UNSUPPORTED"),
    )
    return next((each for each in order if each in outcomes), UNJUDGED)
