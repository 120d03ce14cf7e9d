"""The logs of local publications: where they start, and how they go."""

import pytest

from tests.unit.driver.media_driver.invoked_driver import MS, SECOND, TO_PEER, patient_lab
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    PublicationReady,
    RemovePublication,
)
from windtunnel.driver.command.response import ErrorResponse
from windtunnel.driver.media_driver.agent import system_counters

IPC = "aeron:ipc?term-length=64k"


@pytest.fixture
def driver(tmp_path):
    with patient_lab(tmp_path / "aeron") as opened:
        yield opened


@pytest.mark.parametrize("channel", [IPC, TO_PEER + "|linger=0"])
def test_a_log_that_cannot_be_removed_is_tried_again_and_ends_nothing(driver, channel):
    registration_id, _ = driver.add(AddExclusivePublication, channel)
    path = driver.driver.context.dir / "publications" / f"{registration_id}.logbuffer"
    mapped = driver.value(system_counters.BYTES_CURRENTLY_MAPPED)
    # As unlink() sees it, a directory is one of the many things that it may not remove.
    path.unlink()
    path.mkdir()
    driver.ask(RemovePublication(driver.client, driver.next_id(), registration_id))
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


@pytest.mark.parametrize("channel", [IPC, TO_PEER])
@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ((5, 65_536), (5, 65_536), True),
        ((6, 0), (6, 0), True),
        ((5, 32), (5, 64), False),
        # The same place, but not the same words: Aeron compares what was asked for.
        ((5, 65_536), (6, 0), False),
        ((6, 0), (5, 65_536), False),
    ],
)
def test_a_stream_is_shared_with_who_asks_for_the_same_start(
    driver, channel, first, second, is_same
):
    said = []
    for term_id, offset in (first, second):
        start = f"|init-term-id=0|term-id={term_id}|term-offset={offset}"
        said += driver.add(AddPublication, channel + start)[1]
    kinds = [type(item) for item in said]
    assert kinds == [PublicationReady, PublicationReady if is_same else ErrorResponse]
