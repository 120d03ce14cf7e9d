"""A socket of an exercise is a mailbox of its host, besides those of the driver."""

import numpy as np
import pytest

from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX, SocketAddress, write_name
from windtunnel.driver.media import link
from windtunnel.harness.simulator.world.host_socket import HostSocket

OWN, PEER = SocketAddress("10.0.0.1", 4000), SocketAddress("10.0.0.2", 5000)


def name_of(address):
    name = np.zeros(NAME_LENGTH_MAX, dtype=np.uint8)
    return name, write_name(name, address)


def test_sends_to_an_address():
    links = link.make_links(2, 4096)
    HostSocket(links, OWN).send(b"a datagram", PEER)
    name, buf = np.zeros(NAME_LENGTH_MAX, dtype=np.uint8), np.zeros(100, dtype=np.uint8)
    length, _ = link.take(links, 0, name, buf, 0, 100)
    assert buf[:length].tobytes() == b"a datagram"
    assert name.tobytes() == name_of(PEER)[0].tobytes()


def test_receives_with_the_source():
    links = link.make_links(1, 4096)
    socket = HostSocket(links, OWN)
    assert socket.receive() is None
    payload = np.frombuffer(b"an answer", dtype=np.uint8).copy()
    assert link.deliver(links, link.find(links, *name_of(OWN)), *name_of(PEER), payload, 0, 9) == 9
    assert socket.receive() == (b"an answer", PEER)
    assert socket.receive() is None


def test_takes_a_free_mailbox_and_returns_it():
    links = link.make_links(2, 4096)
    links.mailboxes[0].is_open = 1
    socket = HostSocket(links, OWN)
    assert link.find(links, *name_of(OWN)) == 1
    with pytest.raises(AssertionError, match="all 2 mailboxes of"):
        HostSocket(links, PEER)
    socket.close()
    assert link.find(links, *name_of(OWN)) == link.NOTHING
