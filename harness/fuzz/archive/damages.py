"""Damage to the files of a dead archive that it must detect when it starts.

Each kind returns what is in the place of `archive.catalog`: None if the file is removed. Flipped
bits in a field, such as a channel, cannot be detected without checksums, and are not among them.
"""

import random
import struct
from collections.abc import Callable

ENTRIES_AT, HEADER_LENGTH = 32, 32
"""Length of the catalog's header, and of an entry's. Source: archive-protocol 4.1, 4.2."""
EDGES = (0, -1, 1, 1 << 30, -(1 << 31), 31)


def used_length(catalog: bytes) -> int:
    """Return the length of the catalog's part that has entries."""
    return ENTRIES_AT + sum(HEADER_LENGTH + length for _, length in entries(catalog))


def entries(catalog: bytes) -> list[tuple[int, int]]:
    """Return the offset of each entry, and its length without its header."""
    found, at = [], ENTRIES_AT
    while at + HEADER_LENGTH <= len(catalog):
        (length,) = struct.unpack_from("<i", catalog, at)
        if length <= 0:
            break
        found.append((at, length))
        at += HEADER_LENGTH + length
    return found


def removed(chance: random.Random, catalog: bytes) -> bytes | None:
    return None


def zeroed(chance: random.Random, catalog: bytes) -> bytes | None:
    return bytes(len(catalog))


def emptied(chance: random.Random, catalog: bytes) -> bytes | None:
    return b""


def truncated(chance: random.Random, catalog: bytes) -> bytes | None:
    return catalog[: chance.randrange(used_length(catalog))]


def wrong_length(chance: random.Random, catalog: bytes) -> bytes | None:
    """Change the length of an entry that is not the last one."""
    made = bytearray(catalog)
    all_entries = entries(catalog)
    at, length = all_entries[chance.randrange(max(1, len(all_entries) - 1))]
    struct.pack_into("<i", made, at, chance.choice([edge for edge in EDGES if edge != length]))
    return bytes(made)


DAMAGES: tuple[Callable[[random.Random, bytes], bytes | None], ...] = (
    removed, zeroed, emptied, truncated, wrong_length,
)  # fmt: skip
