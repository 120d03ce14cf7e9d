"""UDP ports that stay free until they are used.

A port that was let go again lies in the range that the kernel gives to sockets which name none, and
may be given to the next of them. These lie below that range, and none is handed out twice.
"""

import os
import socket
from pathlib import Path

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
PORT_MIN, STRIDE = 10_000, 97
"""Processes begin a stride apart, so that those beside each other do not try the same port."""


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
    """A port that nobody has, on any address of this machine."""
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
