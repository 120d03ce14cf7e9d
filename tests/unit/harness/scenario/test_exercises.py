"""Exercises are identified by name, and only simulations have them."""

from typing import get_args

import pytest

from windtunnel.harness.scenario.exercises import ABOUT, ExerciseName, exercise_problems
from windtunnel.harness.simulator.exercises.exercise import ROUTINES


def test_each_exercise_has_a_description_and_a_routine():
    names = set(get_args(ExerciseName))
    assert names == set(ABOUT) == set(ROUTINES)


def test_exercises_of_a_simulation_are_accepted():
    assert list(exercise_problems(("spies", "sessions"), ("sim",))) == []
    assert list(exercise_problems((), ("netns", "sim"))) == []


@pytest.mark.parametrize("fidelity", [("netns",), ("netns", "sim")])
def test_exercises_elsewhere_are_rejected(fidelity):
    (problem,) = exercise_problems(("spies",), fidelity)
    assert "expected `fidelity: [sim]`, found netns" in problem.text


def test_an_exercise_that_occurs_twice_is_rejected():
    (problem,) = exercise_problems(("spies", "sessions", "spies"), ("sim",))
    assert problem.path == ("exercises", 2)
