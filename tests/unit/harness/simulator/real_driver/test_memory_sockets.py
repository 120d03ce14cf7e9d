"""The sockets of simulated real drivers behave as UDP sockets do."""

import errno
import socket

import numpy as np
import pytest

from windtunnel.driver.channel.socket_address import SocketAddress, write_name
from windtunnel.driver.media import link
from windtunnel.driver.media.link import make_links
from windtunnel.harness.simulator.real_driver.memory_sockets import MemorySockets, decode_address

OWN, PEER, GROUP = "10.0.0.1", "10.0.0.2", "224.20.30.39"


@pytest.fixture
def sockets():
    made = MemorySockets([OWN, PEER])
    made.set_links(0, make_links(3, 1 << 12))
    made.set_links(1, make_links(3, 1 << 12))
    return made


def opened(sockets, address=OWN, port=4000):
    descriptor = sockets.open(0, socket.AF_INET)
    assert sockets.bind(descriptor, SocketAddress(address, port)) == 0
    return descriptor


def deliver(sockets, source, data):
    name = np.zeros(28, dtype=np.uint8)
    length = write_name(name, source)
    links = sockets._links[0]
    return link.deliver(links, 0, name, length, np.frombuffer(data, np.uint8), 0, len(data))


def test_receives_a_datagram_with_its_source(sockets):
    one = opened(sockets)
    assert not sockets.is_readable(one)
    assert sockets.receive(one) == (-errno.EAGAIN, b"")
    assert deliver(sockets, SocketAddress(PEER, 77), b"hello") == 5
    assert sockets.is_readable(one)
    length, source = sockets.receive(one)
    assert bytes(sockets.buffer[:length]) == b"hello"
    assert decode_address(source) == SocketAddress(PEER, 77)
    assert not sockets.is_readable(one)


def test_a_connected_socket_receives_from_its_peer_alone(sockets):
    one = opened(sockets)
    assert sockets.connect(one, SocketAddress(PEER, 77)) == 0
    assert deliver(sockets, SocketAddress(PEER, 78), b"other") == link.NOT_FOR_US
    assert deliver(sockets, SocketAddress(PEER, 77), b"peer") == 4


def test_a_connected_socket_has_the_address_of_the_host(sockets):
    one = opened(sockets, "0.0.0.0", 0)
    port = sockets.local(one).port
    assert sockets.local(one) == SocketAddress("0.0.0.0", port)
    assert sockets.connect(one, SocketAddress(PEER, 77)) == 0
    assert sockets.local(one) == SocketAddress(OWN, port)


def test_loopback_is_an_address_of_the_host(sockets):
    own = opened(sockets, "127.0.0.1", 4_000)
    assert sockets.local(own) == SocketAddress("127.0.0.1", 4_000)
    assert sockets.connect(own, SocketAddress("127.0.0.1", 77)) == 0
    # Datagrams of the host to itself have its other address as their source.
    assert deliver(sockets, SocketAddress(OWN, 77), b"peer") == 4
    assert deliver(sockets, SocketAddress(PEER, 77), b"other") == link.NOT_FOR_US
    free = opened(sockets, "0.0.0.0", 0)
    assert sockets.connect(free, SocketAddress("127.0.0.1", 78)) == 0
    assert sockets.local(free).host == "127.0.0.1"


def test_sends_to_a_peer_or_the_connected_one(sockets):
    one = opened(sockets)
    sockets.buffer[:3] = (1, 2, 3)
    assert sockets.send(one, None, 3) < 0
    assert sockets.send(one, SocketAddress(PEER, 9), 3) == 3
    assert sockets.connect(one, SocketAddress(PEER, 10)) == 0
    assert sockets.send(one, None, 2) == 2
    name, taken = np.zeros(28, dtype=np.uint8), np.zeros(64, dtype=np.uint8)
    seen = []
    for _ in range(2):
        length, name_length = link.take(sockets._links[0], 0, name, taken, 0, 64)
        seen.append((bytes(taken[:length]), decode_address(bytes(name[:name_length]))))
    assert seen == [
        (b"\1\2\3", SocketAddress(PEER, 9)),
        (b"\1\2", SocketAddress(PEER, 10)),
    ]


def test_binds_own_addresses_and_free_ports_only(sockets):
    opened(sockets)
    other = sockets.open(0, socket.AF_INET)
    assert sockets.bind(other, SocketAddress(OWN, 4000)) == -errno.EADDRINUSE
    assert sockets.bind(other, SocketAddress(PEER, 4001)) == -errno.EADDRNOTAVAIL
    assert sockets.bind(other, SocketAddress("0.0.0.0", 0)) == 0
    assert sockets.local(other) == SocketAddress("0.0.0.0", 49152)
    sharing = sockets.open(0, socket.AF_INET)
    sockets.set_option(sharing, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    assert sockets.bind(sharing, SocketAddress(OWN, 4000)) == 0


def test_a_joined_socket_has_the_groups_address(sockets):
    one = opened(sockets, "0.0.0.0", 4000)
    assert sockets.join(one, GROUP) == 0
    name = np.zeros(28, dtype=np.uint8)
    length = write_name(name, SocketAddress(GROUP, 4000))
    assert link.find(sockets._links[0], name, length) == 0
    assert sockets.join(sockets.open(0, socket.AF_INET), GROUP) == -errno.EINVAL


def test_a_dead_hosts_sockets_are_free_again(sockets):
    for port in (1, 2, 3):
        opened(sockets, port=port)
    full = sockets.open(0, socket.AF_INET)
    assert sockets.bind(full, SocketAddress(OWN, 4)) == -errno.ENOBUFS
    other = sockets.open(1, socket.AF_INET)
    sockets.close_all(0)
    assert not sockets.has(full)
    assert sockets.has(other)
    assert opened(sockets, port=1)


def test_refuses_ipv6(sockets):
    assert sockets.open(0, socket.AF_INET6) == -errno.EAFNOSUPPORT
    assert decode_address(b"\x0a\0" + bytes(26)) is None


def test_buffer_lengths_are_those_set(sockets):
    one = sockets.open(0, socket.AF_INET)
    assert sockets.option(one, socket.SOL_SOCKET, socket.SO_RCVBUF) == 212_992
    sockets.set_option(one, socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
    assert sockets.option(one, socket.SOL_SOCKET, socket.SO_RCVBUF) == 1 << 21
