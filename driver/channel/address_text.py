"""Syntax of the addresses in a channel URI, before name resolution.

    host:port     localhost:40123   10.0.0.2:40123   [::1]:40123   [fe80::1%2]:40123
    interface     10.0.0.1   10.0.0.0/24   10.0.0.0:40500/24   [fd00::]/64   {eth0}   {eth0}:40500

Source: spec 9.1 and 9.2, Aeron 1.53.
"""

import re
from typing import NamedTuple

from windtunnel.driver.channel.uri import InvalidChannelError

PORT_MAX = 65535

_HOST_PORT = re.compile(
    r"(?:\[([0-9A-Fa-f:.]+(?:%[^\]]+)?)\]|([^\[\]:/{}\s]+)):([0-9]{1,9})", re.ASCII
)
_INTERFACE = re.compile(
    r"\{([^{}]+)\}(?::([0-9]{1,9}))?"
    r"|(?:\[([0-9A-Fa-f:.]+(?:%[^\]]+)?)\]|([^\[\]:/{}\s]+))"
    r"(?::([0-9]{1,9}))?(?:/([0-9]{1,9}))?",
    re.ASCII,
)


class HostPort(NamedTuple):
    """A host name or address and a port, before name resolution."""

    host: str
    port: int


class InterfaceText(NamedTuple):
    """An interface, given by its name or by an address and a prefix length."""

    name: str | None
    host: str | None
    prefix_length: int | None
    port: int


def _port(key: str, text: str, digits: str) -> int:
    port = int(digits)
    if port > PORT_MAX:
        raise InvalidChannelError(f"{key}={text}: expected a port of at most {PORT_MAX}")
    return port


def parse_host_port(key: str, text: str) -> HostPort:
    """Parse `host:port`. Both parts are required. Raises InvalidChannelError if the text is
    invalid.
    """
    match = _HOST_PORT.fullmatch(text)
    if match is None:
        raise InvalidChannelError(f"{key}={text}: expected host:port or [ipv6]:port")
    return HostPort(match[1] or match[2], _port(key, text, match[3]))


def parse_interface(key: str, text: str) -> InterfaceText:
    """Parse an interface with an optional port (default 0). Raises InvalidChannelError if the text
    is invalid.
    """
    match = _INTERFACE.fullmatch(text)
    if match is None:
        raise InvalidChannelError(
            f"{key}={text}: expected address[:port][/prefix] or {{name}}[:port]"
        )
    prefix_length = None if match[6] is None else int(match[6])
    port = _port(key, text, match[2] or match[5] or "0")
    return InterfaceText(match[1], match[3] or match[4], prefix_length, port)
