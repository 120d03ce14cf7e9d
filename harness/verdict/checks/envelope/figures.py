"""The figures of a subscriber that an envelope covers.

    NAKs of a gap, bytes resent for each byte lost, repair time     how losses are repaired
    messages missing for each frame lost                            how gaps are filled instead
    status messages for each MiB                                    flow control
    median latency, goodput                                         what an application sees

A figure is absent if the run has too few events for it, or is too short: then a single event, such
as a lost status message, would determine it.
"""

from collections.abc import Iterator

from windtunnel.harness.artifact.run.result_row import ResultRow, duration

EVENTS_MIN = 100
"""Minimum number of events, such as gaps, of which a ratio or a median is a figure. Some repairs
need one round trip, others a retry, so the median of few is one or the other by chance.
"""
TAIL_EVENTS_MIN = 200
"""Minimum number of gaps of which the 99th percentile is a figure."""
LASTED_MIN_NS = 1_000_000_000
"""Minimum duration of a stream whose latency and goodput are figures: several times as long as the
timeouts of 200 ms and less by which drivers recover.
"""
_BYTES_PER_MIB = 1 << 20

NS = "ns"
UNITS = {
    "naks_per_gap": "NAKs for each gap",
    "resent_per_lost": "bytes resent for each byte lost",
    "missing_per_lost": "messages missing for each frame lost",
    "status_messages_per_mib": "status messages for each MiB",
    "bytes_per_s": "bytes delivered per second",
    "repair_p50": NS,
    "repair_p99": NS,
    "latency_p50": NS,
}
"""The figures by name, with their units."""
TAILS = ("repair_p99", "latency_p50", "bytes_per_s")
"""Figures that few events can determine, such as a NAK that is lost three times."""


def figures_of(row: ResultRow) -> dict[str, float]:
    """Return a subscriber's figures by name. All are positive."""
    return {name: value for name, value in _figures(row) if value is not None and value > 0}


def _figures(row: ResultRow) -> Iterator[tuple[str, float | None]]:
    if row.naks is not None and (row.requested_gaps or 0) >= EVENTS_MIN:
        yield "naks_per_gap", row.naks / (row.requested_gaps or 1)
    if (row.gaps or 0) >= EVENTS_MIN:
        yield "repair_p50", row.repair_p50_ns
    if (row.gaps or 0) >= TAIL_EVENTS_MIN:
        yield "repair_p99", row.repair_p99_ns
    if (row.lost_frames or 0) >= EVENTS_MIN:
        yield "resent_per_lost", row.resent_per_lost
        if row.published_messages is not None and row.delivered_messages is not None:
            missing = row.published_messages - row.delivered_messages
            yield "missing_per_lost", missing / (row.lost_frames or 1)
    if row.delivered_bytes and (row.status_messages or 0) >= EVENTS_MIN:
        yield "status_messages_per_mib", _per_mib(row.status_messages, row.delivered_bytes)
    if (row.finished_ns or 0) >= LASTED_MIN_NS:
        yield "bytes_per_s", row.reached_bytes_per_s
        yield "latency_p50", row.latency_p50_ns


def _per_mib(count: int | None, length_bytes: int) -> float:
    return (count or 0) * _BYTES_PER_MIB / length_bytes


def figure_text(name: str, value: float) -> str:
    """Return a figure's value as text, such as `1.2 ms` or `3.5`."""
    return duration(round(value)) if UNITS[name] == NS else f"{value:,.4g}"
