"""Names that other drivers told of, each until it was not heard of for too long.

    (name, IP version) -> address, when its driver last spoke, when to forget it

Bounded: what is told comes from the network. Source: spec 1.9, aeron_name_resolver_cache, Aeron
1.53.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from windtunnel.driver.channel.socket_address import SocketAddress

ENTRIES_MAX = 1024
"""Ours: beyond any real number of drivers, and little enough to send around."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One name."""

    name: str
    address: SocketAddress
    last_activity_ms: int


class NameCache:
    """The names that are known at the moment."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._entries: dict[tuple[str, int], CacheEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[CacheEntry]:
        return iter(self._entries.values())

    def add_or_update(self, entry: CacheEntry) -> bool:
        """Take what is told of a name; the latest wins. Returns False when there is no room."""
        key = (entry.name, entry.address.ip.version)
        if key not in self._entries and len(self._entries) >= ENTRIES_MAX:
            return False
        self._entries[key] = entry
        return True

    def find(self, name: str) -> SocketAddress | None:
        """The address of a name, IPv4 where there is one."""
        entry = self._entries.get((name, 4)) or self._entries.get((name, 6))
        return None if entry is None else entry.address

    def expire(self, now_ms: int) -> int:
        """Forget what is too old. Returns how many."""
        old = [
            key
            for key, entry in self._entries.items()
            if entry.last_activity_ms + self._timeout_ms <= now_ms
        ]
        for key in old:
            del self._entries[key]
        return len(old)
