"""Sentences about what held a publication back: offers that it refused, and the receiver's window.

the publication refused offers for 9.3 s: back pressure 8.2 s, not connected 1.1 s
the receiver window limits goodput: 131,072 B in one round trip of 20 ms are at most 6.55 MB/s
"""

from collections.abc import Iterator

from windtunnel.harness.artifact.run.result_row import MEGABYTE, causes_text, duration
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.views.results import Reading

REFUSED_NS_MIN = 10_000_000
"""Shortest total time that is reported, and that of a stall."""
REFUSED_SHARE_MIN = 0.01
"""Minimum share of the publisher's time, since short waits are common without a pace."""


def publication_sentences(evidence: Evidence, traffic: TrafficCase) -> Iterator[str]:
    """Yield a sentence for each publisher of a stream whose offers were refused for long."""
    for host in traffic.publishers:
        facts = evidence.publisher(traffic.between(host, traffic.to_host))
        if isinstance(facts, Missing):
            continue
        refused_ns = {
            "back pressure": facts.back_pressured_ns,
            "not connected": facts.not_connected_ns,
        }
        total_ns = sum(refused_ns.values())
        least_ns = REFUSED_SHARE_MIN * (facts.ended_ns - facts.started_ns)
        if total_ns < max(REFUSED_NS_MIN, least_ns):
            continue
        name = f"{traffic.id} at {host}" if len(traffic.publishers) > 1 else traffic.id
        text = causes_text(refused_ns, REFUSED_NS_MIN) or causes_text(refused_ns, 1)
        yield f"{name}: the publication refused offers for {duration(total_ns)}: {text}"


def window_sentence(reading: Reading) -> Iterator[str]:
    """Yield a sentence about the receiver's window if it limited the rate of the stream."""
    limit = reading.window_limit
    if limit is not None:
        yield (
            f"the receiver window limits goodput: {limit.window_bytes:,} B in one round trip of "
            f"{duration(limit.round_trip_ns)} are at most {limit.bytes_per_s / MEGABYTE:,.2f} MB/s"
            ", headers included"
        )
