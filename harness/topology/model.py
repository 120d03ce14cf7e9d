"""The network of one run: hosts, each alone in a subnet with the relay, and links between them.

    host a --- subnet a --- relay --- subnet b --- host b
                              |
                          subnet c --- host c

Every host reaches every other one through the relay only. A topology is complete when it is made:
names, addresses and MTU never change during a run. Refuses to know whether namespaces or
containers will realise it.
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
    """A host and its place on its own subnet."""

    name: str
    subnet: ipaddress.IPv4Network
    address: ipaddress.IPv4Address
    gateway: ipaddress.IPv4Address
    """The relay's address on this subnet."""
    bridge: ipaddress.IPv4Address
    """The address that a container engine may keep for itself."""

    @property
    def address_with_prefix(self) -> str:
        return f"{self.address}/{self.subnet.prefixlen}"

    @property
    def gateway_with_prefix(self) -> str:
        return f"{self.gateway}/{self.subnet.prefixlen}"


@dataclass(frozen=True)
class Topology:
    """All hosts of a run, and those that the middlebox joins."""

    run_id: str
    token: str
    hosts: tuple[Host, ...]
    between: tuple[str, ...]
    """The hosts in the order of the middlebox's interfaces."""
    mtu: int

    def host(self, name: str) -> Host:
        for candidate in self.hosts:
            if candidate.name == name:
                return candidate
        raise KeyError(f"no host {name!r}; the hosts are {[h.name for h in self.hosts]}")

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
) -> Topology:
    """Lay out a run's network; the MTU grows beyond 1500 only if a datagram would not fit.

    `between` names the hosts that the middlebox joins, a star with a ray for each.
    """
    names = list(hosts)
    if len(set(names)) != len(names):
        raise ValueError(f"hosts are named twice in {names}")
    if len(names) > addressing.HOSTS_MAX:
        raise ValueError(f"{len(names)} hosts; a run has room for {addressing.HOSTS_MAX}")
    if len(between) < 2 or len(set(between)) != len(between) or not set(between) <= set(names):
        raise ValueError(f"link {between} does not join two of the hosts {names}, or more")
    mtu = max(MTU_DEFAULT, datagram_length_max + UDP_OVERHEAD)
    if mtu > MTU_MAX:
        raise ValueError(f"a datagram of {datagram_length_max} bytes needs an MTU over {MTU_MAX}")
    members = []
    for index, name in enumerate(names):
        subnet = addressing.subnet(run_id, index, attempt)
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
