"""Chart data for a capture report: streams with their gaps and stalls, and links.

Times are in milliseconds since the first frame. If there are too many gaps, an evenly spaced
selection is shown. There is no chart of a vantage point at which times go back.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.reports.analysis.output.stepped_clocks import stepped_points
from windtunnel.reports.analysis.output.tables import Tables
from windtunnel.reports.analysis.streams.repair_tables import KEY

GAPS_MAX = 5_000
STALLS_MAX = 500
FLOWS_MAX = 24
"""Maximum number of flows with charts. Flows with the most gaps take precedence."""
NS_PER_MS = 1e6
_KEYS = [name for name, _ in KEY]


def stream_id(row: dict[str, Any]) -> str:
    """Return the identifier that a flow has in the page's tables."""
    return "|".join(str(row[name]) for name in _KEYS)


def stream_label(row: dict[str, Any]) -> str:
    """Return the display name of a flow."""
    return (
        f"stream {row['stream_id']} session {row['session_id']} at {row['vantage_point']} "
        f"to {row['destination'].replace(' ', ':')}"
    )


def streams_document(tables: Tables) -> dict[str, Any]:
    """Return an analysis as the document from which the page draws its charts."""
    stepped = stepped_points(tables.captures)
    flows = [
        each
        for each in tables.flows.to_pylist()
        if each["first_frames"] and each["vantage_point"] not in stepped
    ]
    is_stepped = pc.is_in(tables.positions["vantage_point"], pa.array(sorted(stepped), pa.string()))
    positions = tables.positions.filter(pc.invert(is_stepped))
    shown = {"positions": positions, "gaps": tables.gaps, "stalls": tables.stalls}
    by_flow = {name: _by_flow(table) for name, table in shown.items()}
    flows.sort(key=lambda each: -by_flow["gaps"].get(_key(each), _NONE).num_rows)
    start_ns, end_ns = _span(positions)
    active_ns = max(
        (_last_data_ns(each) for each in by_flow["positions"].values()), default=start_ns
    )
    return {
        "span_ms": [0.0, (end_ns - start_ns) / NS_PER_MS],
        "active_ms": [0.0, 1.02 * (active_ns - start_ns) / NS_PER_MS],
        "streams": [
            _stream(flow, {name: by_flow[name].get(_key(flow)) for name in by_flow}, start_ns)
            for flow in flows[:FLOWS_MAX]
        ],
        "links": [_link(each) for each in tables.links.slice(0, 4 * FLOWS_MAX).to_pylist()],
    }


_NONE = pa.table({"none": pa.array([], pa.int64())})


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEYS)


def _by_flow(table: pa.Table) -> dict[tuple[Any, ...], pa.Table]:
    """Split a table that is sorted by flow into one table per flow."""
    keys = list(zip(*(table[name].to_pylist() for name in _KEYS), strict=True))
    starts = [index for index, key in enumerate(keys) if index == 0 or keys[index - 1] != key]
    ends = [*starts[1:], len(keys)][: len(starts)]
    return {keys[at]: table.slice(at, end - at) for at, end in zip(starts, ends, strict=True)}


def _span(positions: pa.Table) -> tuple[int, int]:
    if not positions.num_rows:
        return 0, 0
    found = pc.min_max(positions["time_ns"]).as_py()
    return int(found["min"]), int(found["max"])


def _last_data_ns(samples: pa.Table) -> int:
    """Return the time at which a stream's data ends. Only heartbeats follow it."""
    moved = np.flatnonzero(np.diff(samples["rebuilt_position"].to_numpy()) > 0)
    return int(samples["time_ns"][int(moved[-1]) + 1 if len(moved) else 0].as_py())


def _stream(
    flow: dict[str, Any], tables: dict[str, pa.Table | None], start_ns: int
) -> dict[str, Any]:
    samples, gaps, stalls = tables["positions"], tables["gaps"], tables["stalls"]
    document: dict[str, Any] = {
        "id": stream_id(flow),
        "label": stream_label(flow),
        "short": f"{flow['stream_id']} {flow['vantage_point'][-8:]}",
        "stream": f"{flow['session_id']}/{flow['stream_id']}",
        "t": _times(samples, "time_ns", start_ns),
    }
    for name, column in (
        ("high", "high_position"), ("rebuilt", "rebuilt_position"),
        ("consumed", "consumed_position"), ("limit", "limit"),
    ):  # fmt: skip
        document[name] = [] if samples is None else samples[column].to_pylist()
    kept = [] if gaps is None else gaps.to_pylist()
    kept = kept[:: max(1, -(-len(kept) // GAPS_MAX))]
    document["gaps"] = {
        "t": [(gap["opened_ns"] - start_ns) / NS_PER_MS for gap in kept],
        "repair_ms": [_ms(gap["time_to_repair_ns"]) for gap in kept],
        "resend_ms": [_ms(gap["time_to_resend_ns"]) for gap in kept],
        "naks": [gap["nak_count"] for gap in kept],
        **{
            name: [gap[name] for gap in kept] for name in ("position", "length", "outcome", "cause")
        },
    }
    stall_rows = [] if stalls is None else stalls.to_pylist()
    stall_rows = sorted(stall_rows, key=lambda stall: -stall["duration_ns"])[:STALLS_MAX]
    document["stalls"] = {
        "from": [(stall["start_ns"] - start_ns) / NS_PER_MS for stall in stall_rows],
        "to": [(stall["opened_ns"] - start_ns) / NS_PER_MS for stall in stall_rows],
        "cause": [stall["cause"] for stall in stall_rows],
    }
    return document


def _times(table: pa.Table | None, column: str, start_ns: int) -> Any:
    if table is None:
        return np.zeros(0)
    return (table[column].to_numpy() - start_ns) / NS_PER_MS


def _ms(value: int | None) -> float | None:
    return None if value is None else value / NS_PER_MS


def _link(link: dict[str, Any]) -> dict[str, Any]:
    return {
        "label": f"{link['from_point']} → {link['to_point']} · {link['stream_id']}",
        "stream": f"{link['session_id']}/{link['stream_id']}",
        **{name: link[f"{name}_frames"] for name in ("sent", "lost", "reordered", "copied")},
    }
