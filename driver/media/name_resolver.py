"""Resolves host names through the operating system.

IPv4 is preferred: `localhost` is 127.0.0.1. A lookup may wait for a name server; a numeric address
never does. Source: spec 9.1, Aeron 1.53.
"""

import ipaddress
import re
import socket
from functools import lru_cache

from windtunnel.driver.channel.resolver import NetworkInterface, UnknownHostError
from windtunnel.driver.media.network_interfaces import list_interfaces

_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_LINK_GROUP_SCOPES = (1, 2)
"""Scopes of the multicast groups of an interface and of a link. Source: RFC 4291, 2.7."""
_SCOPE_ID_MAX = (1 << 32) - 1
"""`struct sockaddr_in6` has a 32-bit scope id. Source: Linux ipv6(7)."""


class SystemResolver:
    """The `Resolver` that uses the operating system's name lookup."""

    def resolve(self, host: str, key: str) -> tuple[str, int]:
        """Return the host's numeric address and scope id. Raises UnknownHostError if the host has
        no address.
        """
        literal = numeric_address(host)
        if literal is not None:
            return literal
        reason = "it has no address"
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                found = socket.getaddrinfo(host, None, family, socket.SOCK_DGRAM)
            except (OSError, ValueError) as error:
                reason = str(error)
                continue
            if found:
                name = found[0][4]
                scope_id = int(name[3]) if len(name) == 4 else 0
                return str(name[0]).split("%")[0], scope_id
        raise UnknownHostError(
            f"{key}={host}: unknown host: Unable to resolve host=({host}): {reason}"
        )

    def interfaces(self) -> list[NetworkInterface]:
        return list_interfaces()


@lru_cache(maxsize=1024)
def numeric_address(host: str) -> tuple[str, int] | None:
    """Return the numeric address and the scope id in `host`, or None if the system must resolve
    `host`.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    scope = getattr(address, "scope_id", None)
    if scope is None or not _has_scope(address):
        return str(address).split("%")[0], 0
    # A scope is a number or the name of an interface, which only the system can resolve. A number
    # that is too large is left to the system, which rejects it.
    if _NUMBER.fullmatch(scope) is None or int(scope) > _SCOPE_ID_MAX:
        return None
    return str(address).split("%")[0], int(scope)


def _has_scope(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether the system uses the scope of an address, which is that of a link."""
    is_link_group = address.is_multicast and address.packed[1] & 0x0F in _LINK_GROUP_SCOPES
    return address.is_link_local or is_link_group
