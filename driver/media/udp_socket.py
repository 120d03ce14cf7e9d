"""Creates, configures, binds and connects a UDP socket.

The kernels of `transport` read and write through the file descriptor. Every failure closes the
socket and raises a DriverError that names the address and the errno. Source: spec 9.3, Aeron 1.53.
"""

import contextlib
import errno
import os
import socket
import struct
from typing import NamedTuple

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel.resolver import NetworkInterface
from windtunnel.driver.channel.socket_address import SocketAddress, from_python_name
from windtunnel.driver.media.system_message import UDP_GRO_OPTION

_IP_MULTICAST_ALL = 49
_IPV6_MULTICAST_ALL = 29
_BUFFER_LENGTH_MAX = (1 << 31) - 1


class SocketError(DriverError):
    """A socket operation failed. Clients receive the error code CHANNEL_ENDPOINT_ERROR or
    GENERIC_ERROR.
    """

    def __init__(self, text: str, error: OSError) -> None:
        self.code = error.errno or 0
        reason = os.strerror(self.code) if self.code else str(error)
        super().__init__(f"{text}: ({self.code}) {reason}")


class SocketOptions(NamedTuple):
    """Options that are set before a socket is bound. 0 and None keep the system's default."""

    sndbuf_length: int = 0
    rcvbuf_length: int = 0
    interface: NetworkInterface | None = None
    """The interface on which groups are joined and from which multicast is sent."""
    group: SocketAddress | None = None
    """The multicast group to join. The socket then shares its port with other sockets."""
    ttl: int = 0
    """Time-to-live of multicast datagrams."""
    gro_enabled: bool = False
    """Whether the system may deliver several datagrams as one packet (UDP_GRO)."""


class SystemBuffers(NamedTuple):
    """Default and maximum lengths of the system's UDP socket buffers, in bytes."""

    sndbuf_length: int
    sndbuf_length_max: int
    rcvbuf_length: int
    rcvbuf_length_max: int


class UdpSocket:
    """An open, bound, non-blocking UDP socket."""

    def __init__(self, handle: socket.socket) -> None:
        self._handle = handle
        self.fd = handle.fileno()
        self.local: SocketAddress = from_python_name(handle.getsockname())

    @property
    def sndbuf_length(self) -> int:
        return self._handle.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    @property
    def rcvbuf_length(self) -> int:
        return self._handle.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    def reconnect(self, peer: SocketAddress) -> None:
        """Connect the socket to a different peer. This is safe while an agent uses the socket."""
        try:
            if peer.family != self._handle.family:
                raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
            self._handle.connect(peer.python_name)
        except OSError as error:
            raise SocketError(f"cannot reconnect {self.local} to {peer}", error) from error

    def close(self) -> None:
        """Close the socket. Every agent that polls its fd must release it first."""
        self._handle.close()
        self.fd = -1


def open_socket(
    bind: SocketAddress, options: SocketOptions, connect: SocketAddress | None = None
) -> UdpSocket:
    """Open a socket that is bound to `bind` and, if `connect` is given, connected to it."""
    doing = f"cannot make a socket for {bind}"
    handle = None
    try:
        handle = socket.socket(bind.family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        handle.setblocking(False)
        doing = f"cannot configure the socket for {bind}"
        _configure(handle, bind, options)
        doing = f"cannot bind {bind}"
        handle.bind(bind.python_name)
        if options.group is not None:
            doing = f"cannot join group {options.group} on {_name_of(options.interface)}"
            _join(handle, options.group, options.interface)
        if connect is not None:
            doing = f"cannot connect {bind} to {connect}"
            handle.connect(connect.python_name)
        return UdpSocket(handle)
    except OSError as error:
        if handle is not None:
            handle.close()
        if error.errno == errno.EADDRINUSE:
            doing += ": the port is in use"
        raise SocketError(doing, error) from error


def _configure(handle: socket.socket, bind: SocketAddress, options: SocketOptions) -> None:
    if bind.family == socket.AF_INET6:
        # A socket for any address receives IPv4 datagrams too, as in Aeron.
        handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    if options.sndbuf_length > 0:
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.sndbuf_length)
    if options.rcvbuf_length > 0:
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.rcvbuf_length)
    if options.gro_enabled:
        # Ignore errors: without GRO the system delivers single datagrams.
        with contextlib.suppress(OSError):
            handle.setsockopt(*UDP_GRO_OPTION, 1)
    if options.group is not None:
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if options.interface is None:
        return
    if bind.family == socket.AF_INET:
        request = _ipv4_request("0.0.0.0", options.interface)
        handle.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
        if options.ttl > 0:
            handle.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, options.ttl)
    else:
        index = options.interface.index
        handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        if options.ttl > 0:
            handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, options.ttl)


def _join(handle: socket.socket, group: SocketAddress, interface: NetworkInterface | None) -> None:
    """Join a multicast group. The socket receives nothing from groups that only other sockets have
    joined.
    """
    assert interface is not None, "a group is joined on an interface"
    if group.family == socket.AF_INET:
        request = _ipv4_request(group.host, interface)
        handle.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        handle.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
    else:
        request = group.ip.packed + struct.pack("=i", interface.index)
        handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
        handle.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)


def _ipv4_request(group: str, interface: NetworkInterface) -> bytes:
    """Encode a group and an interface as a struct ip_mreqn."""
    local = socket.inet_aton(interface.host)
    return socket.inet_aton(group) + local + struct.pack("=i", interface.index)


def _name_of(interface: NetworkInterface | None) -> str:
    return "no interface" if interface is None else f"{interface.name} ({interface.host})"


def probe_system_buffers() -> SystemBuffers:
    """Measure the system's socket buffer lengths with a temporary socket."""
    lengths = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            lengths.append(handle.getsockopt(socket.SOL_SOCKET, option))
            # The operating system limits a larger request to its maximum.
            handle.setsockopt(socket.SOL_SOCKET, option, _BUFFER_LENGTH_MAX)
            lengths.append(handle.getsockopt(socket.SOL_SOCKET, option))
    return SystemBuffers(*lengths)
