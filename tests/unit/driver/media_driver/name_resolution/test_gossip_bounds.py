"""Bounds on what resolution datagrams of unknown hosts make a driver send, store and compute."""

import pytest

from tests.naive import resolution as naive
from tests.unit.driver.media_driver.name_resolution.test_driver_name_resolver import (
    STEP_MS,
    World,
    pair,
)
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media_driver.agent.system_counters import INVALID_PACKETS
from windtunnel.driver.media_driver.name_resolution import driver_name_resolver, neighbors
from windtunnel.driver.media_driver.name_resolution.driver_name_resolver import (
    CACHE_ENTRIES,
    ENTRIES_PER_TURN,
    NEIGHBORS,
    SENDS_PER_TURN,
)

SELF = 0x80


def own_entry(name, host, port=9):
    return naive.frame(naive.entry(name, host, port, 0, SELF))


def entries_of_others(first, count):
    return [
        naive.entry(b"name-%d" % index, f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}", 9)
        for index in range(first, first + count)
    ]


@pytest.fixture
def world():
    return World()


def test_only_the_source_of_a_datagram_becomes_a_neighbor(world):
    a = world.driver("A", "10.0.0.1", 8050)
    for entry in (
        naive.entry(b"announced", "10.0.0.5", 9),
        naive.entry(b"claimed", "10.0.0.5", 9, 0, SELF),
        naive.entry(b"port", "10.0.0.99", 9, 0, SELF),
    ):
        a.deliver(naive.frame(entry), "10.0.0.99", 8050)
    assert a.count(NEIGHBORS) == [0]
    assert a.count(CACHE_ENTRIES) == [3]
    a.deliver(own_entry(b"itself", "10.0.0.99", 8050), "10.0.0.99", 8050)
    assert a.count(NEIGHBORS) == [1]


def test_forty_full_datagrams_make_no_duty_cycle_send_more_than_its_share(world):
    a = world.driver("A", "10.0.0.1", 8050)
    for index in range(40):
        host = f"10.9.0.{index}"
        entries = [
            naive.entry(b"n%d" % index, host, 9, 0, SELF),
            *entries_of_others(index * 50, 50),
        ]
        a.deliver(naive.frame(*entries), host, 9)
    turns = []
    for _ in range(12_000 // STEP_MS):
        before = len(a.socket.sent)
        world.run(STEP_MS)
        turns.append(len(a.socket.sent) - before)
    assert max(turns) == SENDS_PER_TURN


def test_an_unknown_host_is_sent_at_most_three_times_the_bytes_that_it_sent(world):
    a = world.driver("A" * 40, "10.0.0.1", 8050)
    # Many names, so that a neighbor could be sent much.
    a.deliver(naive.frame(*entries_of_others(0, 500)), "10.0.0.2", 8050)
    world.run(1_500)
    a.socket.sent.clear()
    for content in (
        own_entry(b"x", "10.7.0.1"),
        naive.frame(*entries_of_others(2_000, 1)),
        naive.frame(naive.entry(b"x", "10.7.0.1", 9, 0, SELF), *entries_of_others(2_001, 57)),
    ):
        a.deliver(content, "10.7.0.1", 9)
        world.run(20_000)
        assert sum(len(datagram) for datagram, _ in a.socket.sent) <= 3 * len(content)
        a.socket.sent.clear()


def test_a_new_neighbor_is_sent_more_names_the_more_it_sends(world):
    hub = world.driver("H", "10.0.0.1", 8050)
    hub.deliver(naive.frame(*(naive.entry(b"n%d" % i, f"10.1.0.{i}", 9) for i in range(100))))
    new = world.driver("N", "10.0.0.2", 8051, [("10.0.0.1", 8050)])
    world.run(9_000)
    assert sum(new.resolve(f"n{i}") != f"n{i}" for i in range(100)) > 50


def test_neighbors_are_bounded(world, monkeypatch):
    monkeypatch.setattr(neighbors, "NEIGHBORS_MAX", 3)
    a = world.driver("A", "10.0.0.1", 8050)
    for index in range(9):
        a.deliver(own_entry(b"n%d" % index, f"10.0.1.{index}"), f"10.0.1.{index}", 9)
    assert a.count(NEIGHBORS) == [3]
    assert a.count(CACHE_ENTRIES) == [9]


def test_a_duty_cycle_reads_a_bounded_number_of_entries_and_the_next_one_the_rest(world):
    a = world.driver("A", "10.0.0.1", 8050)
    count = 3 * ENTRIES_PER_TURN // 50
    for index in range(count):
        datagram = naive.frame(*entries_of_others(index * 50, 50))
        a.socket.waiting.append((datagram, SocketAddress("10.0.0.9", 1)))
    world.run(STEP_MS)
    assert a.count(CACHE_ENTRIES)[0] <= ENTRIES_PER_TURN + 50
    world.run(3 * STEP_MS)
    assert a.count(CACHE_ENTRIES) == [50 * count]


def test_entries_beyond_the_longest_honest_datagram_are_ignored(world):
    a = world.driver("A", "10.0.0.1", 8050)
    most = driver_name_resolver.ENTRIES_PER_DATAGRAM_MAX
    a.deliver(naive.frame(*entries_of_others(0, most)))
    assert a.file.get(INVALID_PACKETS) == 0
    a.deliver(naive.frame(*entries_of_others(most, most + 1)))
    assert a.count(CACHE_ENTRIES) == [2 * most]
    assert a.file.get(INVALID_PACKETS) == 1


def test_an_address_is_probed_once_an_interval(world):
    a, _ = pair(world)
    for _ in range(30):
        a.deliver(naive.frame(naive.entry(b"announced", "10.0.0.5", 9)))
    world.run(500)
    assert sum(to.host == "10.0.0.5" for _, to in a.socket.sent) == 1
