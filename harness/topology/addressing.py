"""A run's IP addresses, derived from its id so that concurrent runs do not interfere. All
simulated runs have the same addresses, so that equal runs have equal digests.

    10.64.0.0/10  =  16384 blocks of /24; a run takes one block (by a hash of its id)
    block         =  32 subnets of /29; each host has one:  .1 bridge  .2 relay  .3 host

Only container networks use the bridge address, because the container engine needs a gateway
address. Two runs may get the same block. With namespaces this is harmless. A container engine
rejects the second network, and the caller uses the next `attempt`.
"""

from __future__ import annotations

import hashlib
import ipaddress

RANGE = ipaddress.IPv4Network("10.64.0.0/10")
BLOCK_PREFIX_LENGTH = 24
SUBNET_PREFIX_LENGTH = 29
BLOCKS = 1 << (BLOCK_PREFIX_LENGTH - RANGE.prefixlen)
HOSTS_MAX = 1 << (SUBNET_PREFIX_LENGTH - BLOCK_PREFIX_LENGTH)

BRIDGE = 1
RELAY = 2
HOST = 3


def token(run_id: str) -> str:
    """Return eight hex digits that identify the run in namespace and network names."""
    return hashlib.sha256(run_id.encode()).hexdigest()[:8]


def block(run_id: str, attempt: int = 0) -> ipaddress.IPv4Network:
    """Return the range of IP addresses that a run uses. Each attempt to create the run's networks
    gets a different range.
    """
    digest = hashlib.sha256(f"windtunnel block {run_id}".encode()).digest()
    index = (int.from_bytes(digest[:8], "little") + attempt) % BLOCKS
    size = 1 << (32 - BLOCK_PREFIX_LENGTH)
    first = int(RANGE.network_address) + index * size
    return ipaddress.IPv4Network((first, BLOCK_PREFIX_LENGTH))


def subnet(run_id: str, host_index: int, attempt: int = 0) -> ipaddress.IPv4Network:
    """Return the subnet of the host with this index."""
    if not 0 <= host_index < HOSTS_MAX:
        raise ValueError(f"host index: expected 0..{HOSTS_MAX - 1}, found {host_index}")
    size = 1 << (32 - SUBNET_PREFIX_LENGTH)
    first = int(block(run_id, attempt).network_address) + host_index * size
    return ipaddress.IPv4Network((first, SUBNET_PREFIX_LENGTH))
