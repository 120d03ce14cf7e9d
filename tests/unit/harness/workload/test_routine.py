"""A routine runs to its end in a process, and waits as long as it says."""

import pytest

from tests.unit.harness.workload.routines import finish
from windtunnel.driver.base.clock import ManualClock
from windtunnel.harness.workload import routine
from windtunnel.harness.workload.routine import MOMENT_NS, Surroundings, connected
from windtunnel.harness.workload.stop import Stop, Stopped


@pytest.fixture
def sleeps(monkeypatch):
    found = []
    monkeypatch.setattr(routine.time, "sleep", found.append)
    return found


def waiting(*waits, released=None):
    try:
        yield from waits
    finally:
        if released is not None:
            released.append(True)
    return len(waits)


def test_a_process_sleeps_while_a_routine_waits(sleeps):
    steps = []
    assert routine.run(waiting(20_000_000, None, 0), Stop(), lambda: steps.append(1)) == 3
    assert sleeps == [0.02, MOMENT_NS / 1e9, 0]
    assert len(steps) == 3


@pytest.mark.usefixtures("sleeps")
def test_a_signal_ends_a_routine_which_releases_what_it_uses():
    stop, released = Stop(), []
    stop.request(15)
    with pytest.raises(Stopped):
        routine.run(waiting(1, 2, released=released), stop)
    assert released


@pytest.mark.usefixtures("sleeps")
def test_an_error_of_a_routine_is_raised():
    def failing():
        yield 1
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        routine.run(failing(), Stop())


def test_a_routine_waits_until_a_driver_is_running():
    clients = [None, None, "a client"]
    surroundings = Surroundings(lambda: clients.pop(0), ManualClock(), lambda: 0, lambda: None)
    assert finish(connected(surroundings)) == "a client"
