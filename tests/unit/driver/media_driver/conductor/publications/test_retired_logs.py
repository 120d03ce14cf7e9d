"""Logs that the driver no longer uses are deleted in small portions, and deletions are retried."""

from itertools import pairwise

import pytest

from tests.unit.driver.media_driver.invoked_driver import (
    MS,
    SECOND,
    TO_PEER,
    lab_with_long_timeouts,
)
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    RemovePublication,
)
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor.publications import retired_logs

IPC = "aeron:ipc?term-length=64k"


@pytest.fixture
def driver(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        yield opened


def files_after_each_turn(driver, count):
    """Remove IPC publications at once. Returns how many logs are left after each turn."""
    added = [driver.add(AddExclusivePublication, IPC)[0] for _ in range(count)]
    for registration_id in added:
        driver.request(RemovePublication(driver.client, driver.next_id(), registration_id))
    left = [len(driver.logs())]
    while left[-1] > 0 and len(left) < 200:
        driver.turn(1, 50 * MS)
        left.append(len(driver.logs()))
    return left


def delete_in(duration_ns, monkeypatch):
    """Let the deletion of each log take this time."""

    def slow(resources, log):
        resources.clock.advance(duration_ns)
        delete_log(resources, log)

    delete_log = retired_logs.delete_log
    monkeypatch.setattr(retired_logs, "delete_log", slow)


@pytest.mark.parametrize(("limit", "expected"), [(None, [5]), (1, [1] * 5), (2, [2, 2, 1])])
def test_no_more_logs_are_freed_in_a_duty_cycle_than_the_limit(tmp_path, limit, expected):
    with lab_with_long_timeouts(tmp_path / "aeron", resource_free_limit=limit) as driver:
        mapped = driver.value(system_counters.BYTES_CURRENTLY_MAPPED)
        left = files_after_each_turn(driver, 5)
        assert [before - after for before, after in pairwise(left) if before != after] == expected
        assert driver.value(system_counters.BYTES_CURRENTLY_MAPPED) == mapped


@pytest.mark.parametrize(("log_ns", "expected"), [(0, [5]), (MS // 2, [2, 2, 1]), (MS, [1] * 5)])
def test_no_log_is_freed_in_a_duty_cycle_after_a_millisecond(
    tmp_path, monkeypatch, log_ns, expected
):
    with lab_with_long_timeouts(tmp_path / "aeron") as driver:
        delete_in(log_ns, monkeypatch)
        left = files_after_each_turn(driver, 5)
        assert [before - after for before, after in pairwise(left) if before != after] == expected


@pytest.mark.parametrize(("log_ms", "turns"), [(0, 1), (15, 2), (100, 8)])
def test_the_next_logs_are_freed_after_four_times_the_time_of_the_last_ones(
    tmp_path, monkeypatch, log_ms, turns
):
    with lab_with_long_timeouts(tmp_path / "aeron", resource_free_limit=1) as driver:
        delete_in(log_ms * MS, monkeypatch)
        left = files_after_each_turn(driver, 5)
    freed = [turn for turn, (before, after) in enumerate(pairwise(left)) if before != after]
    assert [after - before for before, after in pairwise(freed)] == [turns] * 4


def test_a_driver_that_closes_frees_the_remaining_logs(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron", resource_free_limit=1) as driver:
        added = [driver.add(AddExclusivePublication, IPC)[0] for _ in range(5)]
        for registration_id in added:
            driver.request(RemovePublication(driver.client, driver.next_id(), registration_id))
        while len(driver.logs()) == 5:
            driver.turn(1, 50 * MS)
        assert len(driver.logs()) == 4
    assert driver.logs() == []


@pytest.mark.parametrize("channel", [IPC, TO_PEER + "|linger=0"])
def test_the_removal_of_a_log_is_retried_and_does_not_end_the_driver(driver, channel):
    registration_id, _ = driver.add(AddExclusivePublication, channel)
    path = driver.driver.context.dir / "publications" / f"{registration_id}.logbuffer"
    mapped = driver.value(system_counters.BYTES_CURRENTLY_MAPPED)
    # A directory in place of the log makes unlink() fail.
    path.unlink()
    path.mkdir()
    driver.request(RemovePublication(driver.client, driver.next_id(), registration_id))
    driver.run_for(4 * SECOND)
    tries = driver.value(system_counters.FREE_FAILS)
    assert tries >= 2
    assert driver.value(system_counters.BYTES_CURRENTLY_MAPPED) < mapped
    (entry,) = read_errors(driver.cnc.error_log)
    assert str(path) in entry.text
    assert entry.observation_count == 1
    path.rmdir()
    path.touch()
    driver.run_for(2 * SECOND, 10 * MS)
    assert not path.exists()
    assert driver.value(system_counters.FREE_FAILS) <= tries + 1
    tries = driver.value(system_counters.FREE_FAILS)
    driver.run_for(2 * SECOND)
    assert driver.value(system_counters.FREE_FAILS) == tries
