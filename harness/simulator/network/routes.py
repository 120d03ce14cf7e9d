"""Selects the links that a datagram takes: the middlebox is a star and routes by host address.

    a --> address of b      the link a->b
    a --> a group           every link of a, once each
    a --> a host without a link, or an unknown address: no link, counted separately

Does with the names in envelopes what the relay does with packets. IPv4 only.
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
"""Returned in place of link bits if the address belongs to no host."""

_GROUP = 0xE
"""The first four bits of a group's address."""


class Routes(NamedTuple):
    """The routes of the star, as tables."""

    addresses: Any  # int32[host]: as stored in a socket name
    links: Any  # int64[host, host]: link direction from the first to the second, or NO_LINK
    groups: Any  # int64[host]: bits of all link directions that begin there
    targets: Any  # int64[link]: host that a direction leads to


def make_routes(case: Case) -> Routes:
    """Create the routes of a case, with hosts in the order of the case."""
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
    """Whether the name at `at` is a multicast group."""
    return bool(name[at + V4_ADDRESS] >> 4 == _GROUP)


@kernel
def ways(routes: Routes, host: int, name: Any, at: int) -> int:
    """The links that a datagram of a host to the name at `at` takes, as bits; or NOWHERE."""
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
    """The lowest link of a nonempty set."""
    link = 0
    while bits >> link & 1 == 0:
        link += 1
    return link
