"""Parallel runs: each one is reported, none is lost, and every worker has ended at the end."""

import os
import signal
from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled
from windtunnel.harness.orchestrate.suite import pool


class Reports:
    """The events and results that the pool has reported, and the ids of its workers."""

    def __init__(self) -> None:
        self.results: dict[int, tuple[str, str]] = {}
        self.pids: set[int] = set()
        self.started_runs: list[int] = []
        self.on_begin = lambda event: None

    def on_event(self, event) -> None:
        self.pids.add(event.seed)
        self.started_runs.append(event.run_index)
        self.on_begin(event)

    def on_result(self, index: int, result) -> None:
        assert index not in self.results
        self.results[index] = (result.outcome, result.reason)

    def all_have_ended(self) -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in self.pids)


@pytest.fixture
def reports(monkeypatch) -> Reports:
    monkeypatch.setattr(pool, "WORKER", "tests.stand_ins.pool_worker")
    return Reports()


def make(reports: Reports, specs: list[str], jobs: int) -> None:
    with Cancellation() as cancellation:
        pool.execute_runs(
            specs,
            jobs=jobs,
            on_event=reports.on_event,
            on_result=reports.on_result,
            cancellation=cancellation,
        )


@pytest.mark.full
def test_every_run_is_executed_once_by_no_more_workers_than_requested(reports):
    make(reports, ["pass"] * 7, jobs=3)
    assert reports.results == dict.fromkeys(range(7), ("PASS", "pass"))
    assert 1 <= len(reports.pids) <= 3
    assert reports.all_have_ended()


def test_a_worker_that_dies_affects_only_its_run(reports):
    make(reports, ["pass", "die", "pass", "die", "pass"], jobs=2)
    outcomes = {index: outcome for index, (outcome, _) in reports.results.items()}
    assert outcomes == {0: "PASS", 1: "HARNESS", 2: "PASS", 3: "HARNESS", 4: "PASS"}
    assert reports.results[1][1].endswith(f"ended with exit code {-signal.SIGABRT}")
    assert reports.all_have_ended()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_current_runs_and_starts_no_other(reports, number):
    reports.on_begin = lambda event: (
        os.kill(os.getpid(), number) if len(reports.started_runs) == 2 else None
    )
    with pytest.raises(Cancelled) as caught:
        make(reports, ["wait"] * 5, jobs=2)
    assert caught.value.signal_number == number
    assert reports.results == {0: ("CANCELLED", "told to end"), 1: ("CANCELLED", "told to end")}
    assert reports.all_have_ended()


@pytest.mark.full
def test_an_exception_of_the_caller_leaves_no_worker(reports):
    def fail(event) -> None:
        reports.on_begin = lambda event: None
        raise RuntimeError("no")

    reports.on_begin = fail
    with pytest.raises(RuntimeError, match="no"):
        make(reports, ["wait"] * 3, jobs=2)
    assert reports.all_have_ended()


@pytest.mark.full
def test_a_second_exception_of_the_caller_leaves_no_worker_either(reports):
    def fail(*_) -> None:
        raise RuntimeError("no")

    reports.on_begin = reports.on_result = fail
    with pytest.raises(RuntimeError, match="no"):
        make(reports, ["wait"] * 3, jobs=2)
    assert reports.all_have_ended()


def test_by_default_there_is_one_run_for_two_processors(monkeypatch):
    for count, jobs in ((1, 1), (2, 1), (3, 1), (8, 4)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, count=count: set(range(count)))
        assert pool.default_jobs() == jobs
