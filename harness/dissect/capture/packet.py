"""Locates the UDP payload in a captured packet: link layer, VLAN tags, IPv4 or IPv6, UDP.

    Ethernet 14 | cooked v1 16 | cooked v2 20 | loopback 4 | raw IP 0     then tags, IP, UDP

The input may be arbitrary bytes. Each function returns a status and never reads after `end`.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.frames.bytes_at import i64_be, u16_be, u32_be

LINK_NULL = 0
LINK_ETHERNET = 1
LINK_RAW_OLD = 12
LINK_RAW_BSD = 14
LINK_RAW = 101
LINK_LOOP = 108
LINK_COOKED = 113
LINK_IPV4 = 228
LINK_IPV6 = 229
LINK_COOKED_2 = 276
LINK_TYPES = (
    LINK_NULL,
    LINK_ETHERNET,
    LINK_RAW_OLD,
    LINK_RAW_BSD,
    LINK_RAW,
    LINK_LOOP,
    LINK_COOKED,
    LINK_IPV4,
    LINK_IPV6,
    LINK_COOKED_2,
)

NOT_UDP = -1
"""Status: a complete packet with another protocol."""
IP_FRAGMENT = -2
"""Status: a fragment of an IP packet. This module does not reassemble fragments."""
CUT = -3
"""Status: fewer bytes than the headers specify, from a truncated capture or a damaged packet."""

_ETHERTYPE_IPV4 = 0x0800
_ETHERTYPE_IPV6 = 0x86DD
_ETHERTYPE_VLAN = 0x8100
_ETHERTYPE_SERVICE_VLAN = 0x88A8
_ETHERTYPE_OLD_SERVICE_VLAN = 0x9100
"""Type of outer tags before 802.1ad, which switches still write."""
_ETHERTYPES_OF_TAGS = (_ETHERTYPE_VLAN, _ETHERTYPE_SERVICE_VLAN, _ETHERTYPE_OLD_SERVICE_VLAN)
_PROTOCOL_UDP = 17
_UDP_HEADER_LENGTH = 8
_IPV4_MAPPED = 0xFFFF << 32


@kernel
def ip_start(buf: Any, at: int, end: int, link_type: int) -> int:
    """Return the offset of a packet's IP header. Returns NOT_UDP if there is no IP header, or CUT
    if the packet is truncated.
    """
    if link_type in (LINK_RAW, LINK_RAW_OLD, LINK_RAW_BSD, LINK_IPV4, LINK_IPV6):
        return at
    if link_type in (LINK_NULL, LINK_LOOP):
        return at + 4 if end - at >= 4 else CUT
    if link_type == LINK_COOKED_2:
        if end - at < 20:
            return CUT
        ethertype = u16_be(buf, at)
        at += 20
    else:
        header_length = 16 if link_type == LINK_COOKED else 14
        if end - at < header_length:
            return CUT
        at += header_length
        ethertype = u16_be(buf, at - 2)
    while ethertype in _ETHERTYPES_OF_TAGS:
        if end - at < 4:
            return CUT
        ethertype = u16_be(buf, at + 2)
        at += 4
    if ethertype in (_ETHERTYPE_IPV4, _ETHERTYPE_IPV6):
        return at
    return NOT_UDP


@kernel
def udp_start(buf: Any, at: int, end: int) -> tuple[int, int]:
    """Locate a packet's UDP header. Returns (offset of the header or a negative status, end of the
    IP packet).
    """
    if end - at < 1:
        return CUT, end
    version = int(buf[at]) >> 4
    if version == 4:
        return _udp_start_v4(buf, at, end)
    if version == 6:
        return _udp_start_v6(buf, at, end)
    return NOT_UDP, end


@kernel
def _udp_start_v4(buf: Any, at: int, end: int) -> tuple[int, int]:
    header_length = (int(buf[at]) & 15) * 4
    if end - at < 20 or header_length < 20 or end - at < header_length:
        return CUT, end
    if int(buf[at + 9]) != _PROTOCOL_UDP:
        return NOT_UDP, end
    if u16_be(buf, at + 6) & 0x3FFF:
        return IP_FRAGMENT, end
    packet_end = at + u16_be(buf, at + 2)
    if packet_end > end or packet_end < at + header_length:
        return CUT, end
    return at + header_length, packet_end


@kernel
def _udp_start_v6(buf: Any, at: int, end: int) -> tuple[int, int]:
    if end - at < 40:
        return CUT, end
    packet_end = at + 40 + u16_be(buf, at + 4)
    if packet_end > end:
        return CUT, end
    protocol = int(buf[at + 6])
    at += 40
    while protocol in (0, 43, 60):
        if packet_end - at < 8:
            return CUT, end
        protocol = int(buf[at])
        at += (int(buf[at + 1]) + 1) * 8
    if protocol == 44:
        return IP_FRAGMENT, end
    if protocol != _PROTOCOL_UDP:
        return NOT_UDP, end
    if at > packet_end:
        return CUT, end
    return at, packet_end


@kernel
def udp_payload_length(buf: Any, at: int, packet_end: int) -> int:
    """Return the length of the UDP payload after the header at `at`, or CUT if it is incomplete."""
    if packet_end - at < _UDP_HEADER_LENGTH:
        return CUT
    length = u16_be(buf, at + 4)
    if length < _UDP_HEADER_LENGTH or at + length > packet_end:
        return CUT
    return length - _UDP_HEADER_LENGTH


@kernel
def address_v4(buf: Any, at: int) -> tuple[int, int]:
    """Return an IPv4 address as the two 64-bit halves of the IPv4-mapped IPv6 address."""
    return 0, _IPV4_MAPPED | u32_be(buf, at)


@kernel
def address_v6(buf: Any, at: int) -> tuple[int, int]:
    """Return an IPv6 address as two 64-bit halves."""
    return i64_be(buf, at), i64_be(buf, at + 8)


@kernel
def matches_ports(ports: Any, source_port: int, destination_port: int) -> bool:
    """Return whether a datagram is to or from one of `ports`, or True if `ports` is empty."""
    is_match = len(ports) == 0
    for port in ports:
        if port in (source_port, destination_port):
            is_match = True
    return is_match
