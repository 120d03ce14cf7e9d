"""A cache of the names that other drivers have announced. Entries expire.

    (name, IP version) -> address, time of the last activity of its driver

The cache has a maximum size, because its content is from the network. Source: spec 1.9,
aeron_name_resolver_cache, Aeron 1.53.
"""

from collections.abc import Iterator
from typing import NamedTuple

from windtunnel.driver.channel.socket_address import SocketAddress

ENTRIES_MAX = 1024
"""Maximum number of cached names: more than a real network has drivers, but few enough to announce
all."""


class CacheEntry(NamedTuple):
    """A driver's name, its address and the time of its last activity."""

    name: str
    address: SocketAddress
    last_activity_ms: int


class NameCache:
    """The names that other drivers announced and that have not expired."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._entries: dict[tuple[str, int], CacheEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[CacheEntry]:
        return iter(self._entries.values())

    def add_or_update(self, entry: CacheEntry) -> bool:
        """Add or replace a name's entry. Returns False if the cache is full."""
        key = (entry.name, entry.address.ip.version)
        if key not in self._entries and len(self._entries) >= ENTRIES_MAX:
            return False
        self._entries[key] = entry
        return True

    def find(self, name: str) -> SocketAddress | None:
        """Return the address of a name, preferably IPv4, or None if the name is unknown."""
        entry = self._entries.get((name, 4)) or self._entries.get((name, 6))
        return None if entry is None else entry.address

    def expire(self, now_ms: int) -> int:
        """Remove the expired entries. Returns the number of removed entries."""
        old = [
            key
            for key, entry in self._entries.items()
            if entry.last_activity_ms + self._timeout_ms <= now_ms
        ]
        for key in old:
            del self._entries[key]
        return len(old)
