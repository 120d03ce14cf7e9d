"""The socket that the driver name resolver uses.

Source: spec 1.9, Aeron 1.53.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from windtunnel.driver.channel.socket_address import SocketAddress, decode
from windtunnel.driver.media import link, transport
from windtunnel.driver.media.udp_socket import SocketOptions, open_socket

DATAGRAM_LENGTH_MAX = 65_504
DATAGRAMS_PER_TURN = 8
"""Maximum number of received datagrams per duty cycle, to limit the duty cycle's duration."""


class ResolverSocket(Protocol):
    """The interface of the datagram sockets that the driver name resolver uses."""

    local: SocketAddress

    def send(self, datagram: bytes, to: SocketAddress) -> int:
        """Send a datagram. Returns the number of bytes sent, 0 on a transient error, or -errno."""

    def receive(self) -> Iterator[tuple[bytes, SocketAddress]]:
        """Yield each received datagram and its source. A truncated datagram is yielded as empty
        bytes.
        """

    def close(self) -> None:
        """Close the socket."""


class UdpResolverSocket:
    """A UDP socket bound to the resolver's interface."""

    def __init__(self, local: SocketAddress, options: SocketOptions) -> None:
        self._opened = open_socket(local, options)
        self.local = self._opened.local
        self._inbox = transport.make_receive_batch(DATAGRAMS_PER_TURN, DATAGRAM_LENGTH_MAX)
        self._name = np.zeros(28, dtype=np.uint8)
        self._links: Any = link.NO_LINKS
        # Compile the kernels now, because a compilation at their first use would stall the
        # conductor.
        transport.send_frame(-1, self._name, 0, 0, self._name, 0, self._links)
        transport.receive(-1, self._inbox, self._links)
        transport.source_length(self._inbox, 0)

    def send(self, datagram: bytes, to: SocketAddress) -> int:
        buf = np.frombuffer(bytearray(datagram), dtype=np.uint8)
        name = to.encode()
        self._name[: len(name)] = np.frombuffer(name, dtype=np.uint8)
        fd = self._opened.fd
        return int(transport.send_frame(fd, buf, 0, buf.size, self._name, len(name), self._links))

    def receive(self) -> Iterator[tuple[bytes, SocketAddress]]:
        inbox = self._inbox
        # This call may return a pending error of the last send, and thereby clear it.
        count = max(0, int(transport.receive(self._opened.fd, inbox, self._links)))
        for index in range(count):
            name = inbox.names[index][: transport.source_length(inbox, index)]
            source = decode(bytes(bytearray(name)))
            if source is None:
                continue
            at, length = index * DATAGRAM_LENGTH_MAX, int(inbox.headers[index].length)
            whole = not inbox.headers[index].message_flags & transport.TRUNCATED
            yield (inbox.slots[at : at + length].tobytes() if whole else b""), source

    def close(self) -> None:
        self._opened.close()
