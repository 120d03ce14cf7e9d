"""Name resolution between drivers by a gossip protocol.

    every  10 ms   receive datagrams; expire names and neighbours
    every   1 s    announce this driver             -> bootstrap neighbours and neighbours
    every   2 s    announce all names in the cache  -> neighbours
    every  10 s    look up bootstrap neighbours that are not neighbours

Any announced driver becomes a neighbour. It remains a neighbour while it announces itself. Channels
may use the name of a driver instead of a host. Source: spec 1.9, aeron_driver_name_resolver, Aeron
1.53.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.address_text import HostPort
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.name_resolution.lookups import Lookup, Lookups
from windtunnel.driver.media_driver.name_resolution.name_cache import CacheEntry, NameCache
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
NEIGHBORS_MAX = 1024
"""Maximum number of neighbours, since datagrams could otherwise exhaust this driver's memory."""


@dataclass(frozen=True, slots=True)
class GossipSettings:
    """This driver's name, address and intervals in the gossip protocol."""

    name: str
    interface: SocketAddress
    bootstrap: tuple[HostPort, ...] = ()
    mtu_length: int = 1_408
    neighbor_timeout_ms: int = 10_000
    self_resolution_interval_ms: int = 1_000
    neighbor_resolution_interval_ms: int = 2_000
    bootstrap_resolution_interval_ms: int = 10_000


@dataclass(slots=True)
class _Neighbor:
    address: SocketAddress
    last_activity_ms: int


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
    """A NameSource with the names that other drivers announce. Only the conductor uses it."""

    def __init__(
        self,
        settings: GossipSettings,
        socket: ResolverSocket,
        lookups: Lookups,
        manager: CountersManager,
        values: np.ndarray,
        record_error: Callable[[int, str], None],
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
        self._neighbors: dict[tuple[str, int], _Neighbor] = {}
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
            work_count += self._send_self()
            self._self_deadline_ms = now_ms + settings.self_resolution_interval_ms
        if now_ms >= self._neighbor_deadline_ms:
            work_count += self._send_names(now_ms)
            self._neighbor_deadline_ms = now_ms + settings.neighbor_resolution_interval_ms
        if now_ms >= self._bootstrap_deadline_ms:
            self._resolve_bootstraps()
            self._bootstrap_deadline_ms = now_ms + settings.bootstrap_resolution_interval_ms
        return work_count

    def close(self) -> None:
        self._socket.close()

    def _poll(self, now_ms: int) -> int:
        length = 0
        for datagram, source in self._socket.receive():
            self.on_datagram(datagram, source, now_ms)
            length += len(datagram)
        return length

    def on_datagram(self, datagram: bytes, source: SocketAddress, now_ms: int) -> None:
        """Process a resolution datagram from another driver."""
        decoded = decode(datagram)
        for entry in decoded.entries:
            self._on_entry(entry, source, now_ms)
        if decoded.is_invalid:
            # Atomic, because sender and receiver increment this counter too.
            counters.add_atomic(self._values, system_counters.INVALID_PACKETS, 1)
        elif decoded.unknown_type is not None:
            self._record_error(
                ErrorCode.GENERIC_ERROR, f"Invalid res type on entry: {decoded.unknown_type}"
            )

    def _on_entry(self, entry: ResolutionEntry, source: SocketAddress, now_ms: int) -> None:
        address = entry.address
        if entry.is_self and address.is_unspecified:
            address = source
        if address.port == self._local.port and entry.name == self._settings.name:
            return
        last_ms = now_ms - entry.age_ms
        is_cached = self._cache.add_or_update(CacheEntry(entry.name, address, last_ms))
        self._set_count(self._entries_id, len(self._cache))
        neighbor = self._neighbors.get((address.host, address.port))
        if neighbor is not None:
            if entry.is_self:
                neighbor.last_activity_ms = last_ms
        elif is_cached and len(self._neighbors) < NEIGHBORS_MAX:
            self._neighbors[address.host, address.port] = _Neighbor(address, last_ms)
            self._set_count(self._neighbors_id, len(self._neighbors))

    def _expire(self, now_ms: int) -> int:
        work_count = self._cache.expire(now_ms)
        timeout_ms = self._settings.neighbor_timeout_ms
        for key, neighbor in list(self._neighbors.items()):
            if neighbor.last_activity_ms + timeout_ms <= now_ms:
                del self._neighbors[key]
                work_count += 1
        if work_count:
            self._set_count(self._entries_id, len(self._cache))
            self._set_count(self._neighbors_id, len(self._neighbors))
        return work_count

    def _set_count(self, counter_id: int, value: int) -> None:
        counters.set_release(self._values, counter_id, value)

    def _is_neighbor(self, address: SocketAddress | None) -> bool:
        return address is not None and (address.host, address.port) in self._neighbors

    def _send_self(self) -> int:
        work_count = 0
        sent_to = set()
        for bootstrap in self._bootstraps:
            if bootstrap.address is not None:
                sent_to.add((bootstrap.address.host, bootstrap.address.port))
                work_count += self._send(self._self_datagram, bootstrap.address)
        for key, neighbor in self._neighbors.items():
            if key not in sent_to:
                work_count += self._send(self._self_datagram, neighbor.address)
        for bootstrap in self._bootstraps:
            self._set_count(bootstrap.counter_id, int(self._is_neighbor(bootstrap.address)))
        return work_count

    def _send_names(self, now_ms: int) -> int:
        entries = [
            ResolutionEntry(entry.name, entry.address, now_ms - entry.last_activity_ms)
            for entry in self._cache
        ]
        return sum(
            self._send(datagram, neighbor.address)
            for datagram in encode(entries, self._settings.mtu_length)
            for neighbor in self._neighbors.values()
        )

    def _send(self, datagram: bytes, to: SocketAddress) -> int:
        """Send a datagram. Returns 1, or 0 after a permanent error."""
        result = self._socket.send(datagram, to)
        if result < 0:
            reason = os.strerror(-result)
            self._record_error(
                ErrorCode.GENERIC_ERROR,
                f"Failed to send resolution frames to neighbor: {to}: ({-result}) {reason}",
            )
            return 0
        if result < len(datagram):
            counters.add_atomic(self._values, system_counters.SHORT_SENDS, 1)
        return 1

    def _resolve_bootstraps(self) -> None:
        for bootstrap in self._bootstraps:
            if bootstrap.lookup is None and not self._is_neighbor(bootstrap.address):
                bootstrap.lookup = self._lookups.submit(
                    bootstrap.endpoint.host, "bootstrap_neighbor"
                )
        self._collect_bootstraps()

    def _collect_bootstraps(self) -> int:
        """Process finished lookups of bootstrap neighbours. Returns the number of lookups."""
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
