"""The five outcomes: their order, and their exit codes."""

import itertools

import pytest

from windtunnel.harness.verdict.core.outcome import EXIT_CODES, Outcome, exit_code, merge

ORDER = [Outcome.FAIL, Outcome.HARNESS, Outcome.INCONCLUSIVE, Outcome.PASS]


@pytest.mark.parametrize("pair", list(itertools.combinations(ORDER, 2)))
def test_the_worse_of_two_outcomes_wins_in_either_order(pair):
    assert merge(pair) is pair[0]
    assert merge(reversed(pair)) is pair[0]


def test_any_other_outcome_takes_precedence_over_unsupported():
    assert merge([Outcome.UNSUPPORTED, Outcome.PASS]) is Outcome.PASS
    assert merge([Outcome.UNSUPPORTED, Outcome.INCONCLUSIVE]) is Outcome.INCONCLUSIVE
    assert merge([Outcome.UNSUPPORTED, Outcome.UNSUPPORTED]) is Outcome.UNSUPPORTED


def test_no_outcome_is_not_a_pass():
    assert merge([]) is Outcome.INCONCLUSIVE


def test_exit_codes_are_those_of_the_documentation():
    assert [exit_code(outcome) for outcome in ORDER] == [1, 3, 2, 0]
    assert exit_code(Outcome.UNSUPPORTED) == 0
    assert set(EXIT_CODES) == set(Outcome)
