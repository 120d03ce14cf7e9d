"""Failure rates: a limit needs enough runs, and safety has no limit."""

import pytest

from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.statistics.rate import Sample, judge_rate, min_runs

PASS, FAIL = Outcome.PASS, Outcome.FAIL
INCONCLUSIVE, HARNESS, UNSUPPORTED = Outcome.INCONCLUSIVE, Outcome.HARNESS, Outcome.UNSUPPORTED


def runs(passed: int, failed: int = 0, unsafe: int = 0, *others: Outcome) -> list[Sample]:
    return [
        *[Sample(PASS, False)] * passed,
        *[Sample(FAIL, False)] * failed,
        *[Sample(FAIL, True)] * unsafe,
        *[Sample(each, False) for each in others],
    ]


@pytest.mark.parametrize(
    ("samples", "outcome"),
    [
        (runs(3), PASS),
        (runs(3, 1), FAIL),
        (runs(3, 0, 0, HARNESS, INCONCLUSIVE), HARNESS),
        (runs(3, 0, 0, UNSUPPORTED), PASS),
        (runs(0, 0, 0, UNSUPPORTED), UNSUPPORTED),
        ([], INCONCLUSIVE),
    ],
)
def test_without_a_limit_the_worst_run_decides(samples, outcome):
    assert judge_rate(samples, None).outcome is outcome


@pytest.mark.parametrize(
    ("samples", "outcome"),
    [
        (runs(72), PASS),
        (runs(71), INCONCLUSIVE),
        (runs(200, 1), PASS),
        (runs(100, 5), INCONCLUSIVE),
        (runs(90, 13), FAIL),
        (runs(10_000, 0, 1), FAIL),
        (runs(72, 0, 0, INCONCLUSIVE), INCONCLUSIVE),
        (runs(72, 0, 0, HARNESS), HARNESS),
        (runs(72, 0, 0, UNSUPPORTED), PASS),
        (runs(0, 0, 0, UNSUPPORTED), UNSUPPORTED),
        (runs(0, 0, 0, HARNESS), HARNESS),
    ],
)
def test_against_a_limit_of_five_per_cent_the_interval_decides(samples, outcome):
    assert judge_rate(samples, 0.05).outcome is outcome


def test_the_counted_rate_is_reported_with_its_interval():
    rate = judge_rate(runs(9, 1, 0, INCONCLUSIVE), None)
    assert (rate.failures, rate.runs) == (1, 10)
    assert rate.text == "1 of 10 runs failed, failure rate 0.25% to 44.50% (95% confidence)"
    few = judge_rate(runs(10), 0.05)
    assert few.text.endswith(
        "; sample too small to compare with the limit of 5.00%: "
        "72 runs without a failure are needed"
    )
    assert "violated a check with zero tolerance" in judge_rate(runs(99, 0, 1), 0.5).text
    assert judge_rate(runs(72), 0.05).text.endswith("; below the limit of 5.00%")
    assert judge_rate(runs(0, 9), 0.05).text.endswith("; above the limit of 5.00%")


@pytest.mark.parametrize(("limit", "runs_needed"), [(0.5, 6), (0.05, 72), (0.001, 3688)])
def test_the_number_of_runs_without_a_failure_that_shows_a_limit(limit, runs_needed):
    assert min_runs(limit) == runs_needed
    assert judge_rate(runs(runs_needed), limit).outcome is PASS
    assert judge_rate(runs(runs_needed - 1), limit).outcome is INCONCLUSIVE
