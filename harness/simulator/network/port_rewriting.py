"""Rewrites source ports of simulated datagrams, and restores the original ports in the replies.

    a:54321 -> b:24325    leaves as   a:40001 -> b:24325      recorded: 40001, 24325 -> 54321
    a:40001 <- b:24325    arrives as  a:54321 <- b:24325

Rewrites socket names in envelopes, as the relay rewrites packets. IPv4 only.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.channel.socket_address import PORT
from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.simulator.network.in_flight import DESTINATION

PAIRS_MAX = 1024
"""Maximum number of port pairs recorded per direction: four for each stream that a scenario may
have. Additional source ports are rewritten, but not restored.
"""

_NEW, _PEER, _ORIGINAL = range(3)
_SOURCE_PORT, _DESTINATION_PORT = PORT, DESTINATION + PORT


class RewrittenPorts(NamedTuple):
    """The recorded port pairs of each link direction."""

    pairs: Any  # int64[link, n, 3]: new port, the peer's port, original port
    counts: Any  # int64[link]


def make_rewritten_ports(links: int) -> RewrittenPorts:
    """Create an empty table of port pairs for each link direction."""
    return RewrittenPorts(
        np.zeros((links, PAIRS_MAX, 3), dtype=np.int64), np.zeros(links, dtype=np.int64)
    )


@kernel
def set_ports(table: RewrittenPorts, buf: Any, envelope: int, link: int, source_port: int) -> None:
    """Rewrite a datagram's ports. If `source_port` is 0, the source port does not change."""
    source, peer = _port(buf, envelope + _SOURCE_PORT), _port(buf, envelope + _DESTINATION_PORT)
    back = table.pairs[link ^ 1]
    for index in range(table.counts[link ^ 1]):
        if back[index, _NEW] == peer and back[index, _PEER] == source:
            _set_port(buf, envelope + _DESTINATION_PORT, back[index, _ORIGINAL])
            break
    if source_port != 0:
        _record(table, link, source_port, peer, source)
        _set_port(buf, envelope + _SOURCE_PORT, source_port)


@kernel
def _record(table: RewrittenPorts, link: int, new: int, peer: int, original: int) -> None:
    pairs = table.pairs[link]
    count = table.counts[link]
    at = count
    for index in range(count):
        if pairs[index, _NEW] == new and pairs[index, _PEER] == peer:
            at = index
    if at == PAIRS_MAX:
        return
    pairs[at, _NEW] = new
    pairs[at, _PEER] = peer
    pairs[at, _ORIGINAL] = original
    table.counts[link] = max(count, at + 1)


@kernel
def _port(buf: Any, at: int) -> int:
    return int(np.int64(buf[at])) << 8 | int(np.int64(buf[at + 1]))


@kernel
def _set_port(buf: Any, at: int, port: int) -> None:
    buf[at] = port >> 8
    buf[at + 1] = port & 0xFF
