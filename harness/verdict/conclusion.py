"""Concludes from a run's findings: the outcome of the run, the reason, and the party at fault."""

from collections.abc import Sequence
from dataclasses import replace

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.verdict.checks.application import NAME as APPLICATION_CHECK
from windtunnel.harness.verdict.checks.observed.observed_streams import unread_notes
from windtunnel.harness.verdict.checks.observed.reported_delivery import (
    DELIVERED as REPORTED_CHECK,
)
from windtunnel.harness.verdict.checks.observed.reported_delivery import reported_notes
from windtunnel.harness.verdict.checks.subject import NAME as SUBJECT_CHECK
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault, Finding, Missing
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome, merge
from windtunnel.harness.verdict.registry import BLAMED_ON

_USUALLY_AT_FAULT = {Outcome.FAIL: AtFault.DRIVER, Outcome.HARNESS: AtFault.HARNESS}


def attribute(gates: list[Finding], checks: list[Finding]) -> list[Finding]:
    """Downgrade violations to INCONCLUSIVE if a failed gate may have caused them."""
    failed = [gate for gate in gates if gate.outcome is not Outcome.PASS]
    judged = []
    for check in checks:
        excuse = next((gate for gate in failed if gate.may_excuse(check)), None)
        violated = check.outcome is Outcome.FAIL
        if violated and excuse is not None:
            check = replace(check.excused(excuse), at_fault=BLAMED_ON.get(excuse.name))
        judged.append(check)
    return judged


def conclude(
    evidence: Evidence,
    gates: list[Finding],
    checks: list[Finding],
    missing: tuple[str, ...],
) -> tuple[Outcome, str, AtFault | None]:
    """Return the run's outcome, the first finding with that outcome, and the party at fault.

    `missing` are the notes about undelivered messages and unrecorded positions, which a passing run
    names.
    """
    manifest = evidence.manifest
    has_failure = any(check.outcome is Outcome.FAIL for check in checks)
    if not isinstance(manifest, Missing) and manifest.unsupported and not has_failure:
        return Outcome.UNSUPPORTED, manifest.unsupported, None
    unsupported = [check for check in checks if check.outcome is Outcome.UNSUPPORTED]
    if unsupported and not has_failure:
        return Outcome.UNSUPPORTED, unsupported[0].text, None
    advisory = [gate for gate in gates if gate.outcome is not Outcome.PASS and gate.advisory]
    decisive = [gate for gate in gates if gate not in advisory]
    outcome = merge(finding.outcome for finding in (*decisive, *checks))
    if outcome is Outcome.PASS:
        text = _pass_text(gates, checks, advisory)
        notes = *reported_notes(checks), text, *unread_notes(checks), *missing
        return outcome, "; ".join(notes), None
    order = (*checks, *decisive) if outcome is Outcome.FAIL else (*decisive, *checks)
    # A wrong message says more than the exit code of the application that noticed it.
    order = tuple(sorted(order, key=lambda each: not _names_a_wrong_message(each, checks)))
    first = next(finding for finding in order if finding.outcome is outcome)
    about = f" ({first.about})" if first.about else ""
    at_fault = first.at_fault or _USUALLY_AT_FAULT.get(outcome)
    if outcome is Outcome.INCONCLUSIVE:
        at_fault = BLAMED_ON.get(first.name, first.at_fault)
    unread = unread_notes(checks) if first.name == SUBJECT_CHECK else ()
    reason = "; ".join((f"{first.name}{about}: {first.text}", *unread))
    if at_fault in (AtFault.SCENARIO, AtFault.MACHINE, AtFault.APPLICATION):
        reason = f"{reason} (at fault: the {at_fault})"
    return outcome, reason, at_fault


def _names_a_wrong_message(finding: Finding, checks: Sequence[Finding]) -> bool:
    """Return whether a finding names a message that was not received as it was sent, unless it is
    only missing because the receiving application has failed.
    """
    if finding.outcome is not Outcome.FAIL or finding.name != REPORTED_CHECK:
        return False
    failures = (each for each in checks if each.name == APPLICATION_CHECK)
    logs = {log for each in failures if each.outcome is Outcome.FAIL for log in each.evidence}
    return finding.kind is Kind.SAFETY or not logs.intersection(finding.evidence)


def _pass_text(gates: list[Finding], checks: list[Finding], advisory: list[Finding]) -> str:
    """Summarize a passing run, for example "15 of 17 gates and 37 of 37 checks passed (...)"."""
    count = len(checks)
    differences = sum(check.difference for check in checks)
    notes = [f"known differences: {differences}"] if differences else []
    if advisory:
        about: dict[str, list[str]] = {}
        for each in advisory:
            about.setdefault(each.name, []).append(each.about)
        named = ", ".join(
            f"{name} ({', '.join(filter(None, of))})" if any(of) else name
            for name, of in about.items()
        )
        notes.append(f"{counted(len(advisory), 'advisory gate')} failed: {named}")
    passed = f"{len(gates) - len(advisory)} of {len(gates)} gates and "
    passed += f"{count - differences} of {count} checks passed"
    return f"{passed} ({'; '.join(notes)})" if notes else passed
