"""Rewrites the source ports of outgoing datagrams, and the destination ports of replies.

    a:54321 -> b:24325    leaves as   a:40001 -> b:24325      recorded: 40001, 24325 -> 54321
    a:40001 <- b:24325    arrives as  a:54321 <- b:24325

A receiver sees its sender change ports, as behind a NAT that has lost its table. Replies to either
port reach the sender.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.middlebox.engine.packet import port, set_port
from windtunnel.harness.scenario.resolved.case import Case

PAIRS_MIN = 64
PAIRS_MAX = 1 << 14
"""Maximum number of port pairs recorded per direction. For other pairs, replies stay unchanged."""

_SOURCE, _DESTINATION = 0, 1
_NEW, _PEER, _ORIGINAL = range(3)


class RewrittenPorts(NamedTuple):
    """A table of the source ports that were rewritten in each link direction, with the original
    ports.
    """

    pairs: Any  # int64[link, n, 3]: new port, the peer's port, original port
    counts: Any  # int64[link]
    overflows: Any  # int64[link]: datagrams whose port pair could not be recorded


def make_rewritten_ports(case: Case) -> RewrittenPorts:
    """Create an empty table that is large enough for all ports that can be rewritten in a run."""
    links = len(case.link_names)
    return RewrittenPorts(
        pairs=np.zeros((links, _pairs_max(case), 3), dtype=np.int64),
        counts=np.zeros(links, dtype=np.int64),
        overflows=np.zeros(links, dtype=np.int64),
    )


def _pairs_max(case: Case) -> int:
    """Return the number of port pairs to reserve for each link direction, at least PAIRS_MIN and at
    most PAIRS_MAX.
    """
    new = {fault.source_port for fault in case.faults if fault.source_port}
    # Receivers use the case's ports. Each publication also has a port that replies go to, and a
    # restarted driver uses other ports.
    publications = sum(case.sessions_of(each) for each in case.traffic)
    peers = (1 + len(case.events)) * (len(case.ports) + publications)
    return min(max(len(new) * peers, PAIRS_MIN), PAIRS_MAX)


@kernel
def set_ports(
    table: RewrittenPorts, buf: Any, at: int, envelope_length: int, link: int, source_port: int
) -> bool:
    """Rewrite the ports of a datagram. Returns whether the checksum of the datagram must be
    updated.

    `source_port` is the source port to set, or 0 to keep it.
    """
    is_changed = _restore(table, buf, at, envelope_length, link ^ 1)
    if source_port == 0:
        return is_changed
    original = port(buf, at, envelope_length, _SOURCE)
    peer = port(buf, at, envelope_length, _DESTINATION)
    _record(table, link, source_port, peer, original)
    set_port(buf, at, envelope_length, _SOURCE, source_port)
    return True


@kernel
def _record(table: RewrittenPorts, link: int, new: int, peer: int, original: int) -> None:
    pairs = table.pairs[link]
    for index in range(table.counts[link]):
        if pairs[index, _NEW] == new and pairs[index, _PEER] == peer:
            pairs[index, _ORIGINAL] = original
            return
    if table.counts[link] == len(pairs):
        table.overflows[link] += 1
        return
    index = table.counts[link]
    pairs[index, _NEW] = new
    pairs[index, _PEER] = peer
    pairs[index, _ORIGINAL] = original
    table.counts[link] += 1


@kernel
def _restore(table: RewrittenPorts, buf: Any, at: int, envelope_length: int, link: int) -> bool:
    """Restore the original destination port if a datagram replies to a rewritten port. Returns
    whether the port was restored.
    """
    if table.counts[link] == 0:
        return False
    destination = port(buf, at, envelope_length, _DESTINATION)
    source = port(buf, at, envelope_length, _SOURCE)
    pairs = table.pairs[link]
    for index in range(table.counts[link]):
        if pairs[index, _NEW] == destination and pairs[index, _PEER] == source:
            set_port(buf, at, envelope_length, _DESTINATION, pairs[index, _ORIGINAL])
            return True
    return False
