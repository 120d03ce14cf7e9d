"""Lengths of a stream's messages on the link: fragments, headers and alignment.

    message of 3000 bytes, mtu 1408     | 32 | 1376 | 32 | 1376 | 32 | 248 | 8 |    3128 bytes

A fragment carries at most the MTU without its header, and is aligned to 32 bytes. Figures of a
stream are estimates unless all its messages have the same length.
"""

import math

from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase
from windtunnel.harness.scenario.schema.channel import ALIGNMENT, HEADER_LENGTH

_SAMPLES = 4096


def fragment_count(length: int, mtu: int) -> int:
    """Return the number of DATA frames of a message."""
    return -(-length // (mtu - HEADER_LENGTH))


def framed_length(length: int, mtu: int) -> int:
    """Return the length of a message's frames, with headers and alignment."""
    whole, rest = divmod(length, mtu - HEADER_LENGTH)
    last = -(-(rest + HEADER_LENGTH) // ALIGNMENT) * ALIGNMENT if rest else 0
    return whole * mtu + last


def expected_data_frames(traffic: TrafficCase) -> float:
    """Return the number of a stream's DATA frames, without retransmissions. It is an estimate
    unless all messages have the same length.
    """
    if has_one_length(traffic):
        whole, rest = divmod(traffic.total_bytes, traffic.longest_bytes)
        whole_frames = fragment_count(traffic.longest_bytes, traffic.mtu)
        return float(whole * whole_frames + fragment_count(rest, traffic.mtu))
    lengths = _lengths(traffic)
    frames = sum(fragment_count(length, traffic.mtu) for length in lengths)
    return max(1.0, traffic.total_bytes / sum(lengths) * frames)


def expected_framed_bytes(traffic: TrafficCase) -> float:
    """Estimate the length of a stream's DATA frames, without padding frames and retransmissions."""
    lengths = _lengths(traffic)
    framed = sum(framed_length(length, traffic.mtu) for length in lengths)
    return traffic.total_bytes / sum(lengths) * framed


def has_one_length(traffic: TrafficCase) -> bool:
    """Return whether all messages have the same length, except for the last one."""
    return traffic.shortest_bytes == traffic.longest_bytes


def _lengths(traffic: TrafficCase) -> list[int]:
    """Return a sample of message lengths: the quantiles of their distribution."""
    if has_one_length(traffic):
        return [traffic.shortest_bytes]
    low, high = math.log(traffic.shortest_bytes), math.log(traffic.longest_bytes + 1)
    return [
        int(math.exp(low + (index + 0.5) / _SAMPLES * (high - low))) for index in range(_SAMPLES)
    ]
