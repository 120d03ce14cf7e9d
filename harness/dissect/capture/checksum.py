"""Verifies the checksums in IP and UDP headers.

A packet captured at its sender often has only the sum of the pseudo-header, because the network
card completes the checksum (offload). These packets are accepted. UDP datagrams over IPv4 without a
checksum are also accepted.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.frames.bytes_at import u16_be, u64_le

_UDP = 17
_ALL_ONES = 0xFFFF
_0, _32, _LOW_HALF = np.uint64(0), np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel
def has_valid_checksums(buf: Any, ip_at: int, udp_at: int) -> bool:
    """Return whether the checksums of a UDP packet are valid. The packet's lengths must be valid.

    Shapes: buf uint8[n]: an IP header at `ip_at`, a UDP header at `udp_at`
    """
    is_v4 = int(buf[ip_at]) >> 4 == 4
    if is_v4 and not _is_header_valid(buf, ip_at):
        return False
    if is_v4 and u16_be(buf, udp_at + 6) == 0:
        return True
    return _is_udp_valid(buf, ip_at, udp_at)


@kernel
def has_wrong_checksum(buf: Any, ip_at: int, udp_at: int) -> bool:
    """Return whether a checksum shows that a UDP packet is damaged, wherever it was captured. The
    packet's lengths must be valid.

    Unlike `has_valid_checksums`, a checksum of 0 shows nothing: it may be left to a network card.
    """
    is_v4 = int(buf[ip_at]) >> 4 == 4
    if is_v4 and u16_be(buf, ip_at + 10) and not _is_header_valid(buf, ip_at):
        return True
    if u16_be(buf, udp_at + 6) == 0:
        return False
    return not _is_udp_valid(buf, ip_at, udp_at)


@kernel
def _is_header_valid(buf: Any, ip_at: int) -> bool:
    return bool(_fold(_sum(buf, ip_at, ip_at + (int(buf[ip_at]) & 15) * 4)) == _ALL_ONES)


@kernel
def _is_udp_valid(buf: Any, ip_at: int, udp_at: int) -> bool:
    """Return whether a checksum is complete and correct, or only the sum of the pseudo-header."""
    is_v4 = int(buf[ip_at]) >> 4 == 4
    length = u16_be(buf, udp_at + 4)
    start, end = (ip_at + 12, ip_at + 20) if is_v4 else (ip_at + 8, ip_at + 40)
    pseudo = _sum(buf, start, end) + _UDP + length
    if u16_be(buf, udp_at + 6) == _fold(pseudo):
        return True
    return bool(_fold(pseudo + _sum(buf, udp_at, udp_at + length)) == _ALL_ONES)


@kernel
def _sum(buf: Any, at: int, end: int) -> int:
    """Return the sum of big-endian 16-bit words, modulo 0xFFFF. An odd last byte is the high half
    of a word.

    The words are added as little-endian halves of 64-bit words, which only swaps the bytes of the
    sum.
    """
    total = _0
    while at + 8 <= end:
        word = u64_le(buf, at)
        total += (word & _LOW_HALF) + (word >> _32)
        at += 8
    low = 0
    high = 0
    for index in range(at, end - 1, 2):
        low += int(buf[index])
        high += int(buf[index + 1])
    if (end - at) % 2:
        low += int(buf[end - 1])
    rest = np.int64((total & _LOW_HALF) + (total >> _32)) + low + (high << 8)
    swapped = _fold(int(rest))
    return (swapped & 0xFF) << 8 | swapped >> 8


@kernel
def _fold(total: int) -> int:
    while total >> 16:
        total = (total & _ALL_ONES) + (total >> 16)
    return total
