"""Failure rate of one scenario over all its runs, compared with the scenario's limit.

    0 ------------[ k/n ]------|---- 100 %      interval below the limit       PASS
                  low  high    limit            interval above it              FAIL
                                                interval contains the limit    INCONCLUSIVE

The number of runs is fixed in advance, so no correction for sequential testing is needed. Runs that
say nothing about the subject do not count towards the rate. Their outcomes are merged with its
result.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from windtunnel.harness.verdict.core.outcome import Outcome, merge
from windtunnel.harness.verdict.statistics.binomial import rate_interval

CONFIDENCE = 0.95
_RUNS_MAX = 1_000_000


@dataclass(frozen=True)
class Sample:
    """One run as a sample of the failure rate."""

    outcome: Outcome
    unsafe: bool
    "Whether a check with zero tolerance failed."


@dataclass(frozen=True)
class Rate:
    """The combined result of the runs of one scenario."""

    outcome: Outcome
    text: str
    runs: int
    failures: int
    low: float
    high: float


def judge_rate(samples: Sequence[Sample], limit: float | None) -> Rate:
    """Judge all runs of a scenario. Without a limit, the worst run determines the outcome."""
    counted = [each for each in samples if each.outcome in (Outcome.PASS, Outcome.FAIL)]
    failures = sum(each.outcome is Outcome.FAIL for each in counted)
    low, high = rate_interval(failures, len(counted), CONFIDENCE)
    text = (
        f"{failures} of {len(counted)} runs failed, failure rate {low:.2%} to {high:.2%} "
        f"({CONFIDENCE:.0%} confidence)"
    )
    unsafe = sum(each.unsafe for each in counted)
    if limit is None or not counted:
        outcome = merge(each.outcome for each in samples)
    elif unsafe:
        outcome = Outcome.FAIL
        text += f"; {unsafe} of them violated a check with zero tolerance"
    else:
        judged, why = _against(limit, failures, low, high)
        others = [each.outcome for each in samples if each not in counted]
        outcome = merge([judged, *(each for each in others if each is not Outcome.UNSUPPORTED)])
        text += f"; {why}"
    return Rate(outcome, text, len(counted), failures, low, high)


def _against(limit: float, failures: int, low: float, high: float) -> tuple[Outcome, str]:
    expected = f"the limit of {limit:.2%}"
    if high < limit:
        return Outcome.PASS, f"below {expected}"
    if low > limit:
        return Outcome.FAIL, f"above {expected}"
    needed = min_runs(limit)
    more = f"{needed} runs without a failure are needed" if not failures else "more runs are needed"
    return Outcome.INCONCLUSIVE, f"sample too small to compare with {expected}: {more}"


def min_runs(limit: float) -> int:
    """Return the number of failure-free runs that are needed to show that the failure rate is below
    a limit.
    """
    low, high = 1, 1
    while rate_interval(0, high, CONFIDENCE)[1] >= limit and high < _RUNS_MAX:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if rate_interval(0, middle, CONFIDENCE)[1] < limit:
            high = middle
        else:
            low = middle + 1
    return high
