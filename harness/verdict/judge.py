"""Judges a run folder: runs gates and checks, and writes verdict.json.

    failed gate + violation proven by the bytes    FAIL
    failed gate + violation that it may explain    INCONCLUSIVE, with the name of the gate
    a gate, check or view raises an exception      HARNESS; the other findings still count

The result depends on neither time nor machine: judging a folder again writes the same bytes.
"""

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from windtunnel.harness.artifact.documents import Document, write_document
from windtunnel.harness.artifact.run.observed import Observations
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case, CheckCase, TrafficCase
from windtunnel.harness.scenario.schema import applies
from windtunnel.harness.scenario.schema.units import parse_bytes
from windtunnel.harness.verdict.checks.application import NAME as APPLICATION_CHECK
from windtunnel.harness.verdict.checks.application import applications_ran
from windtunnel.harness.verdict.checks.envelope.within_envelope import NAME as ENVELOPE_CHECK
from windtunnel.harness.verdict.checks.envelope.within_envelope import within_envelope
from windtunnel.harness.verdict.checks.observed.observed_streams import NAME as OBSERVED_CHECK
from windtunnel.harness.verdict.checks.observed.observed_streams import (
    observed_streams,
    unknown_notes,
)
from windtunnel.harness.verdict.checks.own import NAME as OWN_CHECKS
from windtunnel.harness.verdict.checks.own import own_checks
from windtunnel.harness.verdict.checks.reported_round_trips import NAME as ROUND_TRIPS
from windtunnel.harness.verdict.checks.reported_round_trips import reported_round_trips
from windtunnel.harness.verdict.checks.subject import NAME as SUBJECT_CHECK
from windtunnel.harness.verdict.checks.subject import subject_lived
from windtunnel.harness.verdict.conclusion import attribute, conclude
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    AtFault,
    EvidenceMissing,
    Finding,
    Missing,
    inconclusive,
)
from windtunnel.harness.verdict.core.limit import Limit
from windtunnel.harness.verdict.core.outcome import Outcome, exit_code
from windtunnel.harness.verdict.core.process_error import is_of_process
from windtunnel.harness.verdict.registry import CHECKS, GATES
from windtunnel.harness.verdict.results.observations import observations
from windtunnel.harness.verdict.results.observed_rows import observed_rows
from windtunnel.harness.verdict.results.result_rows import Reading, readings
from windtunnel.harness.verdict.views.undelivered import undelivered_notes
from windtunnel.harness.verdict.views.unrecorded import unrecorded_notes

SCHEMA = "windtunnel-verdict/1"
_Shown = TypeVar("_Shown")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a run, with the findings behind it."""

    scenario: str
    seed: int | None
    outcome: Outcome
    reason: str
    "The finding that determined the outcome, in one line."
    at_fault: AtFault | None
    "The party that has to change something, or None if the run passed or the cause is unknown."
    gates: tuple[Finding, ...]
    checks: tuple[Finding, ...]
    results: tuple[ResultRow, ...] = ()
    observed: Observations = field(default_factory=Observations)

    @property
    def exit_code(self) -> int:
        return exit_code(self.outcome)

    def as_document(self) -> Document:
        return {
            "schema": SCHEMA,
            "scenario": self.scenario,
            "seed": self.seed,
            "outcome": str(self.outcome),
            "exit_code": self.exit_code,
            "reason": self.reason,
            **({} if self.at_fault is None else {"at_fault": str(self.at_fault)}),
            "gates": [finding.as_document() for finding in self.gates],
            "checks": [finding.as_document() for finding in self.checks],
            "results": [row.as_document() for row in self.results],
            "observed": self.observed.as_document(),
        }


def judge(run_dir: Path) -> Verdict:
    """Judge a run folder, and write its verdict.json if the folder exists."""
    evidence = Evidence(run_dir)
    try:
        verdict = verdict_of(evidence)
    finally:
        evidence.close()
    if run_dir.is_dir():
        write_document(RunDir(run_dir).verdict, verdict.as_document())
    return verdict


def verdict_of(evidence: Evidence) -> Verdict:
    """Judge a run's evidence without writing any file."""
    gates = [finding for name, gate in GATES.items() for finding in _guarded(name, gate, evidence)]
    checks = _guarded(SUBJECT_CHECK, subject_lived, evidence)
    case = evidence.case
    read: tuple[Reading, ...] = ()
    not_read: list[Finding] = []
    if isinstance(case, Missing):
        checks.append(inconclusive("expectations", case))
    else:
        read, not_read = _guarded_view("results", readings, evidence, case)
        if case.applications:
            checks += _guarded(APPLICATION_CHECK, applications_ran, evidence)
        if any(any(each.round_trips_ns) for each in case.applications):
            checks += _guarded(ROUND_TRIPS, reported_round_trips, evidence)
        if case.observed or case.observes_all:
            checks += _guarded(OBSERVED_CHECK, observed_streams, evidence)
        if case.expect or not case.applications:
            checks += _expectations(evidence, case)
        if case.checks:
            checks += _guarded(OWN_CHECKS, own_checks, evidence)
        checks += _envelope(evidence, case, [each.row for each in read])
    checks = attribute(gates, checks) + not_read
    missing: tuple[str, ...] = ()
    seen: tuple[Observations, ...] = ()
    rows: tuple[ResultRow, ...] = ()
    if not isinstance(case, Missing):
        for name, notes in (("undelivered", undelivered_notes), ("unrecorded", unrecorded_notes)):
            found, raised = _guarded_view(name, notes, evidence, case)
            missing += found
            checks += raised
        missing += tuple(unknown_notes(checks))
        seen, raised = _guarded_view("observed", observations, evidence, case, read)
        checks += raised
        rows, raised = _guarded_view("results", observed_rows, evidence, case)
        checks += raised
    outcome, reason, at_fault = conclude(evidence, gates, checks, missing)
    return Verdict(
        scenario="" if isinstance(case, Missing) else case.name,
        seed=None if isinstance(case, Missing) else case.seed,
        outcome=outcome,
        reason=reason,
        at_fault=at_fault,
        gates=tuple(gates),
        checks=tuple(checks),
        results=(*(each.row for each in read), *rows),
        observed=seen[0] if seen else Observations(),
    )


def _envelope(evidence: Evidence, case: Case, rows: Sequence[ResultRow]) -> list[Finding]:
    """Return the comparison with sound drivers, or nothing if the case has no envelope."""
    try:
        return within_envelope(evidence, case, rows) or []
    except Exception as error:
        return [_raised(ENVELOPE_CHECK, error)]


def _expectations(evidence: Evidence, case: Case) -> list[Finding]:
    if not case.expect:
        text = "the scenario has no `expect` entries, so no check ran"
        return [Finding("expectations", Outcome.INCONCLUSIVE, text)]
    findings = []
    for expected in case.expect:
        findings += _expectation(evidence, case, expected)
    return findings


def _expectation(evidence: Evidence, case: Case, expected: CheckCase) -> list[Finding]:
    check = CHECKS.get(expected.name)
    if check is None:
        text = f"unknown check; available checks: {', '.join(CHECKS)}"
        return [Finding(expected.name, Outcome.HARNESS, text)]
    if check.run_with is not None:
        findings = _guarded(expected.name, check.run_with, evidence, expected.arguments)
        findings = [replace(each, kind=each.kind or check.kind) for each in findings]
        return [_for_subject(evidence, expected, each) for each in findings]
    limit = check.limit
    known = {"traffic", "to", applies.KEY} | ({limit.argument} if limit else set())
    unknown = set(expected.arguments) - known
    flows = [
        flow
        for each in case.traffic
        if _selects(expected, "traffic", each.id)
        for flow in each.flows
        if _applies_to_flow(expected, flow)
    ]
    if unknown or not flows:
        text = (
            f"invalid arguments {expected.arguments}: expected `traffic` (the id of a stream in "
            "the scenario), `to` (the host of one of its subscribers) or `applies`"
        )
        return [Finding(expected.name, Outcome.HARNESS, text)]
    findings = _guarded(expected.name, check.run, evidence, flows)
    findings = [replace(each, kind=each.kind or check.kind) for each in findings]
    if limit and limit.argument in expected.arguments:
        at_most = expected.arguments[limit.argument]
        findings = _guarded(expected.name, _limited, limit, findings, at_most)
    return [_for_subject(evidence, expected, each) for each in findings]


def _limited(limit: Limit, findings: list[Finding], at_most: object) -> list[Finding]:
    at_most_bytes = parse_bytes(at_most)
    return [limit.apply(each, at_most_bytes) for each in findings]


def _for_subject(evidence: Evidence, expected: CheckCase, finding: Finding) -> Finding:
    """Return the finding, downgraded from FAIL if one of the drivers is exempt from the check."""
    entries = expected.arguments.get(applies.KEY)
    if entries is None or finding.outcome is not Outcome.FAIL:
        return finding
    manifest = evidence.manifest
    if isinstance(manifest, Missing):
        return inconclusive(finding.name, manifest, finding.about)
    for subject in manifest.subjects.values():
        bound = applies.applies_to(entries, subject.driver, subject.version)
        if bound is None:
            text = "cannot determine whether this check applies to "
            text += f"version {subject.version!r} of {subject.driver}"
            text = f"{text}: {finding.text}"
            return replace(finding, outcome=Outcome.INCONCLUSIVE, text=text)
        if not bound:
            return finding.as_difference(f"{subject.driver} {subject.version}".strip())
    return finding


def _selects(expected: CheckCase, key: str, name: str) -> bool:
    selected: Any = expected.arguments.get(key, name)
    return name in selected if isinstance(selected, list) else bool(name == selected)


def _applies_to_flow(expected: CheckCase, flow: TrafficCase) -> bool:
    """Return whether a check covers a subscriber. A subscriber that receives only a part of the
    stream must be named in the check's `to`.
    """
    if "to" not in expected.arguments:
        return flow.to_host not in flow.partial
    return _selects(expected, "to", flow.to_host)


def _guarded(name: str, run: Callable[..., list[Finding]], *arguments: Any) -> list[Finding]:
    """Run a gate or check. If it lacks evidence for all of its subjects, it is inconclusive. If it
    raises another exception, return a HARNESS finding.
    """
    try:
        return run(*arguments) or [Finding(name, Outcome.INCONCLUSIVE, "nothing to check")]
    except EvidenceMissing as error:
        return [inconclusive(name, error.missing)]
    except Exception as error:
        return [_raised(name, error)]


def _guarded_view(
    name: str, view: Callable[..., Iterable[_Shown]], *arguments: Any
) -> tuple[tuple[_Shown, ...], list[Finding]]:
    """Compute figures or notes for the verdict. If this raises an exception, return a HARNESS
    finding instead.
    """
    try:
        return tuple(view(*arguments)), []
    except Exception as error:
        return (), [_raised(name, error)]


def _raised(name: str, error: Exception) -> Finding:
    """Return the HARNESS finding for an exception that the judge's own code raised. Raises the
    exception again if it says nothing about the run.
    """
    if is_of_process(error):
        raise error
    place = traceback.extract_tb(error.__traceback__)[-1]
    file = Path(place.filename).name
    text = f"the judge raised {type(error).__name__} at {file}:{place.lineno}: {error}"
    return Finding(name, Outcome.HARNESS, text)
