"""The five outcomes, the rule that merges several into one, and their exit codes.

FAIL > HARNESS > INCONCLUSIVE > PASS     the worst wins; UNSUPPORTED only if all are
"""

from collections.abc import Iterable
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a gate, a check, a run or a suite."""

    FAIL = "FAIL"
    "The subject violated a requirement, and the evidence is sound."
    HARNESS = "HARNESS"
    "A defect of the harness: the run says nothing about the subject."
    INCONCLUSIVE = "INCONCLUSIVE"
    "Evidence is missing, or cannot be trusted."
    UNSUPPORTED = "UNSUPPORTED"
    "The subject or the machine reports that it does not support what the run needs."
    PASS = "PASS"
    "Every check ran and passed."


EXIT_CODES = {
    Outcome.FAIL: 1,
    Outcome.HARNESS: 3,
    Outcome.INCONCLUSIVE: 2,
    Outcome.UNSUPPORTED: 0,
    Outcome.PASS: 0,
}
WORST_FIRST = (Outcome.FAIL, Outcome.HARNESS, Outcome.INCONCLUSIVE, Outcome.PASS)


def merge(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst outcome. The result is UNSUPPORTED only if all outcomes are UNSUPPORTED, and
    INCONCLUSIVE if there are no outcomes.
    """
    seen = set(outcomes)
    for outcome in WORST_FIRST:
        if outcome in seen:
            return outcome
    return Outcome.UNSUPPORTED if seen else Outcome.INCONCLUSIVE


def exit_code(outcome: Outcome) -> int:
    """Return the exit code of a command that ends with this outcome."""
    return EXIT_CODES[outcome]
