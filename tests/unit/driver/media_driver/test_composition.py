"""Settings that bound the work of one duty cycle."""

import pytest

from tests.unit.driver.media_driver.invoked_driver import (
    CHANNEL,
    PEER,
    TO_PEER,
    lab_with_long_timeouts,
)
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.command.publication import AddPublication
from windtunnel.driver.command.subscription import AddSubscription
from windtunnel.driver.media.channel_sockets import FIRST_EPHEMERAL_PORT
from windtunnel.driver.media_driver.agent import system_counters

SUBSCRIBED = SocketAddress("10.0.0.1", 20_121)
PUBLISHING = SocketAddress("10.0.0.1", FIRST_EPHEMERAL_PORT)
COUNT = 100


def taken_in_a_turn(driver, to):
    """Send more datagrams than any batch holds. Returns how many one turn takes."""
    for _ in range(COUNT):
        assert driver.send(to, b"no frame", PEER) > 0
    before = driver.value(system_counters.INVALID_PACKETS)
    driver.turn()
    return driver.value(system_counters.INVALID_PACKETS) - before


@pytest.mark.parametrize(("capacity", "expected"), [(None, 64), (1, 1), (4, 4), (16, 16)])
def test_the_receiver_takes_as_many_datagrams_per_turn_as_configured(tmp_path, capacity, expected):
    with lab_with_long_timeouts(tmp_path / "aeron", receiver_io_vector_capacity=capacity) as driver:
        driver.add(AddSubscription, CHANNEL)
        assert taken_in_a_turn(driver, SUBSCRIBED) == expected


@pytest.mark.parametrize(("capacity", "expected"), [(None, 16), (1, 1), (4, 4), (16, 16)])
def test_the_sender_takes_as_many_control_frames_per_turn_as_configured(
    tmp_path, capacity, expected
):
    with lab_with_long_timeouts(tmp_path / "aeron", sender_io_vector_capacity=capacity) as driver:
        driver.add(AddPublication, TO_PEER)
        assert taken_in_a_turn(driver, PUBLISHING) == expected
