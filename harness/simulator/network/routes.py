"""Selects the links that a datagram takes. The middlebox routes by destination host address.

    a --> address of b      the link a->b
    a --> a group           every link of a, once each
    a --> a host without a link, or an unknown address: no link, counted separately
    a --> its own address, or 127.0.0.1: stays on the host, as on its loopback interface

Routes by the socket names in envelopes, as the relay routes packets. IPv4 only.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.base.atomics import get_i32
from windtunnel.driver.channel.socket_address import V4_ADDRESS
from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.scenario.resolved.case import Case

NO_LINK = -1
NOWHERE = -1
"""Returned instead of link bits if the address belongs to no host."""

_LOOPBACK = 0x0100007F
"""127.0.0.1 as stored in a socket name."""
_GROUP = 0xE
"""The first four bits of a multicast address."""


class Routes(NamedTuple):
    """The middlebox's routing tables."""

    addresses: Any  # int32[host]: as stored in a socket name
    links: Any  # int64[host, host]: link direction from the first to the second, or NO_LINK
    groups: Any  # int64[host]: bits of all link directions that begin there
    targets: Any  # int64[link]: host that a direction leads to


def make_routes(case: Case) -> Routes:
    """Create a case's routing tables, with the hosts in the same order as in the case."""
    names = [each.name for each in case.hosts]
    links = np.full((len(names), len(names)), NO_LINK, dtype=np.int64)
    groups = np.zeros(len(names), dtype=np.int64)
    targets = np.zeros(len(case.directions), dtype=np.int64)
    for code, (sender, receiver) in enumerate(case.directions):
        near, far = names.index(sender), names.index(receiver)
        links[near, far], targets[code] = code, far
        groups[near] |= 1 << code
    packed = b"".join(IPv4Address(each.address).packed for each in case.hosts)
    return Routes(np.frombuffer(packed, dtype="<i4").copy(), links, groups, targets)


@kernel
def is_group(name: Any, at: int) -> bool:
    """Return whether the socket address at offset `at` is a multicast address."""
    return bool(name[at + V4_ADDRESS] >> 4 == _GROUP)


@kernel
def is_own(routes: Routes, host: int, name: Any, at: int) -> bool:
    """Return whether the socket address at offset `at` is one of a host's own addresses."""
    address = get_i32(name, at + V4_ADDRESS)
    return bool(address == routes.addresses[host] or address == _LOOPBACK)


@kernel
def ways(routes: Routes, host: int, name: Any, at: int) -> int:
    """Return the links from a host to a socket address as a bit set.

    Shapes:  name uint8[n], with the encoded address at offset `at`
    Returns: NOWHERE if the address belongs to no other host, 0 if no link leads to its host
    """
    if is_group(name, at):
        return int(routes.groups[host])
    address = get_i32(name, at + V4_ADDRESS)
    for other in range(routes.addresses.size):
        if other != host and routes.addresses[other] == address:
            link = routes.links[host, other]
            return 0 if link == NO_LINK else 1 << link
    return NOWHERE


@kernel
def first_way(bits: int) -> int:
    """Return the lowest link number in a nonempty bit set of links."""
    link = 0
    while bits >> link & 1 == 0:
        link += 1
    return link
