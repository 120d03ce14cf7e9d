"""Streams captured at several vantage points, and the approximate clock offsets of these points.

    totals --> streams with two points or more, coarse offsets --> reading in time order

Offsets are estimated from the first frame of each term at each vantage point, precisely enough to
read several captures in parallel. `path` determines the exact offsets.
"""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.reports.analysis.streams.geometry import StreamKey


def joined_streams(totals: pa.Table, unusable: Collection[str] = ()) -> dict[StreamKey, list[str]]:
    """Return the streams captured at more than one vantage point, with their vantage points,
    without those at an unusable vantage point: a join matches frames by time.
    """
    sent = totals.filter(pc.is_in(totals["frame_type"], pa.array(["DATA", "PAD"])))
    points: dict[StreamKey, set[str]] = {}
    columns = ("session_id", "stream_id", "vantage_point")
    for session, stream, point in zip(*(sent[name].to_pylist() for name in columns), strict=True):
        points.setdefault((session, stream), set()).add(point)
    return {
        key: sorted(found)
        for key, found in sorted(points.items())
        if len(found) > 1 and found.isdisjoint(unusable)
    }


def coarse_offsets(totals: pa.Table, points: Iterable[str]) -> dict[str, int]:
    """Estimate how many nanoseconds each vantage point's clock is ahead of the first one's."""
    sent = totals.filter(pc.is_in(totals["frame_type"], pa.array(["DATA", "PAD"])))
    firsts: dict[Any, dict[str, int]] = {}
    for row in sent.select(
        ["session_id", "stream_id", "term_id", "vantage_point", "first_ns"]
    ).to_pylist():
        term = row["session_id"], row["stream_id"], row["term_id"]
        at = firsts.setdefault(term, {})
        point = row["vantage_point"]
        at[point] = min(at.get(point, row["first_ns"]), row["first_ns"])
    ordered = sorted(points)
    found = dict.fromkeys(ordered, 0)
    for index, point in enumerate(ordered):
        for known in ordered[:index]:
            apart = [at[point] - at[known] for at in firsts.values() if {point, known} <= set(at)]
            if apart:
                found[point] = found[known] + int(np.median(apart))
                break
    return found
