"""The sockets of real drivers on simulated hosts: mailboxes in memory instead of UDP sockets.

    socket() -> descriptor, not bound --bind, connect--> mailbox of the host --close--> free

A descriptor is larger than any that the system returns. The functions have the arguments and
results of the system calls; a negative result is -errno.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from windtunnel.driver.channel.socket_address import (
    NAME_LENGTH_MAX,
    V4_ADDRESS,
    V4_LENGTH,
    SocketAddress,
    write_name,
)
from windtunnel.driver.media import link
from windtunnel.driver.media.channel_sockets import FIRST_EPHEMERAL_PORT, LOOPBACK, as_sender
from windtunnel.driver.media.link import Links
from windtunnel.harness.simulator.real_driver.fast_calls import set_socket
from windtunnel.harness.simulator.real_driver.fast_calls_kernels import DATAGRAM_BYTES_MAX
from windtunnel.harness.simulator.real_driver.fast_calls_table import FIRST_DESCRIPTOR
from windtunnel.harness.simulator.world.host_socket import claim_mailbox

_BUFFER_BYTES = 212_992
"""Linux's default length of a socket buffer."""
_PORT_MAX = 0xFFFF
_NO_MAILBOX = (0, 0, 0, 0)
_ANY = "0.0.0.0"  # compared, never bound


@dataclass(eq=False)
class MemorySocket:
    """One UDP socket of a simulated host, with its options and its mailbox."""

    host: int
    bound: SocketAddress | None = None
    mailbox: int = link.NOTHING
    options: dict[tuple[int, int], int] = field(default_factory=dict)


class MemorySockets:
    """All sockets of a simulated world's real drivers."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = tuple(addresses)
        self._links: dict[int, Links] = {}
        self._rings: dict[int, memoryview] = {}
        self._next_port = [FIRST_EPHEMERAL_PORT] * len(self._addresses)
        self._descriptors = count(FIRST_DESCRIPTOR)
        self._sockets: dict[int, MemorySocket] = {}
        self._name = np.zeros(NAME_LENGTH_MAX, dtype=np.uint8)
        self.buffer = np.zeros(DATAGRAM_BYTES_MAX, dtype=np.uint8)
        """The bytes of the datagram that is being sent or received."""

    def set_links(self, host: int, links: Links) -> None:
        """Set the mailboxes through which a host's sockets send and receive datagrams."""
        self._links[host] = links
        self._rings[host] = memoryview(links.rings.view(np.int64))

    def close_all(self, host: int) -> None:
        """Close all sockets of a host, as the operating system does when a process dies."""
        for descriptor in [at for at, each in self._sockets.items() if each.host == host]:
            self.close(descriptor)

    def has(self, descriptor: int) -> bool:
        return descriptor in self._sockets

    def open(self, host: int, family: int) -> int:
        if family != socket.AF_INET:
            return -errno.EAFNOSUPPORT
        descriptor = next(self._descriptors)
        self._sockets[descriptor] = MemorySocket(host)
        return descriptor

    def close(self, descriptor: int) -> int:
        found = self._sockets.pop(descriptor)
        set_socket(descriptor, _NO_MAILBOX)
        if found.mailbox != link.NOTHING:
            self._links[found.host].mailboxes[found.mailbox].is_open = 0
        return 0

    def bind(self, descriptor: int, address: SocketAddress) -> int:
        found = self._sockets[descriptor]
        own = self._addresses[found.host]
        if address.host not in (_ANY, LOOPBACK, own) and not address.is_multicast:
            return -errno.EADDRNOTAVAIL
        port = address.port or self._choose_port(found.host)
        shares = (socket.SOL_SOCKET, socket.SO_REUSEADDR) in found.options
        if not shares and self._is_used(found.host, port):
            return -errno.EADDRINUSE
        found.bound = address.with_port(port)
        local = address.host if address.is_multicast else own
        status = self._claim(found, SocketAddress(local, port))
        if status == 0:
            set_socket(descriptor, _words_of(self._links[found.host], found.mailbox))
        return status

    def connect(self, descriptor: int, peer: SocketAddress | None) -> int:
        found = self._sockets[descriptor]
        if found.mailbox == link.NOTHING:
            status = self.bind(descriptor, SocketAddress(_ANY, 0))
            if status < 0:
                return status
        mailbox = self._links[found.host].mailboxes[found.mailbox]
        own = SocketAddress(self._addresses[found.host], 0)
        mailbox.peer_length = write_name(mailbox.peer, as_sender(peer, own))
        if peer is not None and found.bound is not None and found.bound.host == _ANY:
            # Linux chooses the address of the interface that leads to the peer.
            source = peer if peer.host == LOOPBACK else own
            found.bound = source.with_port(found.bound.port)
        return 0

    def join(self, descriptor: int, group: str) -> int:
        """Join a multicast group, on the port to which the socket is bound."""
        found = self._sockets[descriptor]
        if found.bound is None:
            return -errno.EINVAL
        mailbox = self._links[found.host].mailboxes[found.mailbox]
        mailbox.local_length = write_name(mailbox.local, SocketAddress(group, found.bound.port))
        return 0

    def local(self, descriptor: int) -> SocketAddress:
        return self._sockets[descriptor].bound or SocketAddress(_ANY, 0)

    def set_option(self, descriptor: int, level: int, name: int, value: int) -> int:
        self._sockets[descriptor].options[level, name] = value
        return 0

    def option(self, descriptor: int, level: int, name: int) -> int:
        is_length = level == socket.SOL_SOCKET and name in (socket.SO_RCVBUF, socket.SO_SNDBUF)
        default = _BUFFER_BYTES if is_length else 0
        return self._sockets[descriptor].options.get((level, name), default)

    def send(self, descriptor: int, peer: SocketAddress | None, length: int) -> int:
        """Send the first `length` bytes of `buffer` to `peer`, or to the connected peer if `peer`
        is None.
        """
        found = self._sockets[descriptor]
        if found.mailbox == link.NOTHING:
            status = self.bind(descriptor, SocketAddress(_ANY, 0))
            if status < 0:
                return status
        name_length = write_name(self._name, peer)
        is_sent = link.put_outbound(
            self._links[found.host], found.mailbox, self._name, name_length, self.buffer, 0, length
        )
        return length if is_sent else -errno.EAGAIN

    def is_readable(self, descriptor: int) -> bool:
        """Return whether a socket has a datagram to read."""
        found = self._sockets[descriptor]
        if found.mailbox == link.NOTHING:
            return False
        rings, at = self._rings[found.host], 4 * found.mailbox
        return bool(rings[at] != rings[at + 1])

    def receive(self, descriptor: int) -> tuple[int, bytes]:
        """Move the oldest datagram to `buffer`. Returns its length and its source's address."""
        if not self.is_readable(descriptor):
            return -errno.EAGAIN, b""
        found = self._sockets[descriptor]
        length, name_length = link.take_inbound(
            self._links[found.host], found.mailbox, self._name, self.buffer, 0, self.buffer.size
        )
        if length == link.NOTHING:
            return -errno.EAGAIN, b""
        return int(length), self._name[: int(name_length)].tobytes()

    def _claim(self, found: MemorySocket, local: SocketAddress) -> int:
        mailbox = claim_mailbox(self._links[found.host], local)
        if mailbox == link.NOTHING:
            return -errno.ENOBUFS
        found.mailbox = mailbox
        return 0

    def _choose_port(self, host: int) -> int:
        for _ in range(FIRST_EPHEMERAL_PORT, _PORT_MAX + 1):
            port = self._next_port[host]
            self._next_port[host] = port + 1 if port < _PORT_MAX else FIRST_EPHEMERAL_PORT
            if not self._is_used(host, port):
                return port
        return 0

    def _is_used(self, host: int, port: int) -> bool:
        return any(
            each.host == host and each.bound is not None and each.bound.port == port
            for each in self._sockets.values()
        )


def _words_of(links: Links, mailbox: int) -> tuple[int, int, int, int]:
    """Return the words of a socket in the table of `fast_calls`."""
    ring_bytes = links.memory.size // links.rings.size
    return (
        links.rings.ctypes.data + 2 * mailbox * links.rings.itemsize,
        links.memory.ctypes.data + 2 * mailbox * ring_bytes,
        ring_bytes,
        links.mailboxes.ctypes.data + mailbox * links.mailboxes.itemsize,
    )


def decode_address(name: bytes) -> SocketAddress | None:
    """Return the IPv4 address in a `struct sockaddr`, or None if it has another family."""
    if len(name) < V4_LENGTH or int.from_bytes(name[:2], "little") != socket.AF_INET:
        return None
    host = socket.inet_ntoa(name[V4_ADDRESS : V4_ADDRESS + 4])
    return SocketAddress(host, int.from_bytes(name[2:4], "big"))
