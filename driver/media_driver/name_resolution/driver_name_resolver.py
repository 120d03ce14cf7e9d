"""Name resolution between drivers by a gossip protocol.

    every  10 ms   receive datagrams; expire names and neighbors
    every   1 s    announce this driver             -> bootstrap neighbors and neighbors
    every   2 s    announce all names in the cache  -> neighbors
    every  10 s    look up bootstrap neighbors that are not neighbors

A driver becomes a neighbor when it announces itself from the announced address, and remains a
neighbor while it does so. When another driver names an address, one announcement is sent to the
address, so the driver there announces itself in turn. `announcements` limits what is sent. Channels
may use the name of a driver instead of a host. Source: spec 1.9, aeron_driver_name_resolver, Aeron
1.53.
"""

import os
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.address_text import HostPort
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.cnc.error_log import RecordError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.name_resolution.announcements import Announcements
from windtunnel.driver.media_driver.name_resolution.lookups import Lookup, Lookups
from windtunnel.driver.media_driver.name_resolution.name_cache import CacheEntry, NameCache
from windtunnel.driver.media_driver.name_resolution.neighbors import Neighbors, key_of
from windtunnel.driver.media_driver.name_resolution.resolution_datagram import (
    ResolutionEntry,
    decode,
    encode,
)
from windtunnel.driver.media_driver.name_resolution.resolver_socket import (
    DATAGRAM_LENGTH_MAX,
    ResolverSocket,
)

NEIGHBORS = 15
CACHE_ENTRIES = 16
BOOTSTRAP_NEIGHBOR = 21
"""Type ids of the name resolver's counters."""

DUTY_CYCLE_MS = 10
SENDS_PER_TURN = 8
ENTRIES_PER_TURN = 128
"""Maximum number of datagrams sent, and of entries after which no more datagrams are processed, per
duty cycle, since resolution shares the conductor's thread with all clients."""
ERROR_KIND = "name resolution"
"""Name under which the error log groups errors whose messages contain what other drivers sent."""
ENTRIES_PER_DATAGRAM_MAX = 512
"""Maximum number of entries that are processed per datagram. Fewer fit into the usual MTUs."""


class GossipSettings(NamedTuple):
    """This driver's name, address and intervals in the gossip protocol."""

    name: str
    interface: SocketAddress
    bootstrap: tuple[HostPort, ...] = ()
    mtu_length: int = 1_408
    neighbor_timeout_ms: int = 10_000
    self_resolution_interval_ms: int = 1_000
    neighbor_resolution_interval_ms: int = 2_000
    bootstrap_resolution_interval_ms: int = 10_000


@dataclass(eq=False, slots=True)
class _Bootstrap:
    endpoint: HostPort
    text: str
    counter_id: int
    address: SocketAddress | None = None
    lookup: Lookup | None = None

    @property
    def label(self) -> str:
        resolved = "" if self.address is None else self.address.text
        return f"Bootstrap neighbor: name={self.text} resolved={resolved}"


def _text_of(address: HostPort) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}"


class DriverNameResolver:
    """A NameSource for the names that other drivers announce. Only the conductor uses it."""

    is_polled = True

    def __init__(
        self,
        settings: GossipSettings,
        socket: ResolverSocket,
        lookups: Lookups,
        manager: CountersManager,
        values: np.ndarray,
        record_error: RecordError,
        now_ns: int,
    ) -> None:
        self._settings = settings
        self._socket = socket
        self._lookups = lookups
        self._manager = manager
        self._values = values
        self._record_error = record_error
        # If the port is 0, the system chose a port. Announce the chosen port.
        self._local = settings.interface.with_port(socket.local.port)
        self._cache = NameCache(settings.neighbor_timeout_ms)
        self._neighbors = Neighbors(settings.neighbor_timeout_ms)
        self._waiting: deque[tuple[bytes, SocketAddress]] = deque()
        self._bootstraps = [
            self._make_bootstrap(index, endpoint)
            for index, endpoint in enumerate(settings.bootstrap)
        ]
        self._neighbors_id = manager.allocate(
            NEIGHBORS, b"", f"Resolver neighbors: bound {self._local.text}"
        )
        self._entries_id = manager.allocate(
            CACHE_ENTRIES, b"", f"Resolver cache entries: name={settings.name}"
        )
        self_entry = ResolutionEntry(settings.name, self._local, is_self=True)
        (self._self_datagram,) = encode([self_entry], DATAGRAM_LENGTH_MAX)
        assert decode(self._self_datagram).entries == (self_entry,)
        self._announcements = Announcements(
            self._self_datagram, settings.mtu_length, self._neighbors
        )
        # Compile the kernel now; otherwise the first invalid datagram would stall the conductor.
        counters.add_atomic(values, system_counters.INVALID_PACKETS, 0)
        now_ms = now_ns // NS_PER_MS
        self._work_deadline_ms = now_ms
        self._self_deadline_ms = now_ms
        self._neighbor_deadline_ms = now_ms + settings.neighbor_resolution_interval_ms
        self._bootstrap_deadline_ms = now_ms + settings.bootstrap_resolution_interval_ms
        self._resolve_bootstraps()

    def _make_bootstrap(self, index: int, endpoint: HostPort) -> _Bootstrap:
        bootstrap = _Bootstrap(endpoint, _text_of(endpoint), counters.NULL_COUNTER_ID)
        bootstrap.counter_id = self._manager.allocate(
            BOOTSTRAP_NEIGHBOR, index.to_bytes(4, "little"), bootstrap.label
        )
        return bootstrap

    def substitute(self, host: str, key: str) -> str:
        address = self._cache.find(host)
        if address is None and host == self._settings.name:
            address = self._local
        if address is None:
            return host
        return f"{address.host}%{address.scope_id}" if address.scope_id else address.host

    def do_work(self, now_ns: int) -> int:
        now_ms = now_ns // NS_PER_MS
        if now_ms < self._work_deadline_ms:
            return 0
        self._work_deadline_ms = now_ms + DUTY_CYCLE_MS
        settings = self._settings
        self._lookups.collect()
        work_count = self._collect_bootstraps() + self._poll(now_ms) + self._expire(now_ms)
        if now_ms >= self._self_deadline_ms:
            self._announce_self()
            self._self_deadline_ms = now_ms + settings.self_resolution_interval_ms
        if now_ms >= self._neighbor_deadline_ms:
            self._announcements.start_names(self._cache, self._trusted(), now_ms)
            self._neighbor_deadline_ms = now_ms + settings.neighbor_resolution_interval_ms
        if now_ms >= self._bootstrap_deadline_ms:
            self._resolve_bootstraps()
            self._bootstrap_deadline_ms = now_ms + settings.bootstrap_resolution_interval_ms
        for datagram, address in self._announcements.take(SENDS_PER_TURN):
            work_count += self._send(datagram, address)
        return work_count

    def close(self) -> None:
        self._socket.close()

    def _poll(self, now_ms: int) -> int:
        if not self._waiting:
            self._waiting.extend(self._socket.receive())
        length = entry_count = 0
        while self._waiting and entry_count < ENTRIES_PER_TURN:
            datagram, source = self._waiting.popleft()
            entry_count += self.on_datagram(datagram, source, now_ms)
            length += len(datagram)
        return length

    def on_datagram(self, datagram: bytes, source: SocketAddress, now_ms: int) -> int:
        """Process a resolution datagram from another driver. Returns the number of its entries."""
        decoded = decode(datagram, ENTRIES_PER_DATAGRAM_MAX)
        named = [self._on_entry(entry, source, now_ms) for entry in decoded.entries]
        self._neighbors.on_received(source, len(datagram))
        self._announcements.probe([address for address in named if address], len(datagram))
        self._set_counts()
        if decoded.is_invalid:
            # Atomic, because sender and receiver increment this counter too.
            counters.add_atomic(self._values, system_counters.INVALID_PACKETS, 1)
        elif decoded.unknown_type is not None:
            self._record_error(
                ErrorCode.GENERIC_ERROR,
                f"Invalid res type on entry: {decoded.unknown_type}",
                ERROR_KIND,
            )
        return len(decoded.entries)

    def _on_entry(
        self, entry: ResolutionEntry, source: SocketAddress, now_ms: int
    ) -> SocketAddress | None:
        """Process an entry of a resolution datagram. Returns the entry's address if the driver at
        this address has not announced itself yet, otherwise None.
        """
        address = entry.address
        if entry.is_self and address.is_unspecified:
            address = source
        if address.port == self._local.port and entry.name == self._settings.name:
            return None
        last_ms = now_ms - entry.age_ms
        is_cached = self._cache.add_or_update(CacheEntry(entry.name, address, last_ms))
        if entry.is_self and key_of(address) == key_of(source):
            if is_cached or source in self._neighbors:
                self._neighbors.on_announcement(source, last_ms)
            return None
        is_known = address in self._neighbors or address.is_unspecified
        return None if is_known or not is_cached else address

    def _expire(self, now_ms: int) -> int:
        work_count = self._cache.expire(now_ms) + self._neighbors.expire(now_ms)
        if work_count:
            self._set_counts()
        return work_count

    def _set_counts(self) -> None:
        self._set_count(self._entries_id, len(self._cache))
        self._set_count(self._neighbors_id, len(self._neighbors))

    def _set_count(self, counter_id: int, value: int) -> None:
        counters.set_release(self._values, counter_id, value)

    def _trusted(self) -> list[SocketAddress]:
        """Return the resolved addresses of the configured bootstrap neighbors."""
        return [item.address for item in self._bootstraps if item.address is not None]

    def _announce_self(self) -> None:
        self._announcements.start_self(self._trusted())
        for bootstrap in self._bootstraps:
            self._set_count(bootstrap.counter_id, int(bootstrap.address in self._neighbors))

    def _send(self, datagram: bytes, to: SocketAddress) -> int:
        """Send a datagram to a neighbor. Returns 1, or 0 after a permanent error, which is recorded
        in the error log.
        """
        result = self._socket.send(datagram, to)
        if result < 0:
            reason = os.strerror(-result)
            self._record_error(
                ErrorCode.GENERIC_ERROR,
                f"Failed to send resolution frames to neighbor: {to}: ({-result}) {reason}",
                ERROR_KIND,
            )
            return 0
        if result < len(datagram):
            counters.add_atomic(self._values, system_counters.SHORT_SENDS, 1)
        return 1

    def _resolve_bootstraps(self) -> None:
        for bootstrap in self._bootstraps:
            if bootstrap.lookup is None and bootstrap.address not in self._neighbors:
                bootstrap.lookup = self._lookups.submit(
                    bootstrap.endpoint.host, "bootstrap_neighbor"
                )
        self._collect_bootstraps()

    def _collect_bootstraps(self) -> int:
        """Process finished lookups of bootstrap neighbors. Returns the number of these lookups."""
        work_count = 0
        for bootstrap in self._bootstraps:
            if bootstrap.lookup is None or not bootstrap.lookup.is_done:
                continue
            lookup, bootstrap.lookup = bootstrap.lookup, None
            try:
                host, scope_id = lookup.result()
                bootstrap.address = SocketAddress(host, bootstrap.endpoint.port, scope_id)
            except UnknownHostError as error:
                bootstrap.address = None
                self._record_error(ErrorCode.UNKNOWN_HOST, str(error))
            self._manager.update_label(bootstrap.counter_id, bootstrap.label)
            work_count += 1
        return work_count
