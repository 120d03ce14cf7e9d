"""Which local address a channel means: by `interface=`, or any that will do.

An address matches when its first `prefix` bits are those asked for, all of them where no prefix is
given. Of several the first wins, except that a multicast channel takes the loopback only where
nothing else matches. Source: spec 9.2, Aeron 1.53.
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
    """The interface of a channel and the port to bind; None leaves the choice to the system.

    A multicast channel always gets one, since a group is joined on an interface.
    """
    text = uri.get(uri_param.INTERFACE)
    wanted = InterfaceText(None, None, 0, 0)
    if text is not None:
        wanted = address_text.parse_interface(uri_param.INTERFACE, text)
    if wanted.name is None and not is_multicast and _is_any(wanted, resolver):
        return None, wanted.port
    found = [
        entry
        for entry in resolver.interfaces()
        if entry.family == family and _matches(entry, wanted, family, resolver)
    ]
    if is_multicast:
        found = [entry for entry in found if entry.is_multicast or entry.is_loopback]
        found.sort(key=lambda entry: entry.is_loopback)
    if not found:
        if wanted.name is not None and all(
            entry.name != wanted.name for entry in resolver.interfaces()
        ):
            raise InvalidChannelError(
                f"{uri_param.INTERFACE}={text}: unknown interface {wanted.name}"
            )
        raise InvalidChannelError(
            f"{uri_param.INTERFACE}={text or 'any'}: no interface with a matching "
            f"{'IPv4' if family == socket.AF_INET else 'IPv6'} address is up"
        )
    return found[0], wanted.port


def _is_any(wanted: InterfaceText, resolver: Resolver) -> bool:
    if wanted.host is None or wanted.prefix_length == 0:
        return True
    host, _ = resolver.resolve(wanted.host, uri_param.INTERFACE)
    return ipaddress.ip_address(host).is_unspecified


def _matches(
    entry: NetworkInterface, wanted: InterfaceText, family: socket.AddressFamily, resolver: Resolver
) -> bool:
    if wanted.name is not None:
        return entry.name == wanted.name
    if wanted.host is None:
        return True
    host, _ = resolver.resolve(wanted.host, uri_param.INTERFACE)
    address = ipaddress.ip_address(host)
    bits = 32 if family == socket.AF_INET else 128
    prefix_length = bits if wanted.prefix_length is None else wanted.prefix_length
    if prefix_length > bits:
        raise InvalidChannelError(
            f"{uri_param.INTERFACE}={wanted.host}/{prefix_length}: expected at most {bits} bits"
        )
    if address.is_unspecified:
        return True
    if address.version != entry.ip.version:
        return False
    shift = bits - prefix_length
    return int(address) >> shift == int(entry.ip) >> shift
