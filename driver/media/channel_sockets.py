"""A channel's sockets: real UDP sockets, or mailboxes of an in-memory link.

    publication    unicast        one: bound to the interface, connected to the endpoint
                   MDC, response  one: bound to control or the interface, not connected
                   multicast      two: one sends to the group, not bound, and one receives from the
                                  control group
    subscription   unicast        one: bound to the endpoint
                   multicast      one: bound to any address, joined to the group

A connected socket receives only from its peer. Receivers must therefore send status messages and
NAKs from the socket that receives the data. Source: spec 9.3, Aeron 1.53.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX, SocketAddress, write_name
from windtunnel.driver.channel.udp_channel import ANY_V4, ANY_V6, UdpChannel
from windtunnel.driver.media import link
from windtunnel.driver.media.link import Links
from windtunnel.driver.media.port_manager import PORT_MAX, PortManager
from windtunnel.driver.media.udp_socket import (
    SocketOptions,
    SystemBuffers,
    UdpSocket,
    open_socket,
    probe_system_buffers,
)

LOOPBACK = "127.0.0.1"
FIRST_EPHEMERAL_PORT = 49152
"""First ephemeral port of a simulated host: the start of the IANA dynamic port range."""
SIMULATED_BUFFERS = SystemBuffers(212_992, 212_992, 212_992, 212_992)
"""Those of Linux without settings, so that a simulation does not depend on the machine."""


class OpenSocket(Protocol):
    """The conductor's interface to a socket. Compiled kernels use its file descriptor `fd`."""

    fd: int
    local: SocketAddress

    def reconnect(self, peer: SocketAddress) -> None:
        """Change the peer of a connected socket. This is safe while an agent uses the fd."""

    def close(self) -> None:
        """Close the fd. Every agent that polls the fd must release it first."""


class PublicationSockets(NamedTuple):
    """The one or two sockets of a publication channel."""

    frames: OpenSocket
    control: OpenSocket
    """The socket that receives status messages and NAKs. Only multicast has a separate one."""
    is_connected: bool
    """Whether datagrams can be sent without a destination address."""

    def close(self) -> None:
        self.frames.close()
        if self.control is not self.frames:
            self.control.close()


class Sockets(Protocol):
    """The interface through which the conductor opens the sockets of channels."""

    def open_publication(self, channel: UdpChannel) -> PublicationSockets:
        """Open the sockets of a publication channel."""

    def open_subscription(self, channel: UdpChannel) -> OpenSocket:
        """Open the socket of a subscription channel, or of one of its destinations."""

    def system_buffers(self) -> SystemBuffers:
        """Return the buffer lengths of sockets for which no other lengths are set."""


@dataclass(slots=True)
class SocketSettings:
    """The driver's defaults for the socket options that a channel does not set."""

    sndbuf_length: int = 0
    """Send buffer length; 0 selects the system's default."""
    rcvbuf_length: int = 128 * 1024
    multicast_ttl: int = 0
    connects_unicast: bool = True
    """Whether unicast publications connect their sockets to the endpoint."""
    gro_enabled: bool = False
    """Whether the system may deliver several received datagrams as one packet (UDP_GRO)."""
    sender_ports: PortManager = field(default_factory=PortManager)
    receiver_ports: PortManager = field(default_factory=PortManager)


class _ManagedSocket:
    """A socket that returns its port to the PortManager when it is closed."""

    def __init__(self, opened: UdpSocket, release: Callable[[], None]) -> None:
        self._opened = opened
        self._release = release
        self.fd = opened.fd
        self.local = opened.local

    def reconnect(self, peer: SocketAddress) -> None:
        self._opened.reconnect(peer)

    def close(self) -> None:
        if self.fd >= 0:
            self.fd = -1
            self._opened.close()
            self._release()


class UdpSockets:
    """Opens real UDP sockets for channels."""

    def __init__(self, settings: SocketSettings) -> None:
        self.settings = settings

    def open_publication(self, channel: UdpChannel) -> PublicationSockets:
        with _naming(channel):
            return self._open_publication(channel)

    def _open_publication(self, channel: UdpChannel) -> PublicationSockets:
        options = self._options(channel)
        if channel.is_multicast:
            frames = open_socket(_any_address(channel.remote_data), options, channel.remote_data)
            try:
                # Control sockets do without GRO, because the sender's poll handles one frame per
                # message.
                control = self._open_group(channel, channel.remote_control)
            except DriverError:
                frames.close()
                raise
            return PublicationSockets(frames, control, is_connected=True)
        is_connected = channel.is_connectable and self.settings.connects_unicast
        peer = channel.remote_data if is_connected else None
        opened = self._open_sender(channel.local_data, options, peer, channel.has_control)
        return PublicationSockets(opened, opened, is_connected)

    def _open_sender(
        self,
        local: SocketAddress,
        options: SocketOptions,
        peer: SocketAddress | None,
        has_control: bool,
    ) -> OpenSocket:
        # Receivers reply to any port of a publication, so the range is only for control addresses.
        if local.port == 0 and not has_control:
            return open_socket(local, options, peer)
        return _open_managed(local, options, peer, self.settings.sender_ports)

    def open_subscription(self, channel: UdpChannel) -> OpenSocket:
        with _naming(channel):
            if channel.is_multicast:
                return self._open_group(channel, channel.remote_data, is_receiving=True)
            ports = self.settings.receiver_ports
            options = self._options(channel, is_receiving=True)
            return _open_managed(channel.remote_data, options, None, ports)

    def system_buffers(self) -> SystemBuffers:
        return probe_system_buffers()

    def _options(
        self,
        channel: UdpChannel,
        group: SocketAddress | None = None,
        *,
        is_receiving: bool = False,
    ) -> SocketOptions:
        return SocketOptions(
            sndbuf_length=channel.socket_sndbuf_length or self.settings.sndbuf_length,
            rcvbuf_length=channel.socket_rcvbuf_length or self.settings.rcvbuf_length,
            interface=channel.interface,
            group=group,
            ttl=self.settings.multicast_ttl if channel.ttl is None else channel.ttl,
            gro_enabled=is_receiving and self.settings.gro_enabled,
        )

    def _open_group(
        self, channel: UdpChannel, group: SocketAddress, *, is_receiving: bool = False
    ) -> UdpSocket:
        options = self._options(channel, group, is_receiving=is_receiving)
        return open_socket(_any_address(group).with_port(group.port), options)


def _any_address(peer: SocketAddress) -> SocketAddress:
    """Return the address with which the system chooses the local address and port."""
    return ANY_V4 if peer.ip.version == 4 else ANY_V6


@contextmanager
def _naming(channel: UdpChannel) -> Iterator[None]:
    """Append the channel URI to the message of any DriverError that the `with` block raises."""
    try:
        yield
    except DriverError as error:
        error.args = (f"{error}: channel '{channel.uri}'",)
        raise


def _open_managed(
    bind: SocketAddress, options: SocketOptions, peer: SocketAddress | None, ports: PortManager
) -> _ManagedSocket:
    port = ports.acquire(bind.port)
    try:
        opened = open_socket(bind.with_port(port), options, peer)
    except DriverError:
        ports.release(port)
        raise
    return _ManagedSocket(opened, lambda: ports.release(port))


class LinkSocket:
    """An open mailbox of an in-memory link."""

    def __init__(self, links: Links, index: int, local: SocketAddress, host: SocketAddress) -> None:
        self._links = links
        self._index = index
        self._host = host
        self.fd = link.FIRST_FD - index
        self.local = local

    def reconnect(self, peer: SocketAddress) -> None:
        # With links, kernels and conductor share one thread, so the write need not be atomic.
        mailbox = self._links.mailboxes[self._index]
        mailbox.peer_length = write_name(mailbox.peer, as_sender(peer, self._host))

    def close(self) -> None:
        if self.fd != -1:
            self.fd = -1
            self._links.mailboxes[self._index].is_open = 0


class LinkSockets:
    """Opens mailboxes for a simulated host, whose only address is `host`. 127.0.0.1 stands for this
    address.

    A mailbox that joins a group is named after the group's address, because that is where others
    send.
    """

    def __init__(self, links: Links, host: SocketAddress) -> None:
        self._links = links
        self._mailboxes: np.ndarray = links.mailboxes.view(np.ndarray)
        self._host = host
        self._next_port = FIRST_EPHEMERAL_PORT

    def open_publication(self, channel: UdpChannel) -> PublicationSockets:
        with _naming(channel):
            if channel.is_multicast:
                frames = self._open(channel.local_data.with_port(0), channel.remote_data)
                try:
                    control = self._open_group(channel.remote_control)
                except DriverError:
                    frames.close()
                    raise
                return PublicationSockets(frames, control, is_connected=True)
            peer = channel.remote_data if channel.is_connectable else None
            opened = self._open(channel.local_data, peer)
            return PublicationSockets(opened, opened, is_connected=peer is not None)

    def open_subscription(self, channel: UdpChannel) -> OpenSocket:
        with _naming(channel):
            if channel.is_multicast:
                return self._open_group(channel.remote_data)
            return self._open(channel.remote_data, None)

    def system_buffers(self) -> SystemBuffers:
        return SIMULATED_BUFFERS

    def _open(self, bind: SocketAddress, peer: SocketAddress | None) -> LinkSocket:
        if not bind.is_unspecified and bind.host not in (self._host.host, LOOPBACK):
            raise DriverError(
                f"cannot bind {bind}: expected the simulated host's address {self._host.host}"
            )
        local = self._host.with_port(bind.port or self._choose_port())
        if self._is_used(local):
            raise DriverError(f"cannot bind {local}: the port is in use")
        opened = self._claim(local, peer)
        if peer is None:
            opened.local = bind.with_port(local.port)
        elif peer.host == LOOPBACK:
            opened.local = peer.with_port(local.port)
        return opened

    def _open_group(self, group: SocketAddress) -> LinkSocket:
        opened = self._claim(group, None)
        opened.local = _any_address(group).with_port(group.port)
        return opened

    def _claim(self, local: SocketAddress, peer: SocketAddress | None) -> LinkSocket:
        closed = np.flatnonzero(self._mailboxes["is_open"] == 0)
        if not closed.size:
            count = self._mailboxes.size
            raise DriverError(f"cannot bind {local}: all {count} mailboxes are in use")
        return self._take(int(closed[0]), local, peer)

    def _take(self, index: int, local: SocketAddress, peer: SocketAddress | None) -> LinkSocket:
        mailbox = self._links.mailboxes[index]
        mailbox.local_length = write_name(mailbox.local, local)
        mailbox.peer_length = write_name(mailbox.peer, as_sender(peer, self._host))
        for ring in (2 * index, 2 * index + 1):
            self._links.rings[ring].head = self._links.rings[ring].tail = 0
        mailbox.is_open = 1
        return LinkSocket(self._links, index, local, self._host)

    def _choose_port(self) -> int:
        for _ in range(FIRST_EPHEMERAL_PORT, PORT_MAX + 1):
            port = self._next_port
            self._next_port = port + 1 if port < PORT_MAX else FIRST_EPHEMERAL_PORT
            if not self._is_used(self._host.with_port(port)):
                return port
        raise DriverError(f"cannot bind {self._host}: every ephemeral port is in use")

    def _is_used(self, address: SocketAddress) -> bool:
        name = np.frombuffer(address.encode().ljust(NAME_LENGTH_MAX, b"\0"), dtype=np.uint8)
        is_same = (self._mailboxes["local"] == name).all(axis=1)
        return bool((is_same & (self._mailboxes["is_open"] != 0)).any())


def as_sender(peer: SocketAddress | None, host: SocketAddress) -> SocketAddress | None:
    """Return the address with which datagrams of a peer arrive at a simulated host: its own one
    instead of the loopback address.
    """
    if peer is None or peer.host != LOOPBACK:
        return peer
    return SocketAddress(host.host, peer.port)
