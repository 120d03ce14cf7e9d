"""Lengths of a stream's messages on the link: fragments, headers and alignment.

    message of 3000 bytes, mtu 1408     | 32 | 1376 | 32 | 1376 | 32 | 248 | 8 |    3128 bytes

    end of a term                       | message | message |  padding  | a message that did not fit

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


def expected_padding(traffic: TrafficCase) -> tuple[int, bool]:
    """Return the length in bytes of the padding at the ends of a stream's terms, and whether it is
    exact. It is for a stream from one publisher that begins at the start of a term.
    """
    term, lengths = traffic.term_length, _lengths(traffic)
    framed = [framed_length(length, traffic.mtu) for length in lengths]
    if has_one_length(traffic):
        count, rest = divmod(traffic.total_bytes, traffic.longest_bytes)
        left = term % framed[0]
        ends, last = divmod(max(0, count - 1), per_term := term // framed[0])
        is_full = count > 0 and last + 1 == per_term
        needs_term = rest > 0 and is_full and framed_length(rest, traffic.mtu) > left
        return left * (ends + needs_term), True
    # The end of a term is as likely at each place within a message.
    mean = sum(framed) / len(framed)
    left_mean = (sum(each * each for each in framed) / sum(framed) - ALIGNMENT) / 2
    ends = int(traffic.total_bytes / sum(lengths) * len(lengths) * mean / (term - left_mean))
    return round(ends * left_mean), False


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
