"""verdict.json: the judge's findings about a run, in the format that other programs read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.document_values import ValueTypeError, parse
from windtunnel.harness.artifact.documents import Document, DocumentError, read_document
from windtunnel.harness.artifact.run.observed import Observations
from windtunnel.harness.artifact.run.result_row import ResultRow

SCHEMA = "windtunnel-verdict/1"


@dataclass(frozen=True)
class FindingFacts:
    """The result of one check, or of one gate (a precondition of the run)."""

    name: str
    outcome: str
    text: str
    about: str = ""
    evidence: list[str] = field(default_factory=list)
    "Paths of the evidence within the run folder."
    message: int | None = None
    byte_offset: int | None = None
    position: int | None = None
    difference: bool = False
    kind: str | None = None
    at_fault: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VerdictFacts:
    """The outcome of a run, with the findings that led to it."""

    outcome: str
    reason: str
    gates: list[FindingFacts]
    checks: list[FindingFacts]
    scenario: str = ""
    seed: int | None = None
    exit_code: int | None = None
    at_fault: str | None = None
    results: list[ResultRow] = field(default_factory=list)
    observed: Observations = field(default_factory=Observations)


def read_verdict(path: Path) -> Document | None:
    """Read a verdict and check its field types. Returns None if the file is missing.

    Raises DocumentError, which names the file and the field.
    """
    document = read_document(path, SCHEMA)
    if document is None:
        return None
    try:
        parse(VerdictFacts, {key: value for key, value in document.items() if key != "schema"})
    except ValueTypeError as error:
        raise DocumentError(f"{path.name}: {error}", path) from error
    return document


def observations_of(verdict: Document) -> Observations:
    """Return what the applications saw, from a verdict that `read_verdict` has read. Verdicts of
    older versions have no such observations.
    """
    return parse(Observations, verdict.get("observed", {}), "observed")


def read_results(path: Path) -> list[ResultRow]:
    """Read a verdict's result rows. Returns an empty list if the file is missing. Raises
    DocumentError if the file is invalid.
    """
    document = read_verdict(path)
    return [] if document is None else result_rows_of(document)


def result_rows_of(verdict: Document) -> list[ResultRow]:
    """Return the result rows in a verdict that `read_verdict` has read."""
    return [ResultRow(**each) for each in verdict.get("results", [])]
