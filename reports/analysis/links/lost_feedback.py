r"""Stalls of a sender whose status messages were lost between two vantage points.

    point p    ..../------------------\....      no room until a later status message arrives
    point q       SM --x  SM --x  SM -->         had made room long before

A capture near the sender shows only the status messages that arrived, so there the receiver seems
to be slow. A capture behind the loss shows when the receiver sent the first one that made room.
"""

from typing import Any

import pyarrow as pa

from windtunnel.reports.analysis.reading.stream_events import is_group

FEEDBACK = "feedback"
"""The cause of a stall whose status messages were lost."""
_FLOW = ("session_id", "stream_id", "destination")


def with_lost_feedback(stalls: pa.Table, links: pa.Table) -> pa.Table:
    """Return the table of stalls, in which those that lost status messages caused say so.

    Such a stall took at least twice as long before the link that lost status messages as behind it.
    In a multicast group, a sender may wait for another receiver, so that its stalls do not change.
    """
    rows = stalls.to_pylist()
    lasted_ns = {_at(row, row["vantage_point"]): row["duration_ns"] for row in rows}
    lossy = {
        (*(link[name] for name in _FLOW), link["from_point"]): link["to_point"]
        for link in links.to_pylist()
        if link["control_lost"] and not is_group(link["destination"])
    }
    if not lossy:
        return stalls
    for row in rows:
        behind = lossy.get((*(row[name] for name in _FLOW), row["vantage_point"]))
        if behind is None or row["cause"] != "receiver":
            continue
        if 2 * lasted_ns.get(_at(row, behind), 0) <= row["duration_ns"]:
            row["cause"] = FEEDBACK
    return pa.Table.from_pylist(rows, schema=stalls.schema)


def _at(row: dict[str, Any], point: str) -> tuple[Any, ...]:
    return (*(row[name] for name in _FLOW), row["position"], point)
