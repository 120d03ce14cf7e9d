"""The drivers that have announced themselves, and the number of bytes that may be sent to each.

The source address of a datagram can be forged, so a neighbor is sent at most as many bytes as it
has sent, times CREDIT_RATIO. Configured bootstrap neighbors have no such limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from windtunnel.driver.channel.socket_address import SocketAddress

NEIGHBORS_MAX = 256
"""Maximum number of neighbors. Sending an announcement to all of them takes a third of a second."""

CREDIT_RATIO = 2
"""Bytes that a neighbor may be sent for each byte that it sent. The addresses that its datagrams
name may be sent as many bytes again, so the total is at most three times the input."""

CREDIT_MAX = 1 << 16
"""Maximum number of bytes that a neighbor may be sent until its next datagram."""

Key = tuple[str, int]


def key_of(address: SocketAddress) -> Key:
    """Return the key under which the resolver's tables store an address."""
    return address.host, address.port


@dataclass(eq=False, slots=True)
class Neighbor:
    """A driver that announced itself from its own address."""

    address: SocketAddress
    last_activity_ms: int
    credit_bytes: int = 0
    next_name: int = 0
    """Index, in the name cache, of the next name to send to this neighbor."""


class Neighbors:
    """The drivers that have announced themselves (neighbors), by address."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._by_key: dict[Key, Neighbor] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Neighbor]:
        return iter(list(self._by_key.values()))

    def __contains__(self, address: SocketAddress | None) -> bool:
        return address is not None and key_of(address) in self._by_key

    def on_announcement(self, address: SocketAddress, last_activity_ms: int) -> None:
        """Add the driver at an address as a neighbor, unless the table is full. Marks a known
        neighbor as alive.
        """
        neighbor = self._by_key.get(key_of(address))
        if neighbor is not None:
            neighbor.last_activity_ms = last_activity_ms
        elif len(self._by_key) < NEIGHBORS_MAX:
            self._by_key[key_of(address)] = Neighbor(address, last_activity_ms)

    def on_received(self, source: SocketAddress, length: int) -> None:
        """Increase the number of bytes that may be sent to a neighbor, because it has sent a
        datagram.
        """
        neighbor = self._by_key.get(key_of(source))
        if neighbor is not None:
            credit = neighbor.credit_bytes + CREDIT_RATIO * length
            neighbor.credit_bytes = min(credit, CREDIT_MAX)

    def expire(self, now_ms: int) -> int:
        """Remove the neighbors that have sent nothing within the timeout. Returns the number of
        removed neighbors.
        """
        old = [
            key
            for key, neighbor in self._by_key.items()
            if neighbor.last_activity_ms + self._timeout_ms <= now_ms
        ]
        for key in old:
            del self._by_key[key]
        return len(old)
