"""Queues the datagrams with which the driver name resolver announces names to other drivers.

    own name     to bootstrap neighbors and neighbors, every interval
    probes       own name to addresses that other drivers named, once per interval
    all names    to neighbors, round by round; the next round starts after the previous one

Neighbors other than bootstrap neighbors are only sent what their credit covers.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media_driver.name_resolution.name_cache import CacheEntry
from windtunnel.driver.media_driver.name_resolution.neighbors import (
    Key,
    Neighbor,
    Neighbors,
    key_of,
)
from windtunnel.driver.media_driver.name_resolution.resolution_datagram import (
    ResolutionEntry,
    encode_from,
    fits,
)

PROBES_MAX = 64
"""Maximum number of addresses that are probed per interval."""

Sending = tuple[bytes, SocketAddress]


class Announcements:
    """The queued datagrams that announce names to other drivers."""

    def __init__(self, self_datagram: bytes, mtu_length: int, neighbors: Neighbors) -> None:
        self._self_datagram = self_datagram
        self._mtu_length = mtu_length
        self._neighbors = neighbors
        self._targets: deque[tuple[SocketAddress, Neighbor | None]] = deque()
        self._probed: set[Key] = set()
        self._names: Iterator[Sending] = iter(())
        self._is_naming = False

    def start_self(self, trusted: list[SocketAddress]) -> None:
        """Queue announcements of this driver to all bootstrap neighbors and other neighbors, unless
        earlier announcements are still queued. In either case, permit new probes of addresses that
        were probed before.
        """
        self._probed.clear()
        if self._targets:
            return
        keys = {key_of(address) for address in trusted}
        self._targets.extend((address, None) for address in dict.fromkeys(trusted))
        self._targets.extend(
            (neighbor.address, neighbor)
            for neighbor in self._neighbors
            if key_of(neighbor.address) not in keys
        )

    def probe(self, addresses: list[SocketAddress], input_length: int) -> None:
        """Queue announcements of this driver to addresses that a received datagram contains. In
        total, the announcements are at most as long as that datagram.
        """
        count = input_length // len(self._self_datagram)
        for address in addresses:
            if count == 0 or len(self._probed) == PROBES_MAX:
                return
            if key_of(address) not in self._probed:
                self._probed.add(key_of(address))
                self._targets.append((address, None))
                count -= 1

    def start_names(
        self, names: Iterable[CacheEntry], trusted: list[SocketAddress], now_ms: int
    ) -> None:
        """Queue announcements of all names to all neighbors, unless announcements from an earlier
        call are still queued.
        """
        if self._is_naming:
            return
        entries = [
            ResolutionEntry(entry.name, entry.address, now_ms - entry.last_activity_ms)
            for entry in names
        ]
        entries = [entry for entry in entries if fits(entry, self._mtu_length)]
        if entries:
            self._is_naming = True
            self._names = self._name_round(entries, {key_of(address) for address in trusted})

    def _name_round(self, entries: list[ResolutionEntry], trusted: set[Key]) -> Iterator[Sending]:
        whole: dict[int, tuple[bytes, int]] = {}
        for neighbor in self._neighbors:
            if neighbor.address in self._neighbors:
                is_trusted = key_of(neighbor.address) in trusted
                for datagram in self._names_for(neighbor, entries, whole, is_trusted):
                    yield datagram, neighbor.address
        self._is_naming = False

    def _names_for(
        self,
        neighbor: Neighbor,
        entries: list[ResolutionEntry],
        whole: dict[int, tuple[bytes, int]],
        is_trusted: bool,
    ) -> Iterator[bytes]:
        """Yield datagrams that announce names to a neighbor: all names, or as many as the
        neighbor's byte limit currently permits.
        """
        remaining = len(entries)
        at = neighbor.next_name % remaining
        while remaining > 0:
            length_max = self._mtu_length if is_trusted else neighbor.credit_bytes
            if length_max >= self._mtu_length:
                if at not in whole:
                    whole[at] = encode_from(entries, at, self._mtu_length)
                datagram, end = whole[at]
            else:
                datagram, end = encode_from(entries, at, length_max)
            if not datagram:
                neighbor.next_name = at
                return
            if not is_trusted:
                neighbor.credit_bytes -= len(datagram)
            remaining -= end - at
            at = end % len(entries)
            yield datagram
        neighbor.next_name = 0

    def take(self, count: int) -> Iterator[Sending]:
        """Remove and return at most `count` datagrams from the queue."""
        return islice(chain(self._self_sendings(), self._names), count)

    def _self_sendings(self) -> Iterator[Sending]:
        while self._targets:
            address, neighbor = self._targets.popleft()
            if neighbor is not None:
                if neighbor.credit_bytes < len(self._self_datagram):
                    continue
                neighbor.credit_bytes -= len(self._self_datagram)
            yield self._self_datagram, address
