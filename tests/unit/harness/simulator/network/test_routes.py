"""A datagram takes the links over which the relay would send its packet."""

import numpy as np
import pytest

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.harness.scenario.resolved.case import Case, HostCase
from windtunnel.harness.scenario.resolved.link_case import LinkCase
from windtunnel.harness.simulator.network.routes import (
    NOWHERE,
    first_way,
    is_group,
    is_own,
    make_routes,
    ways,
)

ADDRESSES = {"pub": "10.0.0.1", "sub1": "10.0.0.2", "sub2": "10.0.0.3", "far": "10.0.0.4"}
LINKS = (("pub", "sub1"), ("pub", "sub2"), ("far", "sub2"))
AT = 5


def star():
    case = Case.model_construct(
        hosts=tuple(HostCase(name=name, address=each) for name, each in ADDRESSES.items()),
        links=tuple(LinkCase(between=each) for each in LINKS),
    )
    return case, make_routes(case)


def name(address):
    made = np.zeros(AT + 28, dtype=np.uint8)
    encoded = SocketAddress(address, 24_325).encode()
    made[AT : AT + len(encoded)] = np.frombuffer(encoded, dtype=np.uint8)
    return made


def test_each_link_leads_from_its_sender_to_its_receiver():
    case, routes = star()
    hosts = list(ADDRESSES)
    for sender in hosts:
        for receiver in hosts:
            found = ways(routes, hosts.index(sender), name(ADDRESSES[receiver]), AT)
            code = case.link_between(sender, receiver)
            expected = NOWHERE if sender == receiver else 1 << code if code >= 0 else 0
            assert found == expected, (sender, receiver)


def test_a_group_is_reached_over_each_link_of_the_sender():
    case, routes = star()
    for index, sender in enumerate(ADDRESSES):
        found = ways(routes, index, name("224.20.30.39"), AT)
        codes = [code for code, (near, _) in enumerate(case.directions) if near == sender]
        assert found == sum(1 << code for code in codes)


@pytest.mark.parametrize("address", ["10.0.0.9", "240.0.0.1", "223.255.255.255"])
def test_an_unknown_address_has_no_route(address):
    _, routes = star()
    assert not is_group(name(address), AT)
    assert ways(routes, 0, name(address), AT) == NOWHERE


@pytest.mark.parametrize(
    ("address", "is_its_own"),
    [("10.0.0.1", True), ("127.0.0.1", True), ("10.0.0.2", False), ("224.0.0.1", False)],
)
def test_a_host_has_its_address_and_loopback(address, is_its_own):
    _, routes = star()
    assert is_own(routes, 0, name(address), AT) == is_its_own


def test_two_hosts_have_one_link():
    case = Case.model_construct(
        hosts=(HostCase(name="a", address="10.0.0.1"), HostCase(name="b", address="10.0.0.2")),
        links=(),
    )
    routes = make_routes(case)
    assert ways(routes, 0, name("10.0.0.2"), AT) == 1
    assert ways(routes, 1, name("10.0.0.1"), AT) == 2
    assert routes.targets.tolist() == [1, 0]


def test_the_first_direction_is_the_lowest():
    assert [first_way(bits) for bits in (1, 2, 6, 1 << 55, 1 << 55 | 1 << 3)] == [0, 1, 1, 55, 3]
