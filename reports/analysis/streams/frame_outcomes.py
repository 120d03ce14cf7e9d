"""The table of fates: a row for each frame with a position at each vantage point, and what is lost.

    one point     what this capture alone lets infer              basis "inferred"
    two and more  each passage joined with its arrivals           basis "joined"

Fates: first; resent (after a NAK, or passed before); duplicate (a copy); reordered (overtaken on
the way, RFC 4737); late (its place was filled when it came); earlier (before the first of this
capture); unsent (joined: it never passed the point before). Of what one point never saw, a range
each: lost (sent again, or open at the end) and gap filled (the receiver went on without it).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.reports.analysis.kernels.frame_outcome_kernel import NO_FATE
from windtunnel.reports.analysis.reading.stream_events import ints
from windtunnel.reports.analysis.streams.repair import FATE_NAMES, KEY
from windtunnel.reports.analysis.streams.stream_walk import Told, WalkKey

INFERRED, JOINED = "inferred", "joined"
NUMBER_COLUMNS = ("file_index", "record_at", "frame_index")
"""What names a frame, and orders a capture."""

ONWARD = pa.struct(
    [
        ("point", pa.string()),
        ("arrived", pa.bool_()),
        ("transit_ns", pa.int64()),
        ("copies", pa.int64()),
    ]
)
FATES = pa.schema(
    [
        *KEY,
        ("file_index", pa.int32()),
        ("record_at", pa.int64()),
        ("frame_index", pa.int32()),
        ("time_ns", pa.int64()),
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("fate", pa.string()),
        ("basis", pa.string()),
        ("attempt", pa.int64()),
        ("extent_frames", pa.int64()),
        ("late_ns", pa.int64()),
        ("onward", pa.list_(ONWARD)),
    ]
)
"""`length` with header and padding. `attempt`: which passage of this position it is where it first
was seen; null where that is not known. `extent_frames`, `late_ns`: of reordering, else 0. `onward`:
what became of it at the next points, empty where nobody looked. Of a range that never came by, the
three numbers of a frame are null and `time_ns` is when it was missed."""

FATE_OF_GAP = {"repaired": "lost", "open": "lost", "passed": "gap filled"}


def inferred_fates(
    key: WalkKey, destinations: list[str], frames: Any, told: Told
) -> pa.RecordBatch:
    """The fates of a stream's frames at one point, of schema FATES."""
    events, about = told.events, told.told
    chosen = np.flatnonzero(about["fate"] != NO_FATE)
    rows = events.rows[chosen]
    names = pa.array(FATE_NAMES).take(pa.array(about["fate"][chosen]))
    flows = pa.array(destinations, pa.string()).take(pa.array(events.flow_of[chosen]))
    return fate_batch(
        key,
        flows,
        {name: ints(frames, name)[rows] for name in NUMBER_COLUMNS},
        {
            "time_ns": events.times_ns[chosen],
            "position": events.starts[chosen],
            "length": (events.ends - events.starts)[chosen],
            "extent_frames": about["extent"][chosen],
            "late_ns": about["late_ns"][chosen],
        },
        names,
        INFERRED,
    )


def fate_batch(
    key: WalkKey,
    destinations: pa.Array,
    numbers: dict[str, Any],
    values: dict[str, Any],
    fates: pa.Array,
    basis: str,
    attempts: pa.Array | None = None,
    onward: pa.Array | None = None,
) -> pa.RecordBatch:
    """Rows of schema FATES of one stream at one point."""
    count = len(fates)
    point, session, stream = key
    columns = {
        "vantage_point": pa.repeat(pa.scalar(point), count),
        "session_id": pa.repeat(pa.scalar(session, pa.int32()), count),
        "stream_id": pa.repeat(pa.scalar(stream, pa.int32()), count),
        "destination": destinations,
        **numbers,
        **values,
        "fate": fates,
        "basis": pa.repeat(pa.scalar(basis), count),
        "attempt": pa.nulls(count, pa.int64()) if attempts is None else attempts,
        "onward": _nowhere(count) if onward is None else onward,
    }
    arrays = [
        columns[field.name]
        if isinstance(columns[field.name], pa.Array)
        else pa.array(columns[field.name]).cast(field.type)
        for field in FATES
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FATES)


def _nowhere(count: int) -> pa.Array:
    none = pa.array([], ONWARD)
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, dtype=np.int32)), none)


def unseen_fates(flow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of schema FATES of what a row of FLOWS_AND_ALL tells as missing at its point."""
    for gap in flow["gaps"]:
        is_here = gap["cause"] == "before capture"
        if is_here and gap["outcome"] in FATE_OF_GAP:
            yield {
                **{name: flow[name] for name, _ in KEY},
                "time_ns": gap["opened_ns"],
                "position": gap["position"],
                "length": gap["length"],
                "fate": FATE_OF_GAP[gap["outcome"]],
                "basis": INFERRED,
                "extent_frames": 0,
                "late_ns": 0,
                "onward": [],
            }


def in_order(fates: pa.Table) -> pa.Table:
    """The rows in an order of their own, whichever engine made them."""
    names = [*(name for name, _ in KEY), *NUMBER_COLUMNS, "position", "time_ns"]
    return fates.take(pc.sort_indices(fates, [(name, "ascending") for name in names]))
