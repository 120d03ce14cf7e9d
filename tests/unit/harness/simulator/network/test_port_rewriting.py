"""A rewritten source port is recorded, and answers to it are rewritten back."""

import numpy as np

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.harness.scenario.schema.model import TRAFFIC_MAX
from windtunnel.harness.simulator.network.in_flight import DESTINATION, ENVELOPE_LENGTH
from windtunnel.harness.simulator.network.port_rewriting import (
    PAIRS_MAX,
    make_rewritten_ports,
    set_ports,
)

A, B = "10.0.0.1", "10.0.0.2"


def envelope(source, destination):
    made = np.zeros(ENVELOPE_LENGTH, dtype=np.uint8)
    for at, (address, port) in ((0, source), (DESTINATION, destination)):
        name = SocketAddress(address, port).encode()
        made[at : at + len(name)] = np.frombuffer(name, dtype=np.uint8)
    return made


def ports(made):
    return tuple(int(made[at]) << 8 | int(made[at + 1]) for at in (2, DESTINATION + 2))


def test_ports_are_rewritten_in_one_direction_and_restored_in_the_other():
    moved = make_rewritten_ports(2)
    out = envelope((A, 54_321), (B, 24_325))
    set_ports(moved, out, 0, 0, 40_001)
    assert ports(out) == (40_001, 24_325)
    answer = envelope((B, 24_325), (A, 40_001))
    set_ports(moved, answer, 0, 1, 0)
    assert ports(answer) == (24_325, 54_321)


def test_other_datagrams_are_unchanged():
    moved = make_rewritten_ports(2)
    set_ports(moved, envelope((A, 54_321), (B, 24_325)), 0, 0, 40_001)
    for link, source, destination in (
        (1, (B, 24_326), (A, 40_001)),  # another peer
        (1, (B, 24_325), (A, 54_321)),  # replies to the old port
        (0, (B, 24_325), (A, 40_001)),  # the other direction
    ):
        made = envelope(source, destination)
        set_ports(moved, made, 0, link, 0)
        assert ports(made) == (source[1], destination[1])


def test_replies_from_two_peers_with_the_same_new_port_are_distinguished():
    moved = make_rewritten_ports(2)
    for original, peer in ((50_001, 24_325), (50_002, 24_326)):
        set_ports(moved, envelope((A, original), (B, peer)), 0, 0, 40_001)
    for original, peer in ((50_001, 24_325), (50_002, 24_326)):
        answer = envelope((B, peer), (A, 40_001))
        set_ports(moved, answer, 0, 1, 0)
        assert ports(answer) == (peer, original)


def test_replies_to_each_stream_of_the_largest_scenario_are_rewritten():
    moved = make_rewritten_ports(2)
    for index in range(4 * TRAFFIC_MAX):
        set_ports(moved, envelope((A, 50_000 + index), (B, 1_000 + index)), 0, 0, 40_001)
    for index in range(4 * TRAFFIC_MAX):
        answer = envelope((B, 1_000 + index), (A, 40_001))
        set_ports(moved, answer, 0, 1, 0)
        assert ports(answer) == (1_000 + index, 50_000 + index)


def test_with_a_full_table_ports_are_rewritten_but_not_restored():
    moved = make_rewritten_ports(2)
    for index in range(PAIRS_MAX + 1):
        out = envelope((A, 50_000), (B, 1_000 + index))
        set_ports(moved, out, 0, 0, 40_001)
        assert ports(out)[0] == 40_001
    for index, expected in ((0, 50_000), (PAIRS_MAX, 40_001)):
        answer = envelope((B, 1_000 + index), (A, 40_001))
        set_ports(moved, answer, 0, 1, 0)
        assert ports(answer)[1] == expected


def test_ports_are_recorded_by_link():
    moved = make_rewritten_ports(4)
    set_ports(moved, envelope((A, 54_321), (B, 24_325)), 0, 2, 40_001)
    answer = envelope((B, 24_325), (A, 40_001))
    set_ports(moved, answer, 0, 1, 0)
    assert ports(answer) == (24_325, 40_001)
    set_ports(moved, answer, 0, 3, 0)
    assert ports(answer) == (24_325, 54_321)
