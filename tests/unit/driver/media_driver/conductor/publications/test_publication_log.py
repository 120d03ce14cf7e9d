"""Logs of local publications: start positions and overwritten metadata."""

import numpy as np
import pytest

from tests.unit.driver.media_driver.invoked_driver import (
    SECOND,
    TO_PEER,
    lab_with_long_timeouts,
)
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    PublicationReady,
    RemovePublication,
)
from windtunnel.driver.command.response import ErrorResponse
from windtunnel.driver.logbuffer import descriptor

IPC = "aeron:ipc?term-length=64k"
GARBAGE = b"\xff\x7f" * 24


@pytest.mark.parametrize("channel", [IPC, TO_PEER])
@pytest.mark.parametrize("kind", [AddPublication, AddExclusivePublication])
def test_a_client_that_overwrites_the_metadata_does_not_move_the_end_of_the_stream(
    driver, channel, kind
):
    registration_id, responses = driver.add(kind, channel)
    log = driver.open_log(responses[-1].log_file_name)
    at = log.meta_at + descriptor.CORRELATION_ID
    end = driver.publish(log, 3 * 1024)
    log.log[at : at + len(GARBAGE)] = np.frombuffer(GARBAGE, np.uint8)
    driver.run_for(3 * SECOND)
    (pub_pos,) = [
        item.value for item in driver.stream_counters() if item.label.startswith("pub-pos")
    ]
    assert pub_pos == end
    driver.request(RemovePublication(driver.client, driver.next_id(), registration_id))
    driver.run_for(2 * SECOND)
    assert descriptor.end_of_stream_position_acquire(log.log, log.meta_at) == end


@pytest.fixture
def driver(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        yield opened


@pytest.mark.parametrize("channel", [IPC, TO_PEER])
@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ((5, 65_536), (5, 65_536), True),
        ((6, 0), (6, 0), True),
        ((5, 32), (5, 64), False),
        # The same position, written differently: Aeron compares the parameters as written.
        ((5, 65_536), (6, 0), False),
        ((6, 0), (5, 65_536), False),
    ],
)
def test_a_publication_is_shared_only_with_requests_for_the_same_start_position(
    driver, channel, first, second, is_same
):
    responses = []
    for term_id, offset in (first, second):
        start = f"|init-term-id=0|term-id={term_id}|term-offset={offset}"
        responses += driver.add(AddPublication, channel + start)[1]
    kinds = [type(item) for item in responses]
    assert kinds == [PublicationReady, PublicationReady if is_same else ErrorResponse]
