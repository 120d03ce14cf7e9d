"""The error log of an archive."""

import numpy as np

from windtunnel.driver.archive.observation.archive_errors import WARNINGS_MAX, ArchiveErrors
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.cnc.error_log import read_errors


class Count:
    def __init__(self):
        self.value = 0

    def increment(self):
        self.value += 1
        return self.value - 1


def test_errors_are_logged_and_counted():
    log = np.zeros(1 << 16, np.uint8)
    errors = ArchiveErrors(log, ManualClock())
    errors.record("before there is a counter")
    errors.counter = Count()
    errors.warn("theirs")
    errors.warn("theirs")
    assert [(each.text, each.observation_count) for each in read_errors(log)] == [
        ("(-1) before there is a counter", 1), ("(1) WARN - theirs", 2),
    ]  # fmt: skip
    assert errors.counter.value == 2


def test_many_warnings_leave_space_for_errors():
    log = np.zeros(1 << 20, np.uint8)
    errors = ArchiveErrors(log, ManualClock())
    for number in range(100_000):
        errors.warn(f"number {number}")
    errors.warn("number 5")
    errors.record("ours")
    found = read_errors(log)
    assert len(found) == WARNINGS_MAX + 2
    assert found[-2].observation_count == 100_000 - WARNINGS_MAX
    assert found[5].observation_count == 2
    assert found[-1].text == "(-1) ours"
