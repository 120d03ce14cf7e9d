"""Only time for which a process itself makes others wait counts."""

from types import SimpleNamespace

import pytest

from windtunnel.harness.fuzz import waiting
from windtunnel.harness.fuzz.archive import archive_attack
from windtunnel.harness.fuzz.archive.archive_attack import ArchiveAttack
from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.fuzz.waiting import Waiting

SECOND = 1_000_000_000


@pytest.fixture
def machine(monkeypatch):
    """The current time, and the time for which a process has waited for a processor."""
    made = SimpleNamespace(now_ns=7 * SECOND, delay_ns=3 * SECOND)
    monkeypatch.setattr(waiting.time, "monotonic_ns", lambda: made.now_ns)
    monkeypatch.setattr(waiting.process_facts, "run_delay_ns", lambda pid: made.delay_ns)
    return made


def test_time_counts(machine):
    measured = Waiting(1)
    for _ in range(5):
        machine.now_ns += SECOND // 2
        measured.seconds()
    assert measured.seconds() == 2.5


def test_waiting_for_a_processor_does_not_count(machine):
    measured = Waiting(1)
    for _ in range(10):
        machine.now_ns += SECOND // 2
        machine.delay_ns += SECOND // 4
        measured.seconds()
    assert measured.seconds() == 2.5


def test_time_without_a_look_does_not_count(machine):
    measured = Waiting(1)
    machine.now_ns += 600 * SECOND
    assert measured.seconds() == 1


@pytest.mark.parametrize(("delay_share", "is_late"), [(1.0, False), (0.0, True)])
def test_an_archive_that_the_machine_delays_is_not_late(
    machine, monkeypatch, tmp_path, delay_share, is_late
):
    looks = 0

    def is_ready():
        nonlocal looks
        looks += 1
        machine.now_ns += SECOND
        machine.delay_ns += int(SECOND * delay_share)
        return looks > 90

    process = SimpleNamespace(
        launch=lambda: SimpleNamespace(pid=1), is_ready=is_ready, wait=lambda timeout_s: None,
        directory=tmp_path,
    )  # fmt: skip
    monkeypatch.setattr(archive_attack.time, "sleep", lambda seconds: None)
    attack = ArchiveAttack(tmp_path, 1)
    if is_late:
        with pytest.raises(Violation, match="not ready within 60 s"):
            attack._start(process)
    else:
        attack._start(process)
