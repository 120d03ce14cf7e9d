"""Interface to the host of a driver: name resolution and network interfaces.

`driver.media` implements it with the operating system; tests and simulations use tables.
"""

import ipaddress
import socket
from dataclasses import dataclass
from typing import Protocol

from windtunnel.driver.base.errors import ConfigurationError


class UnknownHostError(ConfigurationError):
    """A name cannot be resolved; clients receive UNKNOWN_HOST."""


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """One address of one interface of this host."""

    name: str
    index: int
    host: str
    is_loopback: bool
    is_multicast: bool
    """Whether multicast groups can be joined on it."""
    scope_id: int = 0

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return ipaddress.ip_address(self.host)

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET if self.ip.version == 4 else socket.AF_INET6


class Resolver(Protocol):
    """Resolves names and lists interfaces."""

    def resolve(self, host: str, key: str) -> tuple[str, int]:
        """Return (numeric address, scope id) of `host`.

        Raises UnknownHostError that names the parameter `key`.
        """

    def interfaces(self) -> list[NetworkInterface]:
        """Return every address of every interface that is up."""
