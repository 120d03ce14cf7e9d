"""Workers: forked processes whose reports, limits and deaths their parent handles."""

import os
import signal
import time

import pytest

from windtunnel.harness.fuzz.tools import worker
from windtunnel.harness.fuzz.tools.worker import Worker, limit_resources
from windtunnel.harness.orchestrate.lab import LabError

PATIENCE_S = 60.0


def ended(target):
    """Run a worker until it ends. Returns it."""
    made = Worker(target)
    deadline_s = time.monotonic() + PATIENCE_S
    try:
        while made.is_running:
            made.watch()
            time.sleep(0.005)
            assert time.monotonic() < deadline_s
    finally:
        made.end()
    return made


def test_a_worker_reports_files_and_violations():
    def target(reporter):
        for number in range(10):
            reporter.begin(number)
            if number == 7:
                reporter.violation(number, "a violation\nof two lines")
            reporter.end(2)

    made = ended(target)
    assert made.files == 20
    assert made.violations == [(7, "a violation\nof two lines")]
    assert made.died_at is None


def test_a_worker_that_dies_names_its_trial():
    def target(reporter):
        reporter.begin(5)
        os.kill(os.getpid(), signal.SIGKILL)

    made = ended(target)
    assert made.violations == [(5, "the process of the command ended: -9")]
    assert made.died_at == 5


def test_a_command_that_uses_too_much_time_is_ended(monkeypatch):
    monkeypatch.setattr(worker, "CPU_S_MAX", 0.2)

    def target(reporter):
        reporter.begin(3)
        while True:
            pass

    made = ended(target)
    assert made.died_at == 3
    assert "of processor time, and was ended" in made.violations[0][1]


def test_a_command_that_waits_for_ever_is_ended(monkeypatch):
    monkeypatch.setattr(worker, "CPU_S_MAX", 0.1)
    monkeypatch.setattr(worker, "HANG_S_MAX", 0.3)

    def target(reporter):
        reporter.begin(4)
        time.sleep(PATIENCE_S)

    made = ended(target)
    assert made.died_at == 4
    assert "did not end within" in made.violations[0][1]


def test_time_in_which_the_attack_was_stopped_is_no_waiting(monkeypatch):
    monkeypatch.setattr(worker, "CPU_S_MAX", 0.1)
    monkeypatch.setattr(worker, "HANG_S_MAX", 5.0)
    now_ns = time.monotonic_ns()
    monkeypatch.setattr(worker.time, "monotonic_ns", lambda: now_ns)
    monkeypatch.setattr(worker.process_facts, "run_delay_ns", lambda pid: 0)

    def target(reporter):
        reporter.begin(4)
        time.sleep(PATIENCE_S)

    made = Worker(target)
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while made._clock[0] != 4:
            assert time.monotonic() < deadline_s
        for _ in range(2):
            made.watch()
            now_ns += 600_000_000_000
        made.watch()
        assert made.is_running
        assert made.violations == []
        while made.is_running:
            now_ns += 1_000_000_000
            made.watch()
        assert made.violations == [(4, "the command did not end within 6 s")]
    finally:
        made.end()


def test_waiting_for_a_processor_is_excused(monkeypatch):
    monkeypatch.setattr(worker, "CPU_S_MAX", 0.0)
    monkeypatch.setattr(worker, "HANG_S_MAX", 5.0)
    now_ns = delay_ns = time.monotonic_ns()
    monkeypatch.setattr(worker.time, "monotonic_ns", lambda: now_ns)
    monkeypatch.setattr(worker.process_facts, "run_delay_ns", lambda pid: delay_ns)
    monkeypatch.setattr(worker.process_facts, "processor_ns", lambda pid: 0)

    def target(reporter):
        reporter.begin(4)
        time.sleep(PATIENCE_S)

    made = Worker(target)
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while made._clock[0] != 4:
            assert time.monotonic() < deadline_s
        for _ in range(20):
            made.watch()
            now_ns += 1_000_000_000
            delay_ns += 900_000_000
        assert made.violations == []
    finally:
        made.end()


def test_an_error_of_the_worker_itself_is_raised():
    def target(reporter):
        raise ValueError("a defect of the attack")

    with pytest.raises(LabError, match="a defect of the attack"):
        ended(target)


def test_memory_and_files_are_limited():
    def target(reporter):
        limit_resources()
        reporter.begin(1)
        try:
            bytearray(worker.ADDRESS_SPACE_MORE + (1 << 30))
        except MemoryError:
            reporter.violation(1, "no memory")
        reporter.end(1)

    assert ended(target).violations == [(1, "no memory")]
