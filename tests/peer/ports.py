"""UDP ports that stay free until they are used.

A port that the kernel chose may be chosen again for another socket once it is closed. These ports
are below the kernel's range, and none is returned twice.
"""

import os
import socket
from pathlib import Path

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
PORT_MIN, STRIDE = 10_000, 97
"""Distance of the first ports of processes, so that concurrent ones do not try the same port."""


def _candidates():
    end = int(EPHEMERAL.read_text().split()[0])
    count = end - PORT_MIN
    assert count > STRIDE, f"the kernel gives away ports from {end} on: too few are left below"
    at = os.getpid() * STRIDE
    while True:
        yield PORT_MIN + at % count
        at += 1


_CANDIDATES = _candidates()


def free_port():
    """Return a port that is free on all addresses of this machine."""
    while True:
        port = next(_CANDIDATES)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        return port


def free_ports(count):
    return [free_port() for _ in range(count)]
