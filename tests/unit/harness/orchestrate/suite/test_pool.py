"""Several runs at once: each is told of, none is lost, and every worker is gone at the end."""

import os
import signal
from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.suite import pool


class Told:
    """What the pool told, and which processes told it."""

    def __init__(self) -> None:
        self.result: dict[int, tuple[str, str]] = {}
        self.pids: set[int] = set()
        self.begun: list[int] = []
        self.on_begin = lambda event: None

    def on_event(self, event) -> None:
        self.pids.add(event.seed)
        self.begun.append(event.run_index)
        self.on_begin(event)

    def on_result(self, index: int, result) -> None:
        assert index not in self.result
        self.result[index] = (result.outcome, result.reason)

    def none_lives(self) -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in self.pids)


@pytest.fixture
def reported(monkeypatch) -> Told:
    monkeypatch.setattr(pool, "WORKER", "tests.stand_ins.pool_worker")
    return Told()


def make(reported: Told, specs: list[str], jobs: int) -> None:
    with Cancellation() as cancellation:
        pool.execute_runs(
            specs,
            jobs=jobs,
            on_event=reported.on_event,
            on_result=reported.on_result,
            cancellation=cancellation,
        )


@pytest.mark.full
def test_every_order_is_created_once_by_no_more_workers_than_asked_for(reported):
    make(reported, ["pass"] * 7, jobs=3)
    assert reported.result == dict.fromkeys(range(7), ("PASS", "pass"))
    assert 1 <= len(reported.pids) <= 3
    assert reported.none_lives()


def test_a_worker_that_dies_costs_its_run_alone(reported):
    make(reported, ["pass", "die", "pass", "die", "pass"], jobs=2)
    outcomes = {index: outcome for index, (outcome, _) in reported.result.items()}
    assert outcomes == {0: "PASS", 1: "HARNESS", 2: "PASS", 3: "HARNESS", 4: "PASS"}
    assert reported.result[1][1].endswith(f"ended with exit code {-signal.SIGABRT}")
    assert reported.none_lives()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_runs_under_way_and_starts_no_other(reported, number):
    reported.on_begin = lambda event: (
        os.kill(os.getpid(), number) if len(reported.begun) == 2 else None
    )
    with pytest.raises(Cancelled) as caught:
        make(reported, ["wait"] * 5, jobs=2)
    assert caught.value.signal_number == number
    assert reported.result == {0: ("CANCELLED", "told to end"), 1: ("CANCELLED", "told to end")}
    assert reported.none_lives()


@pytest.mark.full
def test_a_defect_of_the_caller_leaves_no_worker_behind(reported):
    def break_down(event) -> None:
        reported.on_begin = lambda event: None
        raise RuntimeError("no")

    reported.on_begin = break_down
    with pytest.raises(RuntimeError, match="no"):
        make(reported, ["wait"] * 3, jobs=2)
    assert reported.none_lives()


@pytest.mark.full
def test_a_caller_who_breaks_down_again_leaves_no_worker_behind_either(reported):
    def break_down(*_) -> None:
        raise RuntimeError("no")

    reported.on_begin = reported.on_result = break_down
    with pytest.raises(RuntimeError, match="no"):
        make(reported, ["wait"] * 3, jobs=2)
    assert reported.none_lives()


def test_by_default_two_processors_carry_one_run(monkeypatch):
    for count, jobs in ((1, 1), (2, 1), (3, 1), (8, 4)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, count=count: set(range(count)))
        assert pool.default_jobs() == jobs
