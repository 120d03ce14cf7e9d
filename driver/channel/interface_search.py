"""Selects the local interface of a channel according to its `interface=` parameter.

An address matches if its first `prefix` bits equal those of the parameter. Without a prefix, all
bits must be equal. The first match is used, but a multicast channel uses the loopback interface
only if no other interface matches. Source: spec 9.2, Aeron 1.53.
"""

import ipaddress
import socket

from windtunnel.driver.channel import address_text, uri_param
from windtunnel.driver.channel.address_text import InterfaceText
from windtunnel.driver.channel.resolver import NetworkInterface, Resolver
from windtunnel.driver.channel.uri import ChannelUri, InvalidChannelError


def find_interface(
    uri: ChannelUri, family: socket.AddressFamily, resolver: Resolver, *, is_multicast: bool
) -> tuple[NetworkInterface | None, int]:
    """Return the interface and the port to bind. The interface is None if the system chooses it.

    A multicast channel always gets an interface, because a multicast group is joined on an
    interface. Raises InvalidChannelError if no interface matches.
    """
    text = uri.get(uri_param.INTERFACE)
    requested = InterfaceText(None, None, 0, 0)
    if text is not None:
        requested = address_text.parse_interface(uri_param.INTERFACE, text)
    if requested.name is None and not is_multicast and _is_any(requested, resolver):
        return None, requested.port
    found = [
        entry
        for entry in resolver.interfaces()
        if entry.family == family and _matches(entry, requested, family, resolver)
    ]
    if is_multicast:
        found = [entry for entry in found if entry.is_multicast or entry.is_loopback]
        found.sort(key=lambda entry: entry.is_loopback)
    if not found:
        if requested.name is not None and all(
            entry.name != requested.name for entry in resolver.interfaces()
        ):
            raise InvalidChannelError(
                f"{uri_param.INTERFACE}={text}: unknown interface {requested.name}"
            )
        raise InvalidChannelError(
            f"{uri_param.INTERFACE}={text or 'any'}: no interface with a matching "
            f"{'IPv4' if family == socket.AF_INET else 'IPv6'} address is up"
        )
    return found[0], requested.port


def requested_family(uri: ChannelUri, resolver: Resolver) -> socket.AddressFamily | None:
    """Return the family of the address that a channel requests, or None if it requests none."""
    text = uri.get(uri_param.INTERFACE)
    if text is None:
        return None
    requested = address_text.parse_interface(uri_param.INTERFACE, text)
    if requested.host is None:
        return None
    host, _ = resolver.resolve(requested.host, uri_param.INTERFACE)
    is_v4 = ipaddress.ip_address(host).version == 4
    return socket.AF_INET if is_v4 else socket.AF_INET6


def _is_any(requested: InterfaceText, resolver: Resolver) -> bool:
    if requested.host is None or requested.prefix_length == 0:
        return True
    host, _ = resolver.resolve(requested.host, uri_param.INTERFACE)
    return ipaddress.ip_address(host).is_unspecified


def _matches(
    entry: NetworkInterface,
    requested: InterfaceText,
    family: socket.AddressFamily,
    resolver: Resolver,
) -> bool:
    if requested.name is not None:
        return entry.name == requested.name
    if requested.host is None:
        return True
    host, _ = resolver.resolve(requested.host, uri_param.INTERFACE)
    address = ipaddress.ip_address(host)
    bits = 32 if family == socket.AF_INET else 128
    prefix_length = bits if requested.prefix_length is None else requested.prefix_length
    if prefix_length > bits:
        raise InvalidChannelError(
            f"{uri_param.INTERFACE}={requested.host}/{prefix_length}: expected at most {bits} bits"
        )
    if address.is_unspecified:
        return True
    if address.version != entry.ip.version:
        return False
    shift = bits - prefix_length
    return int(address) >> shift == int(entry.ip) >> shift
