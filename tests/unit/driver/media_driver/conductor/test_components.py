"""A failed command leaves nothing behind, and registration ids in use are rejected."""

import pytest

from tests.unit.driver.media_driver.invoked_driver import CHANNEL, SECOND, STREAM, TO_PEER, lab
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.counter import AddCounter
from windtunnel.driver.command.publication import AddExclusivePublication, AddPublication
from windtunnel.driver.command.response import ErrorResponse
from windtunnel.driver.command.subscription import AddSubscription

IPC = "aeron:ipc?term-length=64k"
THINGS = [
    (AddPublication, TO_PEER),
    (AddExclusivePublication, TO_PEER),
    (AddPublication, IPC),
    (AddExclusivePublication, IPC),
    (AddSubscription, CHANNEL),
    (AddSubscription, "aeron:ipc"),
    (AddSubscription, "aeron-spy:" + TO_PEER),
]


@pytest.fixture
def driver(tmp_path):
    with lab(tmp_path / "aeron") as opened:
        yield opened


def command(kind, client_id, correlation_id, channel, stream=STREAM):
    return kind(client_id, correlation_id, stream, channel)


def counter(client_id, correlation_id):
    return AddCounter(client_id, correlation_id, 1001, b"key", "mine")


def expect_all_gone(driver):
    driver.run_for(30 * SECOND, SECOND)
    assert driver.active_counters() == []
    assert driver.logs() == []
    resources = driver.driver.conductor.components
    assert not resources.network.publications
    assert not resources.ipc.publications
    assert not resources.links.subscriptions
    assert not driver.links.mailboxes.is_open.any()


@pytest.mark.full(keep=32)
@pytest.mark.parametrize("second_client", [500, 501])
@pytest.mark.parametrize("second", [*THINGS, None])
@pytest.mark.parametrize("first", [*THINGS, None])
def test_a_registration_id_in_use_is_rejected(driver, first, second, second_client):
    held = counter(500, 900) if first is None else command(first[0], 500, 900, first[1])
    if second is None:
        again = counter(second_client, 900)
    else:
        again = command(second[0], second_client, 900, second[1], STREAM + 1)
    driver.request(held)
    before = [item.counter_id for item in driver.active_counters()]
    (response,) = driver.request(again)
    assert isinstance(response, ErrorResponse)
    assert (response.correlation_id, response.error_code) == (900, ErrorCode.GENERIC_ERROR)
    assert "900" in response.message
    assert [item.counter_id for item in driver.active_counters()] == before
    expect_all_gone(driver)


@pytest.mark.full(keep=14)
@pytest.mark.parametrize(("kind", "channel"), THINGS)
@pytest.mark.parametrize("left", range(8))
def test_a_command_that_lacks_counters_leaves_nothing_behind(driver, kind, channel, left):
    manager = driver.driver.conductor.components.user_counters._manager
    manager.capacity = len(list(driver.counters)) + left
    responses = driver.request(command(kind, 500, 900, channel))
    is_refused = any(isinstance(item, ErrorResponse) for item in responses)
    assert is_refused or left > 0
    expect_all_gone(driver)
