"""Locates the UDP datagram in a captured IP packet, which may be truncated or a fragment.

    IP header | UDP header | payload         whole                   truncated: end not captured
    IP header | some bytes of the above      IP fragment

Unlike `packet`, which accepts only complete packets, these functions return how much is available.
The input may be arbitrary bytes, and nothing after `end` is read. Sources: RFC 791, RFC 8200.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.capture.packet import CUT, NOT_UDP
from windtunnel.harness.dissect.frames.bytes_at import u16_be, u32_be

WHOLE, FRAGMENT = 0, 1

UDP = 17
UDP_HEADER_LENGTH = 8
_FRAGMENT_HEADER = 44
_HEADERS_BETWEEN = (0, 43, 60)


@kernel
def ip_payload(buf: Any, at: int, end: int) -> tuple[int, int, int, int, int, int]:
    """Locate the payload of the IP packet at offset `at`.

    Returns: status WHOLE, FRAGMENT, CUT or NOT_UDP; offset of the payload; its length according to
             the headers, which may exceed `end`; and for a FRAGMENT: its offset in the IP payload,
             1 if more fragments follow, the packet's identification
    """
    if end - at < 20:
        return CUT, 0, 0, 0, 0, 0
    version = int(buf[at]) >> 4
    if version == 4:
        return _payload_v4(buf, at, end)
    if version == 6:
        return _payload_v6(buf, at, end)
    return NOT_UDP, 0, 0, 0, 0, 0


@kernel
def _payload_v4(buf: Any, at: int, end: int) -> tuple[int, int, int, int, int, int]:
    header_length = (int(buf[at]) & 15) * 4
    if header_length < 20 or end - at < header_length:
        return CUT, 0, 0, 0, 0, 0
    if int(buf[at + 9]) != UDP:
        return NOT_UDP, 0, 0, 0, 0, 0
    # A length of 0 means that the length exceeds the field: the network card segments the packet
    # later.
    total = u16_be(buf, at + 2) or end - at
    if total < header_length:
        return CUT, 0, 0, 0, 0, 0
    word = u16_be(buf, at + 6)
    status = FRAGMENT if word & 0x3FFF else WHOLE
    fragment = (word & 0x1FFF) * 8
    more = word >> 13 & 1
    return (
        status, at + header_length, total - header_length, fragment, more, u16_be(buf, at + 4),
    )  # fmt: skip


@kernel
def _payload_v6(buf: Any, at: int, end: int) -> tuple[int, int, int, int, int, int]:
    if end - at < 40:
        return CUT, 0, 0, 0, 0, 0
    packet_end = at + 40 + (u16_be(buf, at + 4) or end - at - 40)
    protocol = int(buf[at + 6])
    at += 40
    status, fragment, more, identification = WHOLE, 0, 0, 0
    while protocol in _HEADERS_BETWEEN or protocol == _FRAGMENT_HEADER:
        if end - at < 8 or packet_end - at < 8:
            return CUT, 0, 0, 0, 0, 0
        if protocol == _FRAGMENT_HEADER:
            if status == FRAGMENT:
                return NOT_UDP, 0, 0, 0, 0, 0
            word = u16_be(buf, at + 2)
            status, fragment, more = FRAGMENT, word & 0xFFF8, word & 1
            identification = u32_be(buf, at + 4)
            protocol = int(buf[at])
            at += 8
            if fragment:
                break
        else:
            protocol = int(buf[at])
            at += (int(buf[at + 1]) + 1) * 8
    if protocol != UDP:
        return NOT_UDP, 0, 0, 0, 0, 0
    if at > packet_end:
        return CUT, 0, 0, 0, 0, 0
    if status == FRAGMENT and fragment == 0 and more == 0:
        status = WHOLE
    return status, at, packet_end - at, fragment, more, identification


@kernel
def udp_length(buf: Any, at: int, end: int, room: int) -> int:
    """Return the payload length of the UDP datagram at `at`, or CUT if it is incomplete.

    `end` is the end of the captured bytes, `room` the length of the IP payload. The payload of a
    fragmented datagram is longer than its first fragment. In this case the caller passes the
    maximum as `room`.
    """
    if end - at < UDP_HEADER_LENGTH:
        return CUT
    length = u16_be(buf, at + 4) or room
    if length < UDP_HEADER_LENGTH or length > room:
        return CUT
    return length - UDP_HEADER_LENGTH
