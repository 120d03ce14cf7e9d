"""The announcements queued for other drivers, and bounds on those that forged entries cause."""

import pytest

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media_driver.name_resolution.announcements import (
    PROBES_MAX,
    Announcements,
)
from windtunnel.driver.media_driver.name_resolution.name_cache import CacheEntry
from windtunnel.driver.media_driver.name_resolution.neighbors import (
    CREDIT_MAX,
    CREDIT_RATIO,
    Neighbors,
)

OWN = bytes(40)
MTU = 256


def address(index):
    return SocketAddress(f"10.0.{index >> 8}.{index & 255}", 9)


@pytest.fixture
def neighbors():
    return Neighbors(10_000)


@pytest.fixture
def announcements(neighbors):
    return Announcements(OWN, MTU, neighbors)


def taken(announcements, count=10_000):
    return [to for _, to in announcements.take(count)]


def test_the_addresses_probed_per_interval_are_bounded(announcements):
    named = [address(index) for index in range(2 * PROBES_MAX)]
    for first in range(0, len(named), 32):
        announcements.probe(named[first : first + 32], 32 * len(OWN))
    assert taken(announcements) == named[:PROBES_MAX]
    announcements.start_self([])
    announcements.probe(named[-1:], len(OWN))
    assert taken(announcements) == named[-1:]


def test_a_round_of_names_ends_before_the_next_one_starts(announcements, neighbors):
    for index in range(3):
        neighbors.on_announcement(address(index), 0)
        neighbors.on_received(address(index), CREDIT_MAX)
    names = [CacheEntry("name", address(9), 0)]
    announcements.start_names(names, [], 1)
    sent = taken(announcements, 2)
    announcements.start_names(names, [], 2)
    sent += taken(announcements)
    assert sent == [address(0), address(1), address(2)]
    announcements.start_names(names, [], 3)
    assert taken(announcements) == sent


def test_the_credit_of_a_neighbor_is_bounded(neighbors):
    neighbors.on_announcement(address(0), 0)
    (neighbor,) = neighbors
    neighbors.on_received(address(0), 100)
    assert neighbor.credit_bytes == CREDIT_RATIO * 100
    for _ in range(CREDIT_MAX // 1_000):
        neighbors.on_received(address(0), 1_000)
    assert neighbor.credit_bytes == CREDIT_MAX
