"""What a channel asks of the machine it is on: addresses for names, and its network interfaces.

Only the questions are here; `driver.media` answers them from the operating system, a test or a
simulation from a table.
"""

import ipaddress
import socket
from dataclasses import dataclass
from typing import Protocol

from windtunnel.driver.base.errors import ConfigurationError


class UnknownHostError(ConfigurationError):
    """A name has no address; clients are told UNKNOWN_HOST."""


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """One address of one interface of this machine."""

    name: str
    index: int
    host: str
    is_loopback: bool
    is_multicast: bool
    """Whether groups can be joined here."""
    scope_id: int = 0

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return ipaddress.ip_address(self.host)

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET if self.ip.version == 4 else socket.AF_INET6


class Resolver(Protocol):
    """Answers about names and interfaces."""

    def resolve(self, host: str, key: str) -> tuple[str, int]:
        """The numeric address of `host` and its scope id; `key` is for the UnknownHostError."""

    def interfaces(self) -> list[NetworkInterface]:
        """Every address of every interface that is up."""
