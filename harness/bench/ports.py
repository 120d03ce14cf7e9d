"""Finds UDP ports for streams that are measured or attacked.

    0 ........ 10000 [ 512 | 512 | ... ] 32768 ..... 60999 [ 512 | ... ] 65536
                                          ephemeral ports

The kernel gives an ephemeral port to every socket that sends without being bound to a port, such as
the socket of a publication. Such a socket can get a port between the search for a free port and
its use, so the ports found here are outside that range.
"""

import contextlib
import itertools
import os
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from windtunnel.harness.orchestrate.lab import LabError

EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST_PORT, END_PORT = 10_000, 65_536
BLOCK = 512
"""Number of ports per block, more than a caller needs."""
_LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> range:
    """Return `count` consecutive UDP ports that are unused and not ephemeral. Successive calls
    return different ports, and processes that run side by side begin at different ports.
    """
    blocks, number = _blocks()
    for first in itertools.islice(blocks, number):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                probe.bind((_LOOPBACK, port))
            return range(first, first + count)
    raise LabError(
        f"expected {count} consecutive free UDP ports between {FIRST_PORT} and {END_PORT} outside "
        f"the ephemeral ports ({EPHEMERAL_PORTS}), found none: stop the programs that use them"
    )


@cache
def _blocks() -> tuple[Iterator[int], int]:
    """Return the first ports of all blocks, repeated endlessly, and the number of blocks."""
    low, high = _ephemeral_ports()
    every = range(FIRST_PORT, END_PORT - BLOCK + 1, BLOCK)
    # If all ports are ephemeral, they are still better than none.
    blocks = [first for first in every if first + BLOCK <= low or first > high] or list(every)
    own = os.getpid() % len(blocks)
    return itertools.cycle((*blocks[own:], *blocks[:own])), len(blocks)


def _ephemeral_ports() -> tuple[int, int]:
    """Return the first and the last ephemeral port."""
    low, high = EPHEMERAL_PORTS.read_text().split()
    return int(low), int(high)
