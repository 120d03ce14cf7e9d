"""Packet headers around a datagram: classifies packets, and updates headers before sending.

    | Ethernet 14 | IPv4 20..60 or IPv6 40.. | UDP 8 | frames ...
    \\_______________ envelope _______________/

The UDP checksum of a packet from a host on the same machine often covers only the pseudo-header,
because checksum offload would complete it. It is completed here. A split datagram gets new lengths
and checksums. All other fields stay as the host wrote them, TTL included: the relay is transparent.
Not supported: TCP, whose checksums stay incomplete.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.capture.packet import (
    CUT,
    IP_FRAGMENT,
    LINK_ETHERNET,
    address_v4,
    address_v6,
    ip_start,
    matches_ports,
    udp_payload_length,
    udp_start,
)
from windtunnel.harness.dissect.frames.bytes_at import u16_be

ENVELOPE_LENGTH_MAX = 192
"""Maximum length of the headers before a datagram. Packets with longer headers (IPv6 extensions)
are OTHER."""

AERON = 0
"""Class of a datagram between two hosts, or from a host to a group, with a port of the case."""
OTHER = 1
"""Class of any other packet to another host, which is not one of the case's Aeron datagrams."""
FRAGMENT = 2
"""Class of an IP fragment for another host. It may contain Aeron frames that cannot be parsed."""
STRAY = 3
"""Class of a packet for none of the hosts, such as ARP, broadcast, or the relay's packets."""

NO_HOST = -1
"""Value of a destination port: the packet has no destination."""
ALL_HOSTS = -2
"""Value of a destination port: a multicast packet goes to all hosts linked to its sender."""

_MAC_LENGTH = 6
_UDP_HEADER = 8
_UDP = 17
_BROADCAST = 0xFF
_MULTICAST_V4 = 0xE
_MULTICAST_V6 = 0xFF


@kernel
def classify(
    buf: Any, at: int, end: int, hosts: Any, near: int, ports: Any
) -> tuple[int, int, int, int]:
    """Classify a packet that arrived from host `near`, and find the relay port of its destination
    host.

    Shapes:  buf uint8[n]; hosts int64[h, 2]: address halves; ports int64[p], none for all
    Returns: the class; the port, NO_HOST or ALL_HOSTS; and the envelope and payload lengths of a
             UDP datagram, or 0 for any other packet
    """
    ip_at = ip_start(buf, at, end, LINK_ETHERNET)
    if ip_at < 0:
        return STRAY, NO_HOST, 0, 0
    udp_at, packet_end = udp_start(buf, ip_at, end)
    if udp_at == CUT:
        return STRAY, NO_HOST, 0, 0
    far = _host(buf, ip_at, hosts, near)
    if far == NO_HOST:
        return STRAY, NO_HOST, 0, 0
    is_known = _is_address(buf, ip_at, 0, hosts, near)
    if far == ALL_HOSTS and not is_known:
        return STRAY, NO_HOST, 0, 0
    if udp_at == IP_FRAGMENT:
        return FRAGMENT, far, 0, 0
    length = udp_payload_length(buf, udp_at, packet_end) if udp_at >= 0 else CUT
    envelope_length = udp_at + _UDP_HEADER - at
    if length >= 0 and envelope_length <= ENVELOPE_LENGTH_MAX:
        source, destination = u16_be(buf, udp_at), u16_be(buf, udp_at + 2)
        if is_known and matches_ports(ports, source, destination):
            return AERON, far, envelope_length, length
    else:
        envelope_length, length = 0, 0
    if far == ALL_HOSTS:
        # This is what a host sends to all routers, such as group memberships (IGMP, MLD).
        return STRAY, NO_HOST, 0, 0
    return OTHER, far, envelope_length, length


@kernel
def _host(buf: Any, ip_at: int, hosts: Any, near: int) -> int:
    """Return the relay port of the host to which a packet from host `near` is addressed, ALL_HOSTS
    for a multicast packet, or NO_HOST if there is no such host.
    """
    for host in range(len(hosts)):
        if host != near and _is_address(buf, ip_at, 1, hosts, host):
            return host
    if buf[ip_at] >> 4 == 4:
        return ALL_HOSTS if buf[ip_at + 16] >> 4 == _MULTICAST_V4 else NO_HOST
    return ALL_HOSTS if buf[ip_at + 24] == _MULTICAST_V6 else NO_HOST


@kernel
def set_macs(buf: Any, at: int, macs: Any, far: int) -> None:
    """Set the MAC addresses for sending to host `far`, but keep a multicast destination address.

    Shapes: macs uint8[h, 12]: for each port the host's address, then the relay's address
    """
    is_group = buf[at] & 1 and buf[at] != _BROADCAST
    first = _MAC_LENGTH if is_group else 0
    for index in range(first, 2 * _MAC_LENGTH):
        buf[at + index] = macs[far, index]


@kernel
def seal(buf: Any, at: int, envelope_length: int, length: int, is_changed: bool) -> None:
    """Update the lengths and checksums in a datagram's headers to match its frames.

    `is_changed` means that headers or frames differ from those that the checksum covers. A changed
    length is detected here. An IPv4 datagram without a checksum is sent without one.
    """
    udp_at = at + envelope_length - _UDP_HEADER
    ip_at = ip_start(buf, at, udp_at, LINK_ETHERNET)
    is_v4 = buf[ip_at] >> 4 == 4
    stored_length = u16_be(buf, udp_at + 4)
    udp_length = length + _UDP_HEADER
    changed = stored_length != udp_length
    if changed:
        _put_u16(buf, udp_at + 4, udp_length)
        if is_v4:
            _put_u16(buf, ip_at + 2, udp_at - ip_at + udp_length)
            _put_u16(buf, ip_at + 10, 0)
            _put_u16(buf, ip_at + 10, 0xFFFF ^ _fold(_sum(buf, ip_at, udp_at)))
        else:
            _put_u16(buf, ip_at + 4, u16_be(buf, ip_at + 4) + udp_length - stored_length)
    stored = u16_be(buf, udp_at + 6)
    if stored == 0 and is_v4:
        return
    pseudo = _pseudo_sum(buf, ip_at, is_v4, udp_length)
    if changed or is_changed or stored == _fold(pseudo):
        _put_u16(buf, udp_at + 6, 0)
        total = 0xFFFF ^ _fold(pseudo + _sum(buf, udp_at, udp_at + udp_length))
        _put_u16(buf, udp_at + 6, 0xFFFF if total == 0 else total)


@kernel
def port(buf: Any, at: int, envelope_length: int, which: int) -> int:
    """Return the source (0) or destination (1) UDP port of a datagram."""
    return u16_be(buf, at + envelope_length - _UDP_HEADER + 2 * which)


@kernel
def set_port(buf: Any, at: int, envelope_length: int, which: int, value: int) -> None:
    """Set the source (0) or destination (1) UDP port of a datagram. The caller must update the
    checksum.
    """
    _put_u16(buf, at + envelope_length - _UDP_HEADER + 2 * which, value)


@kernel
def _is_address(buf: Any, ip_at: int, which: int, hosts: Any, host: int) -> bool:
    """Return whether the source (0) or destination (1) address of a packet is the address of a
    given host.
    """
    if buf[ip_at] >> 4 == 4:
        high, low = address_v4(buf, ip_at + 12 + 4 * which)
    else:
        high, low = address_v6(buf, ip_at + 8 + 16 * which)
    return bool(high == hosts[host, 0] and low == hosts[host, 1])


@kernel
def _pseudo_sum(buf: Any, ip_at: int, is_v4: bool, udp_length: int) -> int:
    start, end = (ip_at + 12, ip_at + 20) if is_v4 else (ip_at + 8, ip_at + 40)
    return _sum(buf, start, end) + _UDP + udp_length


@kernel
def _sum(buf: Any, at: int, end: int) -> int:
    """Return the sum of big-endian 16-bit words. An odd last byte counts as the high half."""
    even = 0
    odd = 0
    for index in range(at, end - 1, 2):
        even += int(np.int64(buf[index]))
        odd += int(np.int64(buf[index + 1]))
    if (end - at) % 2:
        even += int(np.int64(buf[end - 1]))
    return (even << 8) + odd


@kernel
def _fold(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@kernel
def _put_u16(buf: Any, at: int, value: int) -> None:
    buf[at] = value >> 8 & 0xFF
    buf[at + 1] = value & 0xFF
