"""Worker processes: each seed has one result, even if its trial ends the process."""

import os
import signal

import pytest

from windtunnel.harness.simulator.support import Unsupported
from windtunnel.harness.simulator.swarm.result import Result
from windtunnel.harness.simulator.swarm.workers import Workers, describe_death

SEGFAULT, KILLED, EXITED, UNSUPPORTED = 13, 15, 17, 99


def run(seeds):
    """Simulate a worker whose trials may end the process."""
    for seed in seeds:
        if seed in (SEGFAULT, KILLED):
            print(f"last words of {seed}", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV if seed == SEGFAULT else signal.SIGKILL)
        if seed == EXITED:
            os._exit(3)
        if seed == UNSUPPORTED:
            raise Unsupported("no library")
        yield Result(seed, "", "", (), "", 1, "")


def on_death(seed, text, is_native):
    return Result(seed, "", text if is_native else "", (), "", 0, "" if is_native else text)


def test_a_worker_that_dies_is_a_result_and_is_replaced(tmp_path):
    chunks = iter([list(range(10, 15)), list(range(15, 20)), [20]])
    found = list(Workers(2, run, on_death, tmp_path).results(chunks))
    assert sorted(each.seed for each in found) == list(range(10, 21))
    bad = {each.seed: each for each in found if each.violation or each.defect}
    assert set(bad) == {SEGFAULT, KILLED, EXITED}
    assert "died of SIGSEGV. last words of 13" in bad[SEGFAULT].violation
    assert "died of SIGKILL. last words of 15" in bad[KILLED].defect
    assert "exit code 3" in bad[EXITED].defect


@pytest.mark.full
def test_unsupported_ends_the_swarm(tmp_path):
    with pytest.raises(Unsupported, match="no library"):
        list(Workers(1, run, on_death, tmp_path).results(iter([[1], [UNSUPPORTED], [2]])))


@pytest.mark.parametrize("signaled", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"])
def test_a_crash_signal_is_blamed_on_a_program(signaled):
    assert describe_death(-signal.Signals[signaled].value)[1]


def test_a_kill_or_an_exit_code_is_not_blamed_on_a_program():
    assert not describe_death(-signal.SIGKILL)[1]
    assert not describe_death(1)[1]
