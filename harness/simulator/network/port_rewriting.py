"""Source ports that the middlebox changes: the way there, and the way back.

    a:54321 -> b:24325    leaves as   a:40001 -> b:24325      remembered: 40001, 24325 -> 54321
    a:40001 <- b:24325    arrives as  a:54321 <- b:24325

What the relay does to packets, done to the names in envelopes. IPv4 only.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.channel.socket_address import PORT
from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.simulator.network.in_flight import DESTINATION

WAYS_MAX = 1024
"""Pairs of ports that one direction remembers: four for each stream that a scenario may have.
Further ones are changed, but not back."""

_NEW, _PEER, _ORIGINAL = range(3)
_SOURCE_PORT, _DESTINATION_PORT = PORT, DESTINATION + PORT


class MovedPorts(NamedTuple):
    """What is remembered for each link direction."""

    ways: Any  # int64[link, n, 3]: new port, the peer's port, original port
    counts: Any  # int64[link]


def make_moved_ports(links: int) -> MovedPorts:
    """Nothing is remembered yet, of so many link directions."""
    return MovedPorts(
        np.zeros((links, WAYS_MAX, 3), dtype=np.int64), np.zeros(links, dtype=np.int64)
    )


@kernel
def set_ports(moved: MovedPorts, buf: Any, envelope: int, link: int, source_port: int) -> None:
    """Give a datagram the ports that it is to have; `source_port` 0 leaves its own alone."""
    source, peer = _port(buf, envelope + _SOURCE_PORT), _port(buf, envelope + _DESTINATION_PORT)
    back = moved.ways[link ^ 1]
    for index in range(moved.counts[link ^ 1]):
        if back[index, _NEW] == peer and back[index, _PEER] == source:
            _set_port(buf, envelope + _DESTINATION_PORT, back[index, _ORIGINAL])
            break
    if source_port != 0:
        _remember(moved, link, source_port, peer, source)
        _set_port(buf, envelope + _SOURCE_PORT, source_port)


@kernel
def _remember(moved: MovedPorts, link: int, new: int, peer: int, original: int) -> None:
    ways = moved.ways[link]
    count = moved.counts[link]
    at = count
    for index in range(count):
        if ways[index, _NEW] == new and ways[index, _PEER] == peer:
            at = index
    if at == WAYS_MAX:
        return
    ways[at, _NEW] = new
    ways[at, _PEER] = peer
    ways[at, _ORIGINAL] = original
    moved.counts[link] = max(count, at + 1)


@kernel
def _port(buf: Any, at: int) -> int:
    return int(np.int64(buf[at])) << 8 | int(np.int64(buf[at + 1]))


@kernel
def _set_port(buf: Any, at: int, port: int) -> None:
    buf[at] = port >> 8
    buf[at + 1] = port & 0xFF
