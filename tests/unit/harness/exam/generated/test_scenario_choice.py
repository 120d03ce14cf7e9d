"""A generated mutant runs in the scenarios that execute what it changes."""

import pytest

from windtunnel.harness.exam.generated.scenario_choice import (
    CANDIDATES,
    COVERAGE,
    GROUPS,
    REMAINS,
    SCENARIOS_MAX,
    USUAL,
    executing,
)
from windtunnel.harness.installation import ROOT
from windtunnel.harness.scenario.loader import load_scenario


def test_the_usual_ones_come_first_and_the_others_by_executions():
    executions = {"many/one": {7: 3}, "many/two": {7: 9, 8: 1}, USUAL[1]: {7: 1}, USUAL[0]: {8: 2}}
    assert executing(7, executions) == (USUAL[1], "many/two", "many/one")
    assert executing(8, executions) == (USUAL[0], "many/two")
    assert executing(9, executions) == ()


def test_their_number_has_a_limit():
    executions = {name: {1: 1 + at} for at, name in enumerate(CANDIDATES)}
    chosen = executing(1, executions)
    assert len(chosen) == SCENARIOS_MAX
    others = [each for each in reversed(COVERAGE) if each != REMAINS]
    assert chosen == (*USUAL[:3], GROUPS[-1], "recovery/group", REMAINS, *others)


def test_one_of_them_has_several_receivers():
    executions = {name: {7: 100} for name in ("exam/bursts", "exam/tight", "exam/forged")}
    executions |= {name: {7: 1 + at} for at, name in enumerate(GROUPS)}
    assert executing(7, executions)[:2] == (GROUPS[-1], "exam/bursts")


def test_scenarios_of_coverage_have_places_of_their_own():
    counts = dict(zip(COVERAGE, (5, 1, 3, 2, 0, 4), strict=True))
    executions = {f"many/{at}": {7: 9} for at in range(SCENARIOS_MAX)}
    executions |= {name: {7: count} for name, count in counts.items()}
    chosen = executing(7, executions)
    assert len(chosen) == SCENARIOS_MAX
    last = (REMAINS, COVERAGE[0], COVERAGE[5], COVERAGE[2], COVERAGE[3])
    assert chosen[-len(last) :] == last


@pytest.mark.parametrize("name", CANDIDATES)
def test_a_candidate_can_be_simulated(name):
    assert "sim" in load_scenario(ROOT / f"scenarios/{name}.yaml").fidelity


def test_no_candidate_is_named_twice():
    assert len(set(CANDIDATES)) == len(CANDIDATES)
