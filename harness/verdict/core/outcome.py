"""The five outcomes, how several become one, and the exit codes they stand for.

FAIL > HARNESS > INCONCLUSIVE > PASS          worst wins; UNSUPPORTED stands apart
"""

from collections.abc import Iterable
from enum import StrEnum


class Outcome(StrEnum):
    """What a gate, a check, a run or a suite came to."""

    FAIL = "FAIL"
    "The subject broke a promise, and the evidence is sound."
    HARNESS = "HARNESS"
    "Our own defect: nothing is said about the subject."
    INCONCLUSIVE = "INCONCLUSIVE"
    "Could not look, or what was seen cannot be trusted."
    UNSUPPORTED = "UNSUPPORTED"
    "The subject or the machine says that it cannot do this."
    PASS = "PASS"
    "Everything was looked at, and everything holds."


EXIT_CODES = {
    Outcome.FAIL: 1,
    Outcome.HARNESS: 3,
    Outcome.INCONCLUSIVE: 2,
    Outcome.UNSUPPORTED: 0,
    Outcome.PASS: 0,
}
WORST_FIRST = (Outcome.FAIL, Outcome.HARNESS, Outcome.INCONCLUSIVE, Outcome.PASS)


def merge(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of them; UNSUPPORTED only if there is nothing else, INCONCLUSIVE of nothing."""
    seen = set(outcomes)
    for outcome in WORST_FIRST:
        if outcome in seen:
            return outcome
    return Outcome.UNSUPPORTED if seen else Outcome.INCONCLUSIVE


def exit_code(outcome: Outcome) -> int:
    """The exit code of a command that came to this outcome."""
    return EXIT_CODES[outcome]
