"""A routine receives the results of its waits, and fails if it waits too long."""

import pytest

from windtunnel.harness.simulator.exercises.waiting import WAIT_NS, Wait, Waiting, require
from windtunnel.harness.workload.stop import SubjectError


class Clock:
    now_ns = 0

    def __call__(self):
        return self.now_ns


def test_a_routine_receives_results_and_ends():
    got, ready = [], []

    def inner():
        got.append((yield Wait(lambda: ready[:1], "the first")))
        return "inner"

    def routine():
        got.append((yield from inner()))
        got.append((yield Wait(lambda: len(ready) > 1, "the second")))

    waiting = Waiting(routine(), Clock())
    waiting.step()
    assert got == []
    ready.append("a")
    waiting.step()
    assert got == [["a"], "inner"]
    ready.append("b")
    assert not waiting.is_over
    waiting.step()
    assert got == [["a"], "inner", True]
    assert waiting.is_over
    waiting.step()


def test_a_wait_has_a_limit_and_a_name():
    clock = Clock()

    def routine():
        yield Wait(lambda: True, "what is there")
        yield Wait(lambda: False, "a connection")

    waiting = Waiting(routine(), clock)
    waiting.step()
    clock.now_ns += WAIT_NS
    waiting.step()
    clock.now_ns += 1
    with pytest.raises(SubjectError, match="expected a connection within 15 s"):
        waiting.step()


def test_each_wait_has_the_whole_limit():
    clock = Clock()

    def routine():
        yield Wait(lambda: clock.now_ns >= WAIT_NS, "the first")
        yield Wait(lambda: clock.now_ns >= 2 * WAIT_NS, "the second")

    waiting = Waiting(routine(), clock)
    for _ in range(3):
        waiting.step()
        clock.now_ns += WAIT_NS
    assert waiting.is_over


def test_require_names_what_was_expected():
    require(1, "anything")
    with pytest.raises(SubjectError, match="expected two images"):
        require([], "two images")
