"""A compilation reports how many kernels it has stored, and the total if the cache was empty."""

import threading

import pytest

from windtunnel.harness.orchestrate.precompile import progress
from windtunnel.harness.orchestrate.precompile.progress import CompileProgress, reported

WAIT_S = 30.0


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Store a kernel with this number in the cache."""
    monkeypatch.setattr(progress, "POLL_S", 0.001)

    def store(number):
        folder = tmp_path / f"module-{number}"
        folder.mkdir()
        (folder / "kernel-0.image").write_bytes(b"")

    return store


def seen(cache, *numbers, store):
    """Return the reports of a compilation that stores kernels one by one."""
    reports, came = [], threading.Event()

    def on_progress(found):
        reports.append(found)
        came.set()

    with reported(cache, 4, on_progress):
        for number in numbers:
            assert came.wait(WAIT_S)
            came.clear()
            store(number)
        assert came.wait(WAIT_S)
    return reports


def test_each_kernel_is_reported_as_one_of_all(tmp_path, store):
    reports = seen(tmp_path, 1, 2, store=store)
    assert reports == [CompileProgress(done, 4) for done in (0, 1, 2)]
    assert [each.fraction for each in reports] == [0.0, 0.25, 0.5]
    assert [str(each) for each in reports] == [
        progress.START_MESSAGE,
        "kernels compiled: 1 of about 4, after 0 s",
        "kernels compiled: 2 of about 4, after 0 s",
    ]


def test_the_number_of_all_is_unknown_if_some_were_there(tmp_path, store):
    store(9)
    reports = seen(tmp_path, 1, store=store)
    assert reports == [CompileProgress(0, None), CompileProgress(1, None)]
    assert reports[-1].fraction is None
    assert str(reports[-1]) == "kernels compiled: 1, after 0 s"


def test_the_elapsed_time_is_reported_while_one_kernel_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "POLL_S", 0.001)
    monkeypatch.setattr(progress, "REPORT_S", 0.01)
    reports, came = [], threading.Semaphore(0)

    def on_progress(found):
        reports.append(found)
        came.release()

    with reported(tmp_path, 4, on_progress):
        for _ in range(3):
            assert came.acquire(timeout=WAIT_S)
    assert str(reports[0]) == progress.START_MESSAGE
    assert 0.01 <= reports[1].elapsed_s < reports[2].elapsed_s
    assert str(CompileProgress(0, 4, 70.0)) == "kernels compiled: 0 of about 4, after 70 s"


def test_more_kernels_than_expected_are_all_of_them():
    assert CompileProgress(5, 4).fraction == 1.0
