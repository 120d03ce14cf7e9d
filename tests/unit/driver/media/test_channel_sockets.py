"""The sockets of channels: UDP over loopback, and mailboxes of a link."""

import errno
import os
import socket

import numpy as np
import pytest

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel import udp_channel, uri
from windtunnel.driver.channel.socket_address import SocketAddress, read_name, write_name
from windtunnel.driver.media import link, transport
from windtunnel.driver.media.channel_sockets import LinkSockets, SocketSettings, UdpSockets
from windtunnel.driver.media.name_resolver import SystemResolver
from windtunnel.driver.media.port_manager import PortManager
from windtunnel.driver.media.system_message import UDP_GRO_OPTION
from windtunnel.driver.media.udp_socket import (
    SocketError,
    SocketOptions,
    open_socket,
    probe_system_buffers,
)

NO_NAME = np.zeros(28, dtype=np.uint8)
GROUP = "endpoint=239.77.7.1:{}|interface=127.0.0.1|ttl=1"


def channel_of(params):
    return udp_channel.resolve(uri.parse(f"aeron:udp?{params}"), SystemResolver(), 1)


def sockets(**settings):
    return UdpSockets(SocketSettings(**settings))


def send(fd, text, name=NO_NAME, name_length=0, links=link.NO_LINKS):
    frame = np.frombuffer(text, dtype=np.uint8).copy()
    return transport.send_frame(fd, frame, 0, frame.size, name, name_length, links)


def receive(fd, links=link.NO_LINKS):
    """Return all datagrams that arrived, as (bytes, source)."""
    inbox = transport.make_receive_batch(8, 2048)
    found = []
    for index in range(transport.receive(fd, inbox, links)):
        at, length = transport.incoming_at(inbox, index), transport.incoming_length(inbox, index)
        name = inbox.names[index]
        source = read_name(name, transport.source_length(inbox, index))
        found.append((bytes(inbox.slots[at : at + length]), source))
    return found


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_unicast_publication_and_subscription_use_one_socket_each(host):
    subscription = sockets().open_subscription(channel_of(f"endpoint={host}:0"))
    port = subscription.local.port
    publication = sockets().open_publication(channel_of(f"endpoint={host}:{port}"))
    try:
        assert publication.is_connected
        assert publication.control is publication.frames
        assert publication.frames.local.host == host.strip("[]")
        assert send(publication.frames.fd, b"data") == 4
        assert receive(subscription.fd) == [(b"data", publication.frames.local)]
        name = np.zeros(28, dtype=np.uint8)
        length = write_name(name, publication.frames.local)
        assert send(subscription.fd, b"status", name, length) == 6
        assert receive(publication.control.fd) == [(b"status", subscription.local)]
    finally:
        publication.close()
        subscription.close()


def test_a_connected_publication_receives_only_from_its_endpoint():
    subscription = sockets().open_subscription(channel_of("endpoint=127.0.0.1:0"))
    other = sockets().open_subscription(channel_of("endpoint=127.0.0.1:0"))
    endpoint = f"endpoint={subscription.local}"
    connected = sockets().open_publication(channel_of(endpoint))
    unconnected = sockets(connects_unicast=False).open_publication(channel_of(endpoint))
    try:
        assert not unconnected.is_connected
        for publication, received_count in ((connected, 0), (unconnected, 1)):
            name = np.zeros(28, dtype=np.uint8)
            target = SocketAddress("127.0.0.1", publication.frames.local.port)
            send(other.fd, b"status", name, write_name(name, target))
            assert len(receive(publication.control.fd)) == received_count
    finally:
        for opened in (subscription, other, connected, unconnected):
            opened.close()


def test_multi_destination_publication_is_bound_to_control_and_not_connected():
    publication = sockets().open_publication(channel_of("control=127.0.0.1:0|control-mode=dynamic"))
    try:
        assert not publication.is_connected
        assert publication.frames.local.host == "127.0.0.1"
    finally:
        publication.close()


def test_multicast_data_and_control_have_a_socket_each():
    with_port = sockets().open_subscription(channel_of("endpoint=127.0.0.1:0"))
    port = with_port.local.port
    with_port.close()
    channel = channel_of(GROUP.format(port))
    publication = sockets().open_publication(channel)
    receivers = [sockets().open_subscription(channel) for _ in range(2)]
    try:
        assert publication.is_connected
        assert publication.control.fd != publication.frames.fd
        assert send(publication.frames.fd, b"data") == 4
        for receiver in receivers:
            assert receive(receiver.fd) == [(b"data", publication.frames.local)]
        name = np.zeros(28, dtype=np.uint8)
        length = write_name(name, channel.remote_control)
        assert send(receivers[0].fd, b"status", name, length) == 6
        assert [data for data, _ in receive(publication.control.fd)] == [b"status"]
        assert receive(receivers[1].fd) == []
    finally:
        publication.close()
        for receiver in receivers:
            receiver.close()


def has_gro(fd):
    with socket.socket(fileno=os.dup(fd)) as handle:
        return handle.getsockopt(*UDP_GRO_OPTION) != 0


@pytest.mark.parametrize("gro_enabled", [False, True])
@pytest.mark.parametrize("params", ["endpoint=127.0.0.1:0", GROUP.format(40_123)])
def test_gro_is_for_sockets_that_receive_data(gro_enabled, params):
    opener = sockets(gro_enabled=gro_enabled)
    subscription = opener.open_subscription(channel_of(params))
    publication = opener.open_publication(channel_of(params.replace(":0", ":40123")))
    try:
        assert has_gro(subscription.fd) == gro_enabled
        # The sender's poll takes each message for one control frame.
        assert not has_gro(publication.frames.fd)
        assert not has_gro(publication.control.fd)
    finally:
        publication.close()
        subscription.close()


def test_a_port_in_use_is_reported_and_nothing_is_kept():
    first = sockets().open_subscription(channel_of("endpoint=127.0.0.1:0"))
    ports = PortManager(first.local.port, first.local.port)
    try:
        with pytest.raises(SocketError) as failure:
            sockets(receiver_ports=ports).open_subscription(channel_of(f"endpoint={first.local}"))
        assert str(failure.value) == (
            f"cannot bind {first.local}: the port is in use: (98) Address already in use: "
            f"channel 'aeron:udp?endpoint={first.local}'"
        )
        assert failure.value.code == errno.EADDRINUSE
    finally:
        first.close()
    again = sockets(receiver_ports=ports).open_subscription(channel_of("endpoint=127.0.0.1:0"))
    assert again.local == first.local
    again.close()


def test_an_address_of_another_machine_cannot_be_bound():
    with pytest.raises(SocketError, match=r"^cannot bind 192.0.2.1:40123: \(99\)"):
        sockets().open_subscription(channel_of("endpoint=192.0.2.1:40123"))


def test_an_invalid_group_cannot_be_joined():
    lo = next(entry for entry in SystemResolver().interfaces() if entry.host == "127.0.0.1")
    options = SocketOptions(interface=lo, group=SocketAddress("10.0.0.1", 1))
    with pytest.raises(SocketError, match=r"^cannot join group 10.0.0.1:1 on lo \(127.0.0.1\)"):
        open_socket(SocketAddress("0.0.0.0", 0), options)


def test_wildcard_ports_are_taken_from_the_range_and_returned():
    free = [open_socket(SocketAddress("127.0.0.1", 0), SocketOptions()) for _ in range(1)]
    port = free[0].local.port
    free[0].close()
    settings = SocketSettings(receiver_ports=PortManager(port, port))
    first = UdpSockets(settings).open_subscription(channel_of("endpoint=127.0.0.1:0"))
    assert first.local.port == port
    with pytest.raises(DriverError, match="no available ports"):
        UdpSockets(settings).open_subscription(channel_of("endpoint=127.0.0.1:0"))
    first.close()
    first.close()
    assert first.fd == -1
    again = UdpSockets(settings).open_subscription(channel_of("endpoint=127.0.0.1:0"))
    assert again.local.port == port
    again.close()


def test_a_publication_has_a_port_of_the_range_only_for_its_control_address():
    free = open_socket(SocketAddress("127.0.0.1", 0), SocketOptions())
    port = free.local.port
    free.close()
    opener = sockets(sender_ports=PortManager(port, port))
    others = [
        opener.open_publication(channel_of(f"endpoint=127.0.0.1:{number}")) for number in (1, 2)
    ]
    others.append(opener.open_publication(channel_of("control-mode=manual")))
    dynamic = channel_of("control=127.0.0.1:0|control-mode=dynamic")
    controlled = opener.open_publication(dynamic)
    assert controlled.frames.local.port == port
    assert port not in [each.frames.local.port for each in others]
    with pytest.raises(DriverError, match="no available ports"):
        opener.open_publication(dynamic)
    for each in (*others, controlled):
        each.close()


def test_buffer_lengths_are_set_by_channel_before_driver():
    system = probe_system_buffers()
    assert 0 < system.rcvbuf_length <= system.rcvbuf_length_max
    assert 0 < system.sndbuf_length <= system.sndbuf_length_max
    options = SocketOptions(sndbuf_length=8192, rcvbuf_length=16384)
    opened = open_socket(SocketAddress("127.0.0.1", 0), options)
    # Linux doubles the requested size, for its own bookkeeping.
    assert (opened.sndbuf_length, opened.rcvbuf_length) == (16384, 32768)
    opened.close()


def open_hosts():
    links = link.make_links(4, 4096)
    return links, [LinkSockets(links, SocketAddress(f"10.0.0.{n}", 0)) for n in (1, 2)]


def test_simulated_hosts_exchange_datagrams_like_real_ones():
    links, (one, two) = open_hosts()
    subscription = two.open_subscription(channel_of("endpoint=10.0.0.2:40123"))
    publication = one.open_publication(channel_of("endpoint=10.0.0.2:40123"))
    assert publication.is_connected
    assert publication.frames.local == SocketAddress("10.0.0.1", 49152)
    assert send(publication.frames.fd, b"data", links=links) == 4
    name, buf = np.zeros(28, dtype=np.uint8), np.zeros(64, dtype=np.uint8)
    sender = link.index_of(links, publication.frames.fd)
    length, name_length = link.take(links, sender, name, buf, 0, 64)
    target = link.find(links, name, name_length)
    assert target == link.index_of(links, subscription.fd)
    source = links.mailboxes[sender]
    assert link.deliver(links, target, source.local, source.local_length, buf, 0, length) == 4
    assert receive(subscription.fd, links) == [(b"data", publication.frames.local)]


def test_simulated_sockets_show_the_address_to_which_they_are_bound():
    _links, (one, _) = open_hosts()
    real = sockets()
    for params in ("endpoint=0.0.0.0:40126", "endpoint=0.0.0.0:0"):
        simulated = one.open_subscription(channel_of(params)).local
        opened = real.open_subscription(channel_of(params))
        assert (simulated.host, simulated.port > 0) == (opened.local.host, opened.local.port > 0)
        opened.close()


def test_loopback_stands_for_the_address_of_a_simulated_host():
    links, (one, _) = open_hosts()
    subscription = one.open_subscription(channel_of("endpoint=127.0.0.1:40123"))
    publication = one.open_publication(channel_of("endpoint=127.0.0.1:40123"))
    # As with real sockets, both show the loopback address.
    assert subscription.local == SocketAddress("127.0.0.1", 40_123)
    assert publication.frames.local == SocketAddress("127.0.0.1", 49_152)
    boxes = [links.mailboxes[index] for index in (0, 1)]
    own, sender = (SocketAddress("10.0.0.1", port) for port in (40_123, 49_152))
    assert [read_name(each.local, each.local_length) for each in boxes] == [own, sender]
    assert read_name(boxes[1].peer, boxes[1].peer_length) == own
    publication.frames.reconnect(SocketAddress("127.0.0.1", 5))
    assert read_name(boxes[1].peer, boxes[1].peer_length) == own.with_port(5)


def test_simulated_hosts_reject_the_same_channels_as_real_ones():
    _links, (one, two) = open_hosts()
    first = one.open_subscription(channel_of("endpoint=10.0.0.1:40123"))
    for params, reason in (
        ("endpoint=10.0.0.1:40123", "the port is in use"),
        ("endpoint=10.0.0.2:40123", "expected the simulated host's address 10.0.0.1"),
    ):
        with pytest.raises(DriverError, match=reason):
            one.open_subscription(channel_of(params))
    two.open_subscription(channel_of("endpoint=10.0.0.2:40123"))
    first.close()
    again = one.open_subscription(channel_of("endpoint=10.0.0.1:40123"))
    assert again.fd == link.FIRST_FD


def open_loopback():
    """A host whose address is that of the interface by which groups are joined here."""
    links = link.make_links(4, 4096)
    return links, LinkSockets(links, SocketAddress("127.0.0.1", 0))


def test_simulated_hosts_can_join_the_same_group():
    links, one = open_loopback()
    channel = channel_of(GROUP.format(40_123))
    publication = one.open_publication(channel)
    first, second = (one.open_subscription(channel) for _ in range(2))
    assert publication.is_connected
    assert publication.frames.local == SocketAddress("127.0.0.1", 49152)
    # As with real sockets: the group is joined, but not bound.
    assert first.local == second.local == SocketAddress("0.0.0.0", 40_123)
    assert publication.control.local == SocketAddress("0.0.0.0", 40_123)
    assert publication.control.fd != publication.frames.fd
    assert send(publication.frames.fd, b"data", links=links) == 4
    name, buf = np.zeros(28, dtype=np.uint8), np.zeros(64, dtype=np.uint8)
    sender = link.index_of(links, publication.frames.fd)
    length, name_length = link.take(links, sender, name, buf, 0, 64)
    assert (length, read_name(name, name_length)) == (4, channel.remote_data)
    publication.close()
    assert links.mailboxes.is_open.tolist() == [0, 0, 1, 1]


def test_a_publication_that_cannot_join_its_control_group_keeps_no_mailbox():
    links, one = open_loopback()
    for port in (1, 2, 3):
        one.open_subscription(channel_of(f"endpoint=127.0.0.1:{port}"))
    with pytest.raises(DriverError, match="all 4 mailboxes are in use: channel"):
        one.open_publication(channel_of(GROUP.format(40_123)))
    assert links.mailboxes.is_open.tolist() == [1, 1, 1, 0]


def test_a_reused_mailbox_is_empty():
    links, (one, _) = open_hosts()
    first = one.open_subscription(channel_of("endpoint=10.0.0.1:1"))
    name = np.zeros(28, dtype=np.uint8)
    length = write_name(name, SocketAddress("10.0.0.2", 2))
    link.deliver(links, 0, name, length, NO_NAME, 0, 8)
    fd = first.fd
    first.close()
    assert first.fd == -1
    again = one.open_subscription(channel_of("endpoint=10.0.0.1:1"))
    assert again.fd == fd
    assert receive(fd, links) == []


def test_the_number_of_mailboxes_is_limited():
    _links, (one, _) = open_hosts()
    for _ in range(4):
        one.open_subscription(channel_of("endpoint=10.0.0.1:0"))
    with pytest.raises(DriverError, match="all 4 mailboxes are in use"):
        one.open_subscription(channel_of("endpoint=10.0.0.1:0"))


def test_the_socket_that_sends_to_a_group_has_no_port_of_the_interface():
    # Source: aeron_udp_channel_transport_init and UdpChannelTransport.openDatagramChannel of Aeron
    # 1.53, which bind only the socket that receives. The group interface decides on the address.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        params = f"endpoint=239.77.7.1:40123|interface=127.0.0.1:{port}"
        publication = sockets().open_publication(channel_of(params))
        assert publication.frames.local.host == "127.0.0.1"
        assert publication.frames.local.port not in (0, port)
        publication.close()


def test_a_socket_for_any_ipv6_address_receives_ipv4_too():
    # As with Aeron's drivers, which leave IPV6_V6ONLY off.
    subscription = sockets().open_subscription(channel_of("endpoint=[::]:0"))
    port = subscription.local.port
    publication = sockets().open_publication(channel_of(f"endpoint=127.0.0.1:{port}"))
    try:
        assert send(publication.frames.fd, b"data") == 4
        ((data, source),) = receive(subscription.fd)
        assert (data, source.port) == (b"data", publication.frames.local.port)
        assert source.text == f"[::ffff:127.0.0.1]:{source.port}"
        name = np.zeros(28, dtype=np.uint8)
        assert send(subscription.fd, b"status", name, write_name(name, source)) == 6
        assert [data for data, _ in receive(publication.control.fd)] == [b"status"]
    finally:
        publication.close()
        subscription.close()
