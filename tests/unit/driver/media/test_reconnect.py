"""Reconnecting a socket whose peer has a new address."""

import errno
import socket

import numpy as np
import pytest

from tests.unit.driver.channel.machine import Machine
from windtunnel.driver.channel import uri
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.channel.udp_channel import resolve
from windtunnel.driver.media import link, transport
from windtunnel.driver.media.channel_sockets import LinkSockets, SocketSettings, UdpSockets
from windtunnel.driver.media.link import make_links
from windtunnel.driver.media.name_resolver import SystemResolver
from windtunnel.driver.media.udp_socket import SocketError

NO_NAME = np.zeros(28, np.uint8)
FRAME = np.frombuffer(bytearray(b"frame"), np.uint8)


@pytest.fixture
def peers():
    made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for each in made:
        each.bind(("127.0.0.1", 0))
        each.settimeout(10)
    yield made
    for each in made:
        each.close()


def publication_to(address):
    channel = resolve(uri.parse(f"aeron:udp?endpoint={address}"), SystemResolver(), 1)
    return UdpSockets(SocketSettings()).open_publication(channel)


def send(sockets):
    return transport.send_frame(sockets.frames.fd, FRAME, 0, 5, NO_NAME, 0, link.NO_LINKS)


def test_after_a_reconnect_only_the_new_peer_is_used(peers):
    old, new = peers
    addresses = [SocketAddress(*each.getsockname()) for each in peers]
    sockets = publication_to(addresses[0])
    assert send(sockets) == 5
    data, source = old.recvfrom(64)
    assert data == b"frame"
    sockets.frames.reconnect(addresses[1])
    assert send(sockets) == 5
    assert new.recvfrom(64) == (b"frame", source)
    inbox = transport.make_receive_batch(4, 64)
    old.sendto(b"old", source)
    new.sendto(b"new", source)
    assert transport.receive(sockets.frames.fd, inbox, link.NO_LINKS) == 1
    assert inbox.slots[:3].tobytes() == b"new"
    sockets.close()


@pytest.mark.parametrize(("host", "code"), [("::1", errno.EAFNOSUPPORT), ("255.255.255.255", None)])
def test_a_peer_that_cannot_be_reached_is_named(peers, host, code):
    sockets = publication_to(SocketAddress(*peers[0].getsockname()))
    try:
        with pytest.raises(SocketError, match=r"cannot reconnect 127.* to .*:7: ") as refused:
            sockets.frames.reconnect(SocketAddress(host, 7))
        assert code is None or refused.value.code == code
        assert send(sockets) == 5
        assert peers[0].recv(64) == b"frame"
    finally:
        sockets.close()


def test_a_mailbox_is_reconnected_too():
    links = make_links(2, 4096)
    sockets = LinkSockets(links, SocketAddress("10.0.0.1", 0))
    channel = resolve(uri.parse("aeron:udp?endpoint=10.0.0.2:7"), Machine(), 1)
    opened = sockets.open_publication(channel)
    peer = SocketAddress("10.0.0.3", 8)
    opened.frames.reconnect(peer)
    mailbox = links.mailboxes[0]
    assert bytes(bytearray(mailbox.peer))[: int(mailbox.peer_length)] == peer.encode()
