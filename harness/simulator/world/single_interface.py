"""Name resolution and interfaces of a simulated host, which has only numeric addresses and one
interface besides loopback.

A simulated world has no name server and does not use the interfaces of the machine that it runs on.
"""

from __future__ import annotations

from windtunnel.driver.channel.resolver import NetworkInterface, UnknownHostError
from windtunnel.driver.media.channel_sockets import LOOPBACK
from windtunnel.driver.media.name_resolver import numeric_address

LOCALHOST = "localhost"


class OneInterface:
    """A name resolver for a simulated host with one address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def resolve(self, host: str, key: str) -> tuple[str, int]:
        """Return a numeric address and its scope id. Raises UnknownHostError for a host name."""
        found = numeric_address(LOOPBACK if host == LOCALHOST else host)
        if found is None:
            raise UnknownHostError(f"{key}={host}: unknown host: expected a numeric address")
        return found

    def interfaces(self) -> list[NetworkInterface]:
        """Return the loopback interface and the interface that leads to the middlebox."""
        return [
            NetworkInterface("lo", 1, LOOPBACK, is_loopback=True, is_multicast=False),
            NetworkInterface("eth0", 2, self._address, is_loopback=False, is_multicast=True),
        ]
