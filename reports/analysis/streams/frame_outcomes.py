"""The table `outcomes`: the outcome of each DATA or PAD frame and each missing range.

    one point     inferred from one capture alone                basis "inferred"
    two and more  each frame matched with its arrivals            basis "joined"

There is a row for each frame at each vantage point. Outcomes (column `outcome`): first; resent
(after a NAK, or seen before); duplicate (a copy); reordered (RFC 4737); late (its range had been
filled or skipped); earlier (before the first frame of this capture); unsent (only if joined: not
seen at the previous vantage point). With a single vantage point, each range that was never captured
also has a row: lost (retransmitted, or still open at the end) or gap filled (the receiver continued
without it).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.reports.analysis.kernels.frame_outcome_kernel import NO_OUTCOME
from windtunnel.reports.analysis.reading.stream_events import ints
from windtunnel.reports.analysis.streams.geometry import StreamKey
from windtunnel.reports.analysis.streams.repair_tables import FRAME_OUTCOME_NAMES, KEY
from windtunnel.reports.analysis.streams.stream_walk import WalkedFrames, WalkKey

INFERRED, JOINED = "inferred", "joined"
FRAME_ID_COLUMNS = ("file_index", "record_at", "frame_index")
"""Columns that identify a frame and order a capture."""

ONWARD = pa.struct(
    [
        ("point", pa.string()),
        ("arrived", pa.bool_()),
        ("transit_ns", pa.int64()),
        ("copies", pa.int64()),
    ]
)
FRAME_OUTCOMES = pa.schema(
    [
        *KEY,
        ("file_index", pa.int32()),
        ("record_at", pa.int64()),
        ("frame_index", pa.int32()),
        ("time_ns", pa.int64()),
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("outcome", pa.string()),
        ("basis", pa.string()),
        ("attempt", pa.int64()),
        ("extent_frames", pa.int64()),
        ("late_ns", pa.int64()),
        ("onward", pa.list_(ONWARD)),
    ]
)
"""Columns of the table `outcomes`. `length` includes header and padding. `attempt`: how often the
position had been sent, including this time, as seen at the first vantage point; null if unknown.
`extent_frames`, `late_ns`: extent and lateness if reordered, else 0. `onward`: the outcome at each
next vantage point; empty if there is none. For a range that was never captured, the three frame id
columns are null, and `time_ns` is the time at which it was found missing.
"""

OUTCOME_OF_GAP = {"repaired": "lost", "open": "lost", "passed": "gap filled"}


def inferred_outcomes(
    key: WalkKey, destinations: list[str], frames: Any, walked: WalkedFrames
) -> pa.RecordBatch:
    """Return rows of the table FRAME_OUTCOMES for a stream's frames, as inferred at a single
    vantage point.
    """
    events, outcomes = walked.events, walked.outcomes
    chosen = np.flatnonzero(outcomes["outcome"] != NO_OUTCOME)
    rows = events.rows[chosen]
    names = pa.array(FRAME_OUTCOME_NAMES).take(pa.array(outcomes["outcome"][chosen]))
    flows = pa.array(destinations, pa.string()).take(pa.array(events.flow_of[chosen]))
    return outcome_batch(
        key,
        flows,
        {name: ints(frames, name)[rows] for name in FRAME_ID_COLUMNS},
        {
            "time_ns": events.times_ns[chosen],
            "position": events.starts[chosen],
            "length": (events.ends - events.starts)[chosen],
            "extent_frames": outcomes["extent"][chosen],
            "late_ns": outcomes["late_ns"][chosen],
        },
        names,
        INFERRED,
    )


def outcome_batch(
    key: WalkKey,
    destinations: pa.Array,
    numbers: dict[str, Any],
    values: dict[str, Any],
    outcomes: pa.Array,
    basis: str,
    attempts: pa.Array | None = None,
    onward: pa.Array | None = None,
) -> pa.RecordBatch:
    """Build a batch of the table FRAME_OUTCOMES for a stream at one vantage point."""
    count = len(outcomes)
    point, session, stream = key
    columns = {
        "vantage_point": pa.repeat(pa.scalar(point), count),
        "session_id": pa.repeat(pa.scalar(session, pa.int32()), count),
        "stream_id": pa.repeat(pa.scalar(stream, pa.int32()), count),
        "destination": destinations,
        **numbers,
        **values,
        "outcome": outcomes,
        "basis": pa.repeat(pa.scalar(basis), count),
        "attempt": pa.nulls(count, pa.int64()) if attempts is None else attempts,
        "onward": _empty_onward(count) if onward is None else onward,
    }
    arrays = [
        columns[field.name]
        if isinstance(columns[field.name], pa.Array)
        else pa.array(columns[field.name]).cast(field.type)
        for field in FRAME_OUTCOMES
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAME_OUTCOMES)


def _empty_onward(count: int) -> pa.Array:
    none = pa.array([], ONWARD)
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, dtype=np.int32)), none)


def missing_outcomes(flow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield rows of the table FRAME_OUTCOMES for a flow's ranges that were lost or filled with
    padding.
    """
    for gap in flow["gaps"]:
        is_local = gap["cause"] == "before capture"
        if is_local and gap["outcome"] in OUTCOME_OF_GAP:
            yield {
                **{name: flow[name] for name, _ in KEY},
                "time_ns": gap["opened_ns"],
                "position": gap["position"],
                "length": gap["length"],
                "outcome": OUTCOME_OF_GAP[gap["outcome"]],
                "basis": INFERRED,
                "extent_frames": 0,
                "late_ns": 0,
                "onward": [],
            }


def missing_batches(
    rows: list[dict[str, Any]], points: dict[StreamKey, list[str]]
) -> Iterator[pa.RecordBatch]:
    """Yield rows of the table FRAME_OUTCOMES for lost ranges of streams with a single vantage
    point.
    """
    found = [
        outcome
        for row in rows
        if (row["session_id"], row["stream_id"]) not in points
        for outcome in missing_outcomes(row)
    ]
    if found:
        yield pa.RecordBatch.from_pylist(found, schema=FRAME_OUTCOMES)


def in_order(outcomes: pa.Table) -> pa.Table:
    """Sort the rows into an order that does not depend on the engine."""
    names = [*(name for name, _ in KEY), *FRAME_ID_COLUMNS, "position", "time_ns"]
    return outcomes.take(pc.sort_indices(outcomes, [(name, "ascending") for name in names]))
