"""The positions that a stream can have: the start of its log, and an upper limit on its end.

    start |-- messages, with headers and alignment --| padding at the end of terms |  <= end_max

A run's seed determines the message lengths, hence their number and where the log ends. The limit is
exceeded with a probability of less than CHANCE.
"""

import math
from dataclasses import dataclass

from windtunnel.harness.scenario.schema.channel import (
    ALIGNMENT,
    HEADER_LENGTH,
    Channel,
    parse_channel,
)
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.traffic import LONGEST, Content, Traffic
from windtunnel.harness.scenario.validation.traffic_validation import longest_message

CHANCE = 2.0**-64
"""Probability that a run has more messages than the limit assumes."""


@dataclass(frozen=True)
class StreamExtent:
    """The start of a stream's log, an upper limit on its end, and its term length and MTU."""

    start: int
    end_max: int
    term_length: int
    mtu: int

    @property
    def crosses_term(self) -> bool:
        """Return whether the log can reach the end of its first term."""
        return self.start // self.term_length < self.end_max // self.term_length


def extent_of(scenario: Scenario, traffic: Traffic) -> StreamExtent | None:
    """Return the extent of all publishers' logs, or None if a channel or the content is invalid.

    A replay has the log of the recorded stream.
    """
    by_id = {each.id: each for each in scenario.traffic}
    origin = by_id.get(traffic.replays or traffic.id, traffic)
    texts = {origin.channels.get(host, origin.channel) for host in origin.from_hosts}
    try:
        found = [_extent(parse_channel(text), origin.content) for text in texts]
    except ValueError:
        return None  # Reported for the channel or content itself.
    return StreamExtent(
        start=min(each.start for each in found),
        end_max=max(each.end_max for each in found),
        term_length=max(each.term_length for each in found),
        mtu=max(each.mtu for each in found),
    )


def _extent(channel: Channel, content: Content) -> StreamExtent:
    term_length, mtu = channel.term_length, channel.mtu
    message = content.message
    longest = message.longest_bytes
    if longest == LONGEST:
        longest = longest_message(term_length)
    shortest, total = message.shortest_bytes, content.total_bytes
    if not 1 <= shortest <= longest or total < 1:
        raise ValueError("expected message lengths from 1B, in ascending order")
    payload_max = mtu - HEADER_LENGTH
    count = messages_max(total, shortest, longest)
    # Only the last fragment of a message is padded. The others fill the MTU.
    framed = total + total // payload_max * HEADER_LENGTH
    framed += count * (HEADER_LENGTH + ALIGNMENT - 1)
    # A message that does not fit in its term leaves at most as much as it needs itself.
    padding = longest + (longest // payload_max + 1) * HEADER_LENGTH + ALIGNMENT
    terms = framed // max(term_length - padding, 1) + 1
    start = channel.initial_position
    return StreamExtent(start, start + framed + terms * padding, term_length, mtu)


def messages_max(total: int, shortest: int, longest: int) -> int:
    """Return an upper limit on the number of messages of random length in `total` bytes.

    The lengths are independent and nonnegative, so the sum of n of them is rarely far below n times
    their mean: by more than t with a probability of at most exp(-t * t / (2 * n * mean square)).
    Source: Maurer, "A bound on the deviation probability for sums of non-negative random
    variables" (2003).
    """
    mean, square = _moments(shortest, longest)
    deviation = math.sqrt(-2.0 * square * math.log(CHANCE))
    # The root of mean * n - deviation * sqrt(n) - total.
    root = (deviation + math.sqrt(deviation * deviation + 4.0 * mean * total)) / (2.0 * mean)
    return min(math.ceil(root * root) + 1, -(-total // shortest))


def _moments(shortest: int, longest: int) -> tuple[float, float]:
    """Return a lower limit on the mean message length, and an upper limit on the mean squared
    length.

    All doublings from the shortest to the longest length are equally likely, and so are all lengths
    within a doubling.
    """
    mean = square = span = 0.0
    for octave in range(shortest.bit_length() - 1, (longest + 1).bit_length()):
        base = 1 << octave
        low, high = max(shortest, base) / base, min(longest + 1, 2 * base) / base
        if low < high:
            span += high - low
            mean += base * (high * high - low * low) / 2
            square += base * base * (high**3 - low**3) / 3
    # Lengths are rounded down.
    return max(mean / span - 1.0, float(shortest)), square / span
