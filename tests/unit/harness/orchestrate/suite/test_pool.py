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
        self.made: dict[int, tuple[str, str]] = {}
        self.pids: set[int] = set()
        self.begun: list[int] = []
        self.on_begin = lambda event: None

    def on_event(self, event) -> None:
        self.pids.add(event.seed)
        self.begun.append(event.run_index)
        self.on_begin(event)

    def on_made(self, index: int, made) -> None:
        assert index not in self.made
        self.made[index] = (made.outcome, made.reason)

    def none_lives(self) -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in self.pids)


@pytest.fixture
def told(monkeypatch) -> Told:
    monkeypatch.setattr(pool, "WORKER", "tests.stand_ins.pool_worker")
    return Told()


def make(told: Told, orders: list[str], jobs: int) -> None:
    with Cancellation() as cancellation:
        pool.make_runs(
            orders,
            jobs=jobs,
            on_event=told.on_event,
            on_made=told.on_made,
            cancellation=cancellation,
        )


def test_every_order_is_made_once_by_no_more_workers_than_asked_for(told):
    make(told, ["pass"] * 7, jobs=3)
    assert told.made == dict.fromkeys(range(7), ("PASS", "pass"))
    assert 1 <= len(told.pids) <= 3
    assert told.none_lives()


def test_a_worker_that_dies_costs_its_run_alone(told):
    make(told, ["pass", "die", "pass", "die", "pass"], jobs=2)
    outcomes = {index: outcome for index, (outcome, _) in told.made.items()}
    assert outcomes == {0: "PASS", 1: "HARNESS", 2: "PASS", 3: "HARNESS", 4: "PASS"}
    assert told.made[1][1].endswith(f"ended with exit code {-signal.SIGABRT}")
    assert told.none_lives()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_runs_under_way_and_starts_no_other(told, number):
    told.on_begin = lambda event: os.kill(os.getpid(), number) if len(told.begun) == 2 else None
    with pytest.raises(Cancelled) as caught:
        make(told, ["wait"] * 5, jobs=2)
    assert caught.value.signal_number == number
    assert told.made == {0: ("CANCELLED", "told to end"), 1: ("CANCELLED", "told to end")}
    assert told.none_lives()


def test_a_defect_of_the_caller_leaves_no_worker_behind(told):
    def break_down(event) -> None:
        told.on_begin = lambda event: None
        raise RuntimeError("no")

    told.on_begin = break_down
    with pytest.raises(RuntimeError, match="no"):
        make(told, ["wait"] * 3, jobs=2)
    assert told.none_lives()


def test_a_caller_who_breaks_down_again_leaves_no_worker_behind_either(told):
    def break_down(*_) -> None:
        raise RuntimeError("no")

    told.on_begin = told.on_made = break_down
    with pytest.raises(RuntimeError, match="no"):
        make(told, ["wait"] * 3, jobs=2)
    assert told.none_lives()


def test_by_default_two_processors_carry_one_run(monkeypatch):
    for count, jobs in ((1, 1), (2, 1), (3, 1), (8, 4)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, count=count: set(range(count)))
        assert pool.jobs_by_default() == jobs
