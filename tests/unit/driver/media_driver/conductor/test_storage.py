"""Free space for a new log."""

import pytest

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.media_driver.conductor.storage import check_space, unreserved_bytes
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


def test_low_space_is_logged_with_one_text():
    assert faults_of(1_001, 100) == []
    ((code, text),) = faults_of(1_000, 100)
    assert code == 12
    assert text.startswith("WARNING: space is running low: threshold=1000")
    assert faults_of(999, 100) == [(code, text)]


def test_free_space_is_not_checked_if_the_check_is_disabled():
    assert faults_of(0, 5_000, perform_storage_checks=False) == []


def sparse_file(path, length, written):
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(length)
        file.write(b"x" * written)


def test_space_that_existing_sparse_logs_may_need_is_not_usable(tmp_path):
    (tmp_path / "publications").mkdir()
    sparse_file(tmp_path / "images" / "1.logbuffer", 1 << 20, 0)
    assert unreserved_bytes(tmp_path, 3 << 20, 1 << 20, 3 << 20) == 2 << 20
    sparse_file(tmp_path / "publications" / "2.logbuffer", 1 << 20, 1 << 19)
    remaining = unreserved_bytes(tmp_path, 3 << 20, 2 << 20, 3 << 20)
    assert abs(remaining - ((1 << 20) + (1 << 19))) <= 1 << 13


def test_files_are_not_examined_if_all_of_them_fit(tmp_path):
    assert unreserved_bytes(tmp_path / "absent", 4 << 20, 1 << 20, 3 << 20) == 3 << 20
