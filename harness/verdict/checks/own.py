"""What a scenario's own checks have found. It is part of the verdict of a run that has any.

The run has executed them and stored their results. The judge only reads these: no program that a
run folder names is executed.
"""

from collections.abc import Iterator

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run.own_checks import (
    FAIL,
    HARNESS,
    PASS,
    OwnCheck,
    OwnCheckFile,
    OwnChecks,
)
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    AtFault,
    Finding,
    Missing,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome

NAME = "own_checks"


def own_checks(evidence: Evidence) -> list[Finding]:
    """The scenario's own checks found nothing wrong, each with its own name."""
    case = present(evidence.case)
    path = evidence.folder.own_checks
    where = evidence.name_of(path)
    try:
        found = OwnChecks.read(path)
    except DocumentError as error:
        return [inconclusive(NAME, Missing(where, f"cannot be parsed: {error}", damaged=True))]
    if found is None:
        return [inconclusive(NAME, Missing(where, "is missing: the checks were not executed"))]
    names = tuple(each.file for each in found.files)
    if names != case.checks:
        text = f"has results of {', '.join(names)}, expected {', '.join(case.checks)}"
        return [inconclusive(NAME, Missing(where, text, damaged=True))]
    return [finding for each in found.files for finding in _of_file(each, case, where)]


def _of_file(found: OwnCheckFile, case: Case, where: str) -> Iterator[Finding]:
    for each in found.checks:
        yield _of_check(each, found.file, case, where)
    if found.error or not found.checks:
        yield _broken(NAME, found.file, found.error or "has no results", where)


def _of_check(check: OwnCheck, file: str, case: Case, where: str) -> Finding:
    text = "; ".join(check.texts)
    if check.outcome == PASS:
        return passed(check.name, "found nothing wrong", file, kind=Kind.OWN)
    if check.outcome == HARNESS:
        return _broken(check.name, file, text, where)
    # Whether the applications or a driver caused it is known to the check alone.
    at_fault = AtFault.APPLICATION if check.outcome == FAIL and case.applications else None
    return Finding(
        check.name,
        Outcome[check.outcome],
        text,
        file,
        evidence=(where,),
        kind=Kind.OWN,
        at_fault=at_fault,
    )


def _broken(name: str, file: str, text: str, where: str) -> Finding:
    """Return the finding for a check that could not be completed: its file has to be changed."""
    return Finding(name, Outcome.HARNESS, text, file, evidence=(where,), at_fault=AtFault.SCENARIO)
