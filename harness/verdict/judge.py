"""From a run folder to its verdict: gates, checks, attribution, verdict.json.

    broken gate + violation that the bytes prove   FAIL
    broken gate + a violation that it may cause    INCONCLUSIVE, naming the gate
    a gate or check that throws                    HARNESS, and the others still count

Nothing depends on the time or the machine: judging a folder again writes the same bytes.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import Document, write_document
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case, CheckCase, TrafficCase
from windtunnel.harness.scenario.schema import applies
from windtunnel.harness.verdict.checks.subject import NAME as SUBJECT_LIVED
from windtunnel.harness.verdict.checks.subject import subject_lived
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, could_not_look
from windtunnel.harness.verdict.core.outcome import Outcome, exit_code, merge
from windtunnel.harness.verdict.registry import CHECKS, GATES

SCHEMA = "windtunnel-verdict/1"


@dataclass(frozen=True)
class Verdict:
    """What a run came to, and why."""

    scenario: str
    seed: int | None
    outcome: Outcome
    reason: str
    "One line: the finding that decided."
    gates: tuple[Finding, ...]
    checks: tuple[Finding, ...]

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
            "gates": [finding.as_document() for finding in self.gates],
            "checks": [finding.as_document() for finding in self.checks],
        }


def judge(run_dir: Path) -> Verdict:
    """Judge a run folder and write its verdict.json, unless the folder is not there at all."""
    verdict = verdict_of(Evidence(run_dir))
    if run_dir.is_dir():
        write_document(RunDir(run_dir).verdict, verdict.as_document())
    return verdict


def verdict_of(evidence: Evidence) -> Verdict:
    """Judge what a run left, without writing anything."""
    gates = [finding for name, gate in GATES.items() for finding in _guarded(name, gate, evidence)]
    checks = _guarded(SUBJECT_LIVED, subject_lived, evidence)
    case = evidence.case
    if isinstance(case, Missing):
        checks.append(could_not_look("expectations", case))
    else:
        checks += _expectations(evidence, case)
    checks = _attribute(gates, checks)
    outcome, reason = _conclude(evidence, gates, checks)
    return Verdict(
        scenario="" if isinstance(case, Missing) else case.name,
        seed=None if isinstance(case, Missing) else case.seed,
        outcome=outcome,
        reason=reason,
        gates=tuple(gates),
        checks=tuple(checks),
    )


def _expectations(evidence: Evidence, case: Case) -> list[Finding]:
    if not case.expect:
        text = "the case expects nothing, so nothing was shown"
        return [Finding("expectations", Outcome.INCONCLUSIVE, text)]
    findings = []
    for wanted in case.expect:
        findings += _expectation(evidence, case, wanted)
    return findings


def _expectation(evidence: Evidence, case: Case, wanted: CheckCase) -> list[Finding]:
    check = CHECKS.get(wanted.name)
    if check is None:
        text = f"no such check: the judge knows {', '.join(CHECKS)}"
        return [Finding(wanted.name, Outcome.HARNESS, text)]
    unknown = set(wanted.arguments) - {"traffic", "to", applies.KEY}
    flows = [
        flow
        for each in case.traffic
        if _meant(wanted, "traffic", each.id)
        for flow in each.flows
        if _is_asked(wanted, flow)
    ]
    if unknown or not flows:
        text = (
            f"cannot be made with {wanted.arguments}: expected traffic, the id of one, to, "
            "a subscriber's host, or applies"
        )
        return [Finding(wanted.name, Outcome.HARNESS, text)]
    findings = _guarded(wanted.name, check.look, evidence, flows)
    findings = [replace(each, kind=each.kind or check.kind) for each in findings]
    return [_for_subject(evidence, wanted, each) for each in findings]


def _for_subject(evidence: Evidence, wanted: CheckCase, finding: Finding) -> Finding:
    """The finding as it counts for the subjects of this run, all of which a check must bind."""
    entries = wanted.arguments.get(applies.KEY)
    if entries is None or finding.outcome is not Outcome.FAIL:
        return finding
    manifest = evidence.manifest
    if isinstance(manifest, Missing):
        return could_not_look(finding.name, manifest, finding.about)
    for subject in manifest.subjects.values():
        bound = applies.applies_to(entries, subject.driver, subject.version)
        if bound is None:
            text = f"version {subject.version!r} of {subject.driver} cannot be compared"
            text = f"{text}: {finding.text}"
            return replace(finding, outcome=Outcome.INCONCLUSIVE, text=text)
        if not bound:
            return finding.as_difference(f"{subject.driver} {subject.version}".strip())
    return finding


def _meant(wanted: CheckCase, key: str, name: str) -> bool:
    chosen: Any = wanted.arguments.get(key, name)
    return name in chosen if isinstance(chosen, list) else bool(name == chosen)


def _is_asked(wanted: CheckCase, flow: TrafficCase) -> bool:
    """Whether a check is about this reader; of one that may be cut off only if it is named."""
    if "to" not in wanted.arguments:
        return flow.to_host not in flow.partial
    return _meant(wanted, "to", flow.to_host)


def _guarded(name: str, look: Callable[..., list[Finding]], *arguments: Any) -> list[Finding]:
    """The findings, or HARNESS when looking for them threw: a broken judge clears nobody."""
    try:
        return look(*arguments) or [Finding(name, Outcome.INCONCLUSIVE, "found nothing to look at")]
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        file = Path(place.filename).name
        text = f"the judge threw {type(error).__name__} at {file}:{place.lineno}: {error}"
        return [Finding(name, Outcome.HARNESS, text)]


def _attribute(gates: list[Finding], checks: list[Finding]) -> list[Finding]:
    """Excuse violations that a broken gate may have caused."""
    broken = [gate for gate in gates if gate.outcome is not Outcome.PASS]
    judged = []
    for check in checks:
        excuse = next((gate for gate in broken if gate.may_excuse(check)), None)
        violated = check.outcome is Outcome.FAIL
        judged.append(check.excused(excuse) if violated and excuse is not None else check)
    return judged


def _conclude(
    evidence: Evidence, gates: list[Finding], checks: list[Finding]
) -> tuple[Outcome, str]:
    """The run's outcome, and the first finding that made it."""
    manifest = evidence.manifest
    standing = any(check.outcome is Outcome.FAIL for check in checks)
    if not isinstance(manifest, Missing) and manifest.unsupported and not standing:
        return Outcome.UNSUPPORTED, manifest.unsupported
    unable = [check for check in checks if check.outcome is Outcome.UNSUPPORTED]
    if unable and not standing:
        return Outcome.UNSUPPORTED, unable[0].text
    idle = [gate for gate in gates if gate.outcome is not Outcome.PASS and gate.advisory]
    gates = [gate for gate in gates if gate not in idle]
    outcome = merge(finding.outcome for finding in (*gates, *checks))
    if outcome is Outcome.PASS:
        differing = sum(check.difference for check in checks)
        excuse = f", {differing} differences noted" if differing else ""
        excuse += f", without the excuse of {idle[0].name}" if idle else ""
        return outcome, f"{len(gates)} gates and {len(checks)} checks hold{excuse}"
    order = (*checks, *gates) if outcome is Outcome.FAIL else (*gates, *checks)
    first = next(finding for finding in order if finding.outcome is outcome)
    about = f" ({first.about})" if first.about else ""
    return outcome, f"{first.name}{about}: {first.text}"
