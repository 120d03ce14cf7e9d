"""Verifies the checksums in IP and UDP headers.

A packet captured at its sender often has only the sum of the pseudo-header, because the network
card completes the checksum (offload). These packets are accepted. UDP datagrams over IPv4 without a
checksum are also accepted.
"""

from typing import Any

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.harness.dissect.frames.bytes_at import u16_be

_UDP = 17
_ALL_ONES = 0xFFFF


@allocating_kernel
def has_valid_checksums(buf: Any, ip_at: int, udp_at: int) -> bool:
    """Return whether the checksums of a UDP packet are valid. The packet's lengths must be valid.

    Shapes: buf uint8[n]: an IP header at `ip_at`, a UDP header at `udp_at`
    """
    is_v4 = int(buf[ip_at]) >> 4 == 4
    if is_v4 and _fold(_sum(buf, ip_at, ip_at + (int(buf[ip_at]) & 15) * 4)) != _ALL_ONES:
        return False
    stored = u16_be(buf, udp_at + 6)
    if stored == 0 and is_v4:
        return True
    length = u16_be(buf, udp_at + 4)
    start, end = (ip_at + 12, ip_at + 20) if is_v4 else (ip_at + 8, ip_at + 40)
    pseudo = _sum(buf, start, end) + _UDP + length
    if stored == _fold(pseudo):
        return True
    return bool(_fold(pseudo + _sum(buf, udp_at, udp_at + length)) == _ALL_ONES)


@allocating_kernel
def _sum(buf: Any, at: int, end: int) -> int:
    """Return the sum of big-endian 16-bit words. An odd last byte is the high half of a word."""
    high = 0
    low = 0
    for index in range(at, end - 1, 2):
        high += int(buf[index])
        low += int(buf[index + 1])
    if (end - at) % 2:
        high += int(buf[end - 1])
    return (high << 8) + low


@allocating_kernel
def _fold(total: int) -> int:
    while total >> 16:
        total = (total & _ALL_ONES) + (total >> 16)
    return total
