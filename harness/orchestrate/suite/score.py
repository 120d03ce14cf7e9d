"""The score of a suite: its known failures, the failure rate of each scenario, and the exit code.

run, its verdict --known failure?--> counts or not --by scenario--> k of n, interval, limit
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windtunnel.harness.artifact.documents import DocumentError, read_document
from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.run.manifest import Manifest, SubjectFacts
from windtunnel.harness.artifact.run.suite import ScenarioResult
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.units import BILLION
from windtunnel.harness.verdict.core.kind import ZERO_TOLERANCE
from windtunnel.harness.verdict.core.known import KNOWN, KnownFailureList, RunOutcome
from windtunnel.harness.verdict.core.outcome import Outcome, exit_code, merge
from windtunnel.harness.verdict.statistics.rate import Rate, Sample, judge_rate

RATE_RUNS_MIN = 10
"""Number of runs from which on the interval of the failure rate is shown."""
_DIGITS = 6
"""Decimal places of the interval in documents."""


@dataclass(frozen=True)
class _Violations:
    """The names of the checks that failed, according to a verdict."""

    checks: tuple[str, ...]
    unsafe: bool


class Score:
    """The results of a suite's runs, with known failures counted separately."""

    def __init__(self, book: KnownFailureList) -> None:
        self._book = book
        self._samples: dict[str, list[Sample]] = {}
        self._limits: dict[str, float | None] = {}
        self._known_runs: dict[str, int] = {}

    def add(self, scenario: Scenario, folder: RunDir, outcome: str, reason: str) -> tuple[str, str]:
        """Count a judged run. Returns the run's outcome and reason, which are changed if the
        failure is known.
        """
        name = scenario.name
        limit = scenario.budget.failures
        self._limits[name] = None if limit is None else limit / BILLION
        samples = self._samples.setdefault(name, [])
        found = _violations(folder)
        judged = RunOutcome(
            scenario=name,
            subjects=_subjects(folder),
            violated=found.checks,
            is_conclusive=outcome in (Outcome.PASS, Outcome.FAIL),
        )
        is_known, said = self._book.match(judged)
        if said:
            reason = f"{said}: {reason}"
        if is_known and outcome == Outcome.FAIL:
            self._known_runs[name] = self._known_runs.get(name, 0) + 1
            return KNOWN, reason
        samples.append(Sample(Outcome(outcome), found.unsafe))
        return outcome, reason

    def scenarios(self) -> list[ScenarioResult]:
        """Return the result of each scenario, in the order in which the scenarios were first
        run.
        """
        results = []
        for name, samples in self._samples.items():
            limit, known = self._limits[name], self._known_runs.get(name, 0)
            rate = judge_rate(samples, limit)
            only_known = known and not samples
            text = _text(rate, limit) + (f"; {known} more had known failures" if known else "")
            results.append(
                ScenarioResult(
                    scenario=name,
                    outcome=str(Outcome.PASS if only_known else rate.outcome),
                    text=text,
                    runs=rate.runs,
                    failures=rate.failures,
                    known=known,
                    low=round(rate.low, _DIGITS),
                    high=round(rate.high, _DIGITS),
                    limit=limit,
                )
            )
        return results

    def exit_code(self) -> int:
        """Return the exit code of a suite that was not cancelled."""
        return exit_code(merge(Outcome[each.outcome] for each in self.scenarios()))

    def remarks(self) -> list[str]:
        """Return remarks for the user about known failures that no longer occur or whose entry has
        expired.
        """
        return [*self._book.no_longer_failing(), *self._book.expired()]


def _text(rate: Rate, limit: float | None) -> str:
    """Return a sentence about a rate. The interval of a few runs spans nearly everything, so it is
    left out unless it is compared with a limit.
    """
    if limit is None and rate.runs < RATE_RUNS_MIN:
        return f"{rate.failures} of {counted(rate.runs, 'run')} failed"
    return rate.text


def _violations(folder: RunDir) -> _Violations:
    try:
        document = read_document(folder.verdict) or {}
    except DocumentError:
        document = {}
    checks = [each for each in _findings(document.get("checks")) if each.get("outcome") == "FAIL"]
    names = tuple(dict.fromkeys(str(each.get("name")) for each in checks))
    zero = {str(kind) for kind in ZERO_TOLERANCE}
    return _Violations(names, any(each.get("kind") in zero for each in checks))


def _findings(found: object) -> Sequence[dict[str, object]]:
    return found if isinstance(found, list) else []


def _subjects(folder: RunDir) -> tuple[SubjectFacts, ...]:
    try:
        manifest = Manifest.read(folder.manifest)
    except DocumentError:
        manifest = None
    return () if manifest is None else tuple(manifest.subjects.values())
