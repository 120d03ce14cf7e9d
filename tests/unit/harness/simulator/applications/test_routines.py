"""Routines are run when their time has come, in virtual time."""

import pytest

from windtunnel.harness.simulator.applications.routines import SteppedRoutine
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.world.virtual_time import AT_ONCE
from windtunnel.harness.workload.routine import MOMENT_NS


class Time:
    now_ns = 1_000

    def __call__(self):
        return self.now_ns


@pytest.fixture
def time():
    return Time()


def test_a_routine_is_not_run_before_its_time(time):
    steps = []

    def routine():
        for wait_ns in (500, None, 0):
            steps.append(time.now_ns)
            yield wait_ns
        steps.append(time.now_ns)

    stepped = SteppedRoutine(routine(), time)
    assert stepped.step() == 1_500
    time.now_ns = 1_499
    assert stepped.step() == 1_500
    time.now_ns = 1_600
    assert stepped.step() == 1_600 + MOMENT_NS
    time.now_ns += MOMENT_NS
    assert stepped.step() == time.now_ns
    assert not stepped.is_done
    assert (stepped.step(), stepped.is_done) == (AT_ONCE, True)
    assert stepped.step() == NEVER
    assert steps == [1_000, 1_600, 1_600 + MOMENT_NS, 1_600 + MOMENT_NS]


def test_an_error_of_a_routine_is_raised(time):
    def routine():
        yield 1
        raise ValueError("no")

    stepped = SteppedRoutine(routine(), time)
    stepped.step()
    time.now_ns += 1
    with pytest.raises(ValueError, match="no"):
        stepped.step()
