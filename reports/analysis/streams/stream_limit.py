"""Limits on the numbers of streams, destinations and receivers in an analysis. What is left out is
reported, also if totals were left out earlier (see `survey`).

    totals --> the streams with the most frames
                 --> of each, the destinations and receivers with the most frames --> walks, joins
                 `-> the others: problems of the analysis

Each datagram of a capture may claim a separate stream, destination or receiver, each of which takes
memory until the end of the capture. Both engines apply the limits to the same totals, so they leave
out the same ones.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.harness.artifact.noun_form import counted, noun_for
from windtunnel.reports.analysis.reading.survey import TotalsSum
from windtunnel.reports.analysis.reading.totals import TOTALS_MAX
from windtunnel.reports.analysis.streams.geometry import FROM_SENDER, Endpoints, StreamKey

STREAMS_MAX = 16_384
"""Maximum number of streams in an analysis, and of their destinations and receivers in total. Each
takes about 20 kB per vantage point.
"""
DESTINATIONS_MAX = 256
"""Maximum number of destinations of a stream, and of its receivers. Some steps take a time that
grows with the product of a stream's frames and its destinations.
"""
_FROM_RECEIVER = ("NAK", "SM")
_STREAM = ["session_id", "stream_id"]
_FEWER = "analyse fewer files at a time, or only the UDP ports of interest"


class Limits(NamedTuple):
    """The limits of an analysis."""

    streams: int
    destinations: int
    totals: int = TOTALS_MAX


class Limited(NamedTuple):
    """The part of a capture that is within the limits."""

    totals: pa.Table
    endpoints: dict[StreamKey, Endpoints]
    """The destinations and receivers of each stream of which others were left out."""
    left_out: tuple[str, ...]
    """A sentence for each limit that was exceeded."""


def limit_streams(sums: TotalsSum, limits: Limits) -> Limited:
    """Return the totals of the streams, destinations and receivers with the most frames.

    Among those with equally many frames, the ones with the lowest ids or addresses are kept. The
    first destination of a stream takes precedence over others of other streams.
    """
    totals, problems = _limit_streams(sums.table(), limits)
    problems = _problem_of_totals(sums.left_out, limits) + problems
    destinations, others = _split(_endpoints(totals, FROM_SENDER, "destination"), limits)
    totals = _without(totals, FROM_SENDER, "destination", others)
    # A receiver is left out with its destination.
    totals = _without(totals, _FROM_RECEIVER, "source", others)
    receivers, other_receivers = _split(_endpoints(totals, _FROM_RECEIVER, "source"), limits)
    totals = _without(totals, _FROM_RECEIVER, "source", other_receivers)
    limited = {*_keys(others), *_keys(other_receivers)}
    problems += _problem("destination", destinations, others, limits)
    problems += _problem("receiver", receivers, other_receivers, limits)
    return Limited(totals, _by_stream(limited, destinations, receivers), problems)


def _limit_streams(totals: pa.Table, limits: Limits) -> tuple[pa.Table, tuple[str, ...]]:
    by_stream = totals.group_by(_STREAM).aggregate([("frames", "sum")])
    count, limit = by_stream.num_rows, limits.streams
    if count <= limit:
        return totals, ()
    ordered = by_stream.sort_by(
        [("frames_sum", "descending"), ("session_id", "ascending"), ("stream_id", "ascending")]
    )
    kept, others = ordered.slice(0, limit), ordered.slice(limit)
    of_kept = totals.join(kept.select(_STREAM), keys=_STREAM, join_type="left semi")
    problem = (
        f"found {count:,} streams, expected at most {limit:,}: "
        f"{_left_out('stream', others['frames_sum'])}; raise the limit with --max-streams, {_FEWER}"
    )
    return of_kept, (problem,)


def _endpoints(totals: pa.Table, types: tuple[str, ...], column: str) -> pa.Table:
    """Return the number of frames of these types for each stream and endpoint, in order."""
    chosen = totals.filter(pc.is_in(totals["frame_type"], pa.array(types)))
    counted = chosen.group_by([*_STREAM, column]).aggregate([("frames", "sum")])
    return counted.rename_columns([*_STREAM, "endpoint", "frames"]).sort_by(
        [
            ("session_id", "ascending"), ("stream_id", "ascending"),
            ("frames", "descending"), ("endpoint", "ascending"),
        ]
    )  # fmt: skip


def _split(counted: pa.Table, limits: Limits) -> tuple[pa.Table, pa.Table]:
    """Divide the endpoints of all streams into those within the limits and the others."""
    count = counted.num_rows
    sessions, streams, frames = (counted[name].to_numpy() for name in (*_STREAM, "frames"))
    is_next = (sessions[1:] != sessions[:-1]) | (streams[1:] != streams[:-1])
    starts = np.flatnonzero(np.append(True, is_next))
    ranks = np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))
    is_within = ranks < limits.destinations
    if np.count_nonzero(is_within) > limits.streams:
        order = np.lexsort((-frames, ranks > 0, ~is_within))
        is_within[order[limits.streams :]] = False
    return counted.filter(pa.array(is_within)), counted.filter(pa.array(~is_within))


def _without(
    totals: pa.Table, types: tuple[str, ...], column: str, endpoints: pa.Table
) -> pa.Table:
    """Return the totals without frames of these types from or to the endpoints."""
    if not endpoints.num_rows:
        return totals
    keys = [*_STREAM, column]
    is_concerned = pc.is_in(totals["frame_type"], pa.array(types))
    removed = endpoints.select([*_STREAM, "endpoint"]).rename_columns(keys)
    kept = totals.filter(is_concerned).join(removed, keys=keys, join_type="left anti")
    others = totals.filter(pc.invert(is_concerned))
    return pa.concat_tables([others, kept.select(totals.column_names).cast(totals.schema)])


def _problem_of_totals(left_out: int, limits: Limits) -> tuple[str, ...]:
    if not left_out:
        return ()
    return (
        f"found more than {limits.totals:,} combinations of stream, capture point, addresses, "
        f"frame type and term: {counted(left_out, 'frame')} of the streams with the highest ids "
        f"{noun_for(left_out, 'is', 'are')} not in the table of streams; raise the limit with "
        f"--max-totals, {_FEWER}",
    )


def _keys(endpoints: pa.Table) -> list[StreamKey]:
    return list(zip(*(endpoints[name].to_pylist() for name in _STREAM), strict=True))


def _by_stream(
    limited: set[StreamKey], destinations: pa.Table, receivers: pa.Table
) -> dict[StreamKey, Endpoints]:
    found = {key: (set[str](), set[str]()) for key in limited}
    for which, table in enumerate((destinations, receivers)):
        for key, endpoint in zip(_keys(table), table["endpoint"].to_pylist(), strict=True):
            if key in found:
                found[key][which].add(endpoint)
    return {key: Endpoints(*map(frozenset, each)) for key, each in found.items()}


def _problem(name: str, kept: pa.Table, others: pa.Table, limits: Limits) -> tuple[str, ...]:
    if not others.num_rows:
        return ()
    return (
        f"found {kept.num_rows + others.num_rows:,} {name}s of streams, expected at most "
        f"{limits.destinations:,} of one stream and {limits.streams:,} in total: "
        f"{_left_out(name, others['frames'])}; raise the limits with --max-destinations and "
        f"--max-streams, {_FEWER}",
    )


def _left_out(name: str, frames: pa.ChunkedArray) -> str:
    """Describe what was left out, given the number of frames of each."""
    rank = "with the fewest frames"
    which = noun_for(len(frames), f"{name} {rank} was", f"{name}s {rank} were")
    in_total = counted(pc.sum(frames).as_py(), "frame")
    return f"the {len(frames):,} {which} left out, with {in_total} in total"
