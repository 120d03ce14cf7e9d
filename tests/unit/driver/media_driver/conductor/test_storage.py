"""Free space for a new log."""

import pytest

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.media_driver.conductor.storage import check_space
from windtunnel.driver.media_driver.context import Context


def faults_of(usable, length, **settings):
    noted = []
    check_space(
        Context(low_file_store_warning_threshold=1_000, **settings),
        length,
        lambda code, text: noted.append((code, text)),
        lambda _: usable,
    )
    return noted


def test_a_log_that_does_not_fit_is_refused():
    assert faults_of(5_000, 5_000) == []
    with pytest.raises(StorageError, match="length=5001 usable=5000"):
        faults_of(5_000, 5_001)


def test_little_room_is_noted_under_one_text():
    assert faults_of(1_001, 100) == []
    ((code, text),) = faults_of(1_000, 100)
    assert code == 12
    assert text.startswith("WARNING: space is running low: threshold=1000")
    assert faults_of(999, 100) == [(code, text)]


def test_nobody_is_asked_when_the_checks_are_off():
    assert faults_of(0, 5_000, perform_storage_checks=False) == []
