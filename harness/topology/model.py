"""The network of one run: the hosts and the links between them. Each host shares one subnet with
the relay.

    host a --- subnet a --- relay --- subnet b --- host b
                              |
                          subnet c --- host c

Hosts reach each other only through the relay. A topology is immutable: names, addresses and MTU do
not change during a run. The module does not know whether a lab uses namespaces or containers.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from windtunnel.harness.topology import addressing

MTU_DEFAULT = 1500
MTU_MAX = 65535
UDP_OVERHEAD = 28
"""Length of the IPv4 and UDP headers before an Aeron datagram."""


@dataclass(frozen=True)
class Host:
    """A host, with its subnet and addresses."""

    name: str
    subnet: ipaddress.IPv4Network
    address: ipaddress.IPv4Address
    gateway: ipaddress.IPv4Address
    """The relay's address on this subnet."""
    bridge: ipaddress.IPv4Address
    """The address that a container engine may use as its gateway."""

    @property
    def address_with_prefix(self) -> str:
        return f"{self.address}/{self.subnet.prefixlen}"

    @property
    def gateway_with_prefix(self) -> str:
        return f"{self.gateway}/{self.subnet.prefixlen}"


@dataclass(frozen=True)
class Topology:
    """The network of a run: all hosts, and the hosts that the middlebox connects."""

    run_id: str
    token: str
    hosts: tuple[Host, ...]
    between: tuple[str, ...]
    """The hosts that the middlebox connects, in the order of its interfaces."""
    mtu: int

    def host(self, name: str) -> Host:
        for candidate in self.hosts:
            if candidate.name == name:
                return candidate
        raise KeyError(f"no host {name!r}: expected one of {[h.name for h in self.hosts]}")

    @property
    def addresses(self) -> dict[str, str]:
        return {host.name: str(host.address) for host in self.hosts}


def build(
    run_id: str,
    hosts: Sequence[str],
    between: tuple[str, ...],
    *,
    datagram_length_max: int = 0,
    attempt: int = 0,
    addresses_of: str = "",
) -> Topology:
    """Create a run's network. Its MTU exceeds 1500 only if the longest datagram requires it.

    `between` lists the hosts that the middlebox connects. `addresses_of` is the id from which the
    addresses derive, by default the run's.
    """
    names = list(hosts)
    if len(set(names)) != len(names):
        raise ValueError(f"expected unique host names, found {names}")
    if len(names) > addressing.HOSTS_MAX:
        raise ValueError(f"expected at most {addressing.HOSTS_MAX} hosts, found {len(names)}")
    if len(between) < 2 or len(set(between)) != len(between) or not set(between) <= set(names):
        raise ValueError(
            f"link: expected at least two different hosts out of {names}, found {between}"
        )
    mtu = max(MTU_DEFAULT, datagram_length_max + UDP_OVERHEAD)
    if mtu > MTU_MAX:
        raise ValueError(
            f"expected an MTU of at most {MTU_MAX}, found {mtu} for a datagram of "
            f"{datagram_length_max} bytes"
        )
    members = []
    for index, name in enumerate(names):
        subnet = addressing.subnet(addresses_of or run_id, index, attempt)
        members.append(
            Host(
                name=name,
                subnet=subnet,
                address=subnet[addressing.HOST],
                gateway=subnet[addressing.RELAY],
                bridge=subnet[addressing.BRIDGE],
            )
        )
    return Topology(run_id, addressing.token(run_id), tuple(members), between, mtu)
