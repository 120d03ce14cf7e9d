"""Access to name resolution and to the network interfaces of the driver's host.

`driver.media` implements `Resolver` with the operating system. Tests and simulations use tables.
"""

import ipaddress
import socket
from dataclasses import dataclass
from typing import Protocol

from windtunnel.driver.base.errors import ConfigurationError


class UnknownHostError(ConfigurationError):
    """A host name cannot be resolved. Clients receive the error code UNKNOWN_HOST."""


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """One address of a network interface."""

    name: str
    index: int
    host: str
    is_loopback: bool
    is_multicast: bool
    """Whether multicast groups can be joined on the interface."""
    scope_id: int = 0

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return ipaddress.ip_address(self.host)

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET if self.ip.version == 4 else socket.AF_INET6


class Resolver(Protocol):
    """Resolves host names and lists network interfaces."""

    def resolve(self, host: str, key: str) -> tuple[str, int]:
        """Return the numeric address and the scope id of `host`.

        Raises UnknownHostError, which names the parameter `key`.
        """

    def interfaces(self) -> list[NetworkInterface]:
        """Return all addresses of all interfaces that are up."""
