"""Source ports that are rewritten on the way out, and back again on the way in.

    a:54321 -> b:24325    leaves as   a:40001 -> b:24325      remembered: 40001, 24325 -> 54321
    a:40001 <- b:24325    arrives as  a:54321 <- b:24325

So a receiver sees its sender move, as behind a router that has lost its table, and what it answers
to either port finds the sender.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.harness.middlebox.engine.packet import port, set_port
from windtunnel.harness.scenario.resolved.case import Case

WAYS_MIN = 64
WAYS_MAX = 1 << 14
"""Pairs of ports that one direction remembers; further ones are rewritten, but not back."""

_SOURCE, _DESTINATION = 0, 1
_NEW, _PEER, _ORIGINAL = range(3)


class Readdressed(NamedTuple):
    """What is remembered for each link direction whose sources were rewritten."""

    ways: Any  # int64[link, n, 3]: new port, the peer's port, original port
    counts: Any  # int64[link]
    overflows: Any  # int64[link]: datagrams whose way back found no room to be remembered


def make_readdressed(case: Case) -> Readdressed:
    """Nothing is remembered yet, of a case's link directions; room for all that it may have."""
    links = len(case.link_names)
    return Readdressed(
        ways=np.zeros((links, _ways_of(case), 3), dtype=np.int64),
        counts=np.zeros(links, dtype=np.int64),
        overflows=np.zeros(links, dtype=np.int64),
    )


def _ways_of(case: Case) -> int:
    """The pairs that a direction may have: each new port with each port that is sent to."""
    new = {fault.source_port for fault in case.faults if fault.source_port}
    # Receivers have the case's ports, and each publication one of its own that answers go to; a
    # driver that is started again takes others.
    publications = sum(case.sessions_of(each) for each in case.traffic)
    peers = (1 + len(case.events)) * (len(case.ports) + publications)
    return min(max(len(new) * peers, WAYS_MIN), WAYS_MAX)


@allocating_kernel
def set_ports(
    known: Readdressed, buf: Any, at: int, envelope_length: int, link: int, source_port: int
) -> bool:
    """Give a datagram the ports that it is to have; whether its checksum must be made anew.

    `source_port` is the one it is to come from, or 0 to leave that alone.
    """
    is_changed = _restore(known, buf, at, envelope_length, link ^ 1)
    if source_port == 0:
        return is_changed
    original = port(buf, at, envelope_length, _SOURCE)
    peer = port(buf, at, envelope_length, _DESTINATION)
    _remember(known, link, source_port, peer, original)
    set_port(buf, at, envelope_length, _SOURCE, source_port)
    return True


@allocating_kernel
def _remember(known: Readdressed, link: int, new: int, peer: int, original: int) -> None:
    ways = known.ways[link]
    for index in range(known.counts[link]):
        if ways[index, _NEW] == new and ways[index, _PEER] == peer:
            ways[index, _ORIGINAL] = original
            return
    if known.counts[link] == len(ways):
        known.overflows[link] += 1
        return
    index = known.counts[link]
    ways[index, _NEW] = new
    ways[index, _PEER] = peer
    ways[index, _ORIGINAL] = original
    known.counts[link] += 1


@allocating_kernel
def _restore(known: Readdressed, buf: Any, at: int, envelope_length: int, link: int) -> bool:
    """Send what answers to a rewritten port of a direction to the original one."""
    if known.counts[link] == 0:
        return False
    destination = port(buf, at, envelope_length, _DESTINATION)
    source = port(buf, at, envelope_length, _SOURCE)
    ways = known.ways[link]
    for index in range(known.counts[link]):
        if ways[index, _NEW] == destination and ways[index, _PEER] == source:
            set_port(buf, at, envelope_length, _DESTINATION, ways[index, _ORIGINAL])
            return True
    return False
