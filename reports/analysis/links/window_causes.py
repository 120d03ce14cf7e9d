r"""Stalls of a sender for which the receiver behind a link is not to blame.

    point p    ..../------------------\....      no room until a later status message arrives
    point q       SM --x  SM --x  SM -->         had made room long before

    feedback   a status message was lost that would have made room
    window     the window is used up within a round trip: its status message was on the way

A capture near the sender shows only the status messages that arrived, so there the receiver seems
to be slow. A capture behind the link shows when the receiver sent the first one that made room.
"""

from bisect import bisect_left
from typing import Any

import pyarrow as pa

from windtunnel.reports.analysis.reading.stream_events import is_group

FEEDBACK, WINDOW = "feedback", "window"
"""Causes of a stall that was much shorter behind the link."""
ROUND_TRIPS_MAX = 2
"""A stall for which a status message was only on the way lasts at most this many round trips."""
_FLOW = ("session_id", "stream_id", "destination")


def with_window_causes(stalls: pa.Table, links: pa.Table) -> pa.Table:
    """Return the table of stalls, in which those that were caused by lost status messages or by a
    small window have this cause.

    Such a stall took at least twice as long before the link as behind it. In a multicast group, a
    sender may wait for another receiver, so that its stalls do not change.
    """
    rows = stalls.to_pylist()
    lasted_ns = {_at(row, row["vantage_point"]): row["duration_ns"] for row in rows}
    onward = {
        (*(link[name] for name in _FLOW), link["from_point"]): link
        for link in links.to_pylist()
        if not is_group(link["destination"])
    }
    for row in rows:
        link = onward.get((*(row[name] for name in _FLOW), row["vantage_point"]))
        if link is None or row["cause"] != "receiver":
            continue
        if 2 * lasted_ns.get(_at(row, link["to_point"]), 0) > row["duration_ns"]:
            continue
        if _has_lost_room(row, link["lost_limits"]):
            row["cause"] = FEEDBACK
        elif row["duration_ns"] <= ROUND_TRIPS_MAX * 2 * (link["delay_median_ns"] or 0):
            row["cause"] = WINDOW
    return pa.Table.from_pylist(rows, schema=stalls.schema)


def _has_lost_room(stall: dict[str, Any], lost_limits: list[int]) -> bool:
    """Return whether a lost status message would have made room before the one that did.

    The limit never decreases, so the message with a lower or equal limit was sent earlier.
    """
    index = bisect_left(lost_limits, stall["needed_limit"])
    return index < len(lost_limits) and lost_limits[index] <= stall["opened_limit"]


def _at(row: dict[str, Any], point: str) -> tuple[Any, ...]:
    return (*(row[name] for name in _FLOW), row["position"], point)
