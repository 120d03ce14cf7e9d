"""Encodes and decodes resolution frames.

`decode` validates datagrams from the network. It returns only the valid entries, and the first
fault. Source: spec 1.9, Aeron 1.53.
"""

import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header, resolution

ENTRIES_MAX = 1 << 16
"""Upper limit of the number of entries, more than a UDP datagram can contain."""


class ResolutionEntry(NamedTuple):
    """A driver's name and address in a resolution frame."""

    name: str
    address: SocketAddress
    age_ms: int = 0
    """Time in milliseconds since the last activity of the driver with this name."""
    is_self: bool = False
    """Whether the entry describes the sender of the datagram."""


class Decoded(NamedTuple):
    """The entries decoded from a datagram, up to its end or to its first invalid entry."""

    entries: tuple[ResolutionEntry, ...]
    is_invalid: bool = False
    """Whether the datagram is truncated or is not a resolution frame."""
    unknown_type: int | None = None
    """The unknown type of the entry at which decoding stopped, or None."""


def encode_name(text: str) -> bytes:
    """Return a name as it is encoded in a resolution frame."""
    return text.encode("utf-8", "surrogateescape")


def _length_of(entry: ResolutionEntry) -> int:
    length = resolution.ADDRESS + len(entry.address.ip.packed) + 2 + len(encode_name(entry.name))
    return int(align(length, resolution.ENTRY_ALIGNMENT))


def encode(entries: Iterable[ResolutionEntry], length_max: int) -> Iterator[bytes]:
    """Encode entries in datagrams of at most `length_max` bytes.

    An entry that does not fit into a datagram is omitted.
    """
    fitting = [entry for entry in entries if fits(entry, length_max)]
    at = 0
    while at < len(fitting):
        datagram, at = encode_from(fitting, at, length_max)
        yield datagram


def fits(entry: ResolutionEntry, length_max: int) -> bool:
    """Return whether a datagram of `length_max` bytes has room for an entry."""
    return resolution.FIRST_ENTRY + _length_of(entry) <= length_max


def encode_from(
    entries: Sequence[ResolutionEntry], first: int, length_max: int
) -> tuple[bytes, int]:
    """Encode as many entries as fit into one datagram, starting with the entry at index `first`.

    Returns: the datagram, empty if the first entry does not fit, and the index of the next entry
    """
    length, end = resolution.FIRST_ENTRY, first
    while end < len(entries) and length + _length_of(entries[end]) <= length_max:
        length += _length_of(entries[end])
        end += 1
    return (_frame(entries[first:end], length) if end > first else b""), end


def _frame(entries: Sequence[ResolutionEntry], length: int) -> bytes:
    buf = np.zeros(length, dtype=np.uint8)
    at = resolution.FIRST_ENTRY
    for entry in entries:
        packed = np.frombuffer(bytearray(entry.address.ip.packed), dtype=np.uint8)
        # Use an extra byte, because compiled kernels cannot use an empty array.
        name = np.frombuffer(bytearray(encode_name(entry.name) + b"\0"), dtype=np.uint8)
        at += resolution.write_entry(
            buf,
            at,
            types.SELF if entry.is_self else 0,
            entry.address.port,
            entry.age_ms,
            packed,
            packed.size,
            name,
            name.size - 1,
        )
    resolution.write_header(buf, 0, length)
    return buf.tobytes()


def decode(datagram: bytes, entries_max: int = ENTRIES_MAX) -> Decoded:
    """Decode a resolution datagram. Its frame length is ignored, as in Aeron's drivers.

    A datagram with more than `entries_max` entries is invalid after that many entries.
    """
    buf = np.frombuffer(bytearray(datagram), dtype=np.uint8)
    is_frame = (
        len(datagram) >= resolution.FIRST_ENTRY
        and header.version(buf, 0) == types.VERSION
        and header.frame_type(buf, 0) == types.RES
    )
    if not is_frame:
        return Decoded((), is_invalid=True)
    entries: list[ResolutionEntry] = []
    at = resolution.FIRST_ENTRY
    while at < len(datagram):
        if len(entries) == entries_max:
            return Decoded(tuple(entries), is_invalid=True)
        length = int(resolution.check_entry(buf, at, len(datagram) - at))
        if length == resolution.INVALID:
            kind = int(datagram[at + resolution.RES_TYPE])
            is_known = kind in (resolution.NAME_TO_IP4, resolution.NAME_TO_IP6)
            is_cut = is_known or len(datagram) - at < resolution.ADDRESS
            return Decoded(tuple(entries), is_cut, None if is_cut else kind)
        entries.append(_entry_at(buf, datagram, at))
        at += length
    return Decoded(tuple(entries))


def _entry_at(buf: np.ndarray, datagram: bytes, at: int) -> ResolutionEntry:
    address_length = int(resolution.address_length(buf, at))
    packed = datagram[at + resolution.ADDRESS : at + resolution.ADDRESS + address_length]
    family = socket.AF_INET if address_length == 4 else socket.AF_INET6
    name_at = int(resolution.name_at(buf, at))
    name = datagram[name_at : name_at + int(resolution.name_length(buf, at))]
    return ResolutionEntry(
        name.decode("utf-8", "surrogateescape"),
        SocketAddress(socket.inet_ntop(family, packed), int(resolution.udp_port(buf, at))),
        # An entry with a negative age would never expire.
        max(0, int(resolution.age_ms(buf, at))),
        bool(resolution.is_self(buf, at)),
    )
