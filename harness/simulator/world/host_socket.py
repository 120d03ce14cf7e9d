"""A UDP socket on a simulated host that is not its driver's: a mailbox next to the driver's own.

    scripted frames --send--> mailbox --> middlebox --> the other host's driver
                    <-receive-        <--

Captures, routes and impairments treat its datagrams like those of drivers.
"""

from __future__ import annotations

import numpy as np

from windtunnel.driver.channel.socket_address import (
    NAME_LENGTH_MAX,
    SocketAddress,
    read_name,
    write_name,
)
from windtunnel.driver.media import link
from windtunnel.driver.media.link import Links

DATAGRAM_BYTES_MAX = 65_535


class HostSocket:
    """An open UDP socket on a simulated host."""

    def __init__(self, links: Links, local: SocketAddress) -> None:
        """Bind a socket to an address of the host with these mailboxes."""
        self._links, self.local = links, local
        self._index = claim_mailbox(links, local)
        count = links.mailboxes.size
        assert self._index != link.NOTHING, f"all {count} mailboxes of {local.host} are in use"
        self._name = np.zeros(NAME_LENGTH_MAX, dtype=np.uint8)
        self._buffer = np.zeros(DATAGRAM_BYTES_MAX, dtype=np.uint8)

    def send(self, datagram: bytes, peer: SocketAddress) -> None:
        """Send a datagram to an address."""
        self._buffer[: len(datagram)] = np.frombuffer(datagram, dtype=np.uint8)
        name_length = write_name(self._name, peer)
        is_sent = link.put_outbound(
            self._links, self._index, self._name, name_length, self._buffer, 0, len(datagram)
        )
        assert is_sent, f"the mailbox of {self.local} is full"

    def receive(self) -> tuple[bytes, SocketAddress] | None:
        """Return the oldest datagram that has arrived and its source, or None if there is none."""
        length, name_length = link.take_inbound(
            self._links, self._index, self._name, self._buffer, 0, self._buffer.size
        )
        if length == link.NOTHING:
            return None
        source = read_name(self._name, int(name_length))
        assert source is not None
        return self._buffer[: int(length)].tobytes(), source

    def close(self) -> None:
        """Close the socket."""
        self._links.mailboxes[self._index].is_open = 0


def claim_mailbox(links: Links, local: SocketAddress) -> int:
    """Open a free mailbox at an address. Returns its index, or `link.NOTHING` if all are in use."""
    for index in range(links.mailboxes.size):
        mailbox = links.mailboxes[index]
        if mailbox.is_open == 0:
            mailbox.local_length = write_name(mailbox.local, local)
            mailbox.peer_length = 0
            for ring in (2 * index, 2 * index + 1):
                links.rings[ring].head = links.rings[ring].tail = 0
            mailbox.is_open = 1
            return index
    return int(link.NOTHING)
