"""Whether a sender may send a gap again more than once, because it ignores NAKs for a shorter time
than a retransmit needs.

    receiver   NAK       NAK       NAK        every retry delay, until the gap is filled
    sender     retransmit   |                 the first one is still under way
               |<- linger ->| retransmit      the next NAK is answered

Source: Aeron 1.53, retransmit handler and NAK delays of receivers. With retransmit ranges, a sender
to one receiver measures the round trip, and ignores NAKs for that long. See
docs/loss-recovery-sender.md.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.units import format_duration

LINGER_NS = 10_000_000
"""Aeron's default retransmit linger. A lab sets no other one."""
RANGES_LINGER_NS_MAX = 2_000_000_000
"""Longest linger that a measured round trip leads to."""
RETRIES_PER_DELAY = 100
"""Aeron's default ratio of the retry delay of a NAK to the delay of the first one."""
ALL_GAPS_RETRY_NS = 333_000_000
"""Retry delay of a receiver that sends NAKs for all gaps, until it has measured a repair."""


def linger_lines(case: Case, traffic: TrafficCase) -> Iterator[str]:
    """Yield a line for each group of receivers whose round trip exceeds the linger of a sender."""
    hosts: dict[int, list[str]] = {}
    for flow in traffic.flows:
        round_ns = _mean_round_trip_ns(case, flow)
        if traffic.reliable and round_ns > max(_linger_ns(flow), _retry_ns(flow)):
            hosts.setdefault(round_ns, []).append(flow.to_host)
    for round_ns, names in hosts.items():
        who = f"{', '.join(dict.fromkeys(names))}: " if len(traffic.subscribers) > 1 else ""
        yield (
            f"  {who}round trip {format_duration(round_ns)} > retransmit linger "
            f"{format_duration(LINGER_NS)}: a gap may be sent again more than once"
        )


def _linger_ns(flow: TrafficCase) -> int:
    channel = parse_channel(flow.channel)
    # The members of a group have different round trips, so none is measured.
    is_measured = channel.retransmit_ranges and not channel.is_group
    return RANGES_LINGER_NS_MAX if is_measured else LINGER_NS


def _retry_ns(flow: TrafficCase) -> int:
    """Return the least time between two NAKs for a gap, or 0 if it is shorter than a linger."""
    receive = parse_channel(flow.receive)
    if receive.nak_all_gaps:
        return ALL_GAPS_RETRY_NS
    if parse_channel(flow.channel).is_group:
        return 0
    return RETRIES_PER_DELAY * (receive.nak_delay_ns or 0)


def _mean_round_trip_ns(case: Case, flow: TrafficCase) -> int:
    """Return the average round trip of a flow, without jitter."""
    ways = ((flow.from_host, flow.to_host), (flow.to_host, flow.from_host))
    links = [case.link_between(*way) for way in ways]
    found = [case.impairments_of(case.link_names[link]) for link in links if link >= 0]
    return sum(each.delay_ns for each in found if each is not None)
