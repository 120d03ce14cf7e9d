"""Sums over frames that can be taken anywhere and in any order, and added up afterwards.

    batch -> totals --+
    batch -> totals --+--> totals of all --> streams, terms
    batch -> totals --+

A row sums the frames of one stream that share vantage point, ends, type, term, class of size and
end-of-stream flag. There are few rows however many frames there are, so only these travel.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reports.analysis.stream_events import ends_of

KEYS = (
    ("vantage_point", pa.string()),
    ("session_id", pa.int32()),
    ("stream_id", pa.int32()),
    ("source", pa.string()),
    ("destination", pa.string()),
    ("frame_type", pa.string()),
    ("term_id", pa.int32()),
    ("size_class", pa.int32()),
    ("end_flags", pa.int32()),
)
"""`size_class`: frame_length is at most 2 to its power; `end_flags`: EOS and REVOKED, else 0."""

SUMS = (("frames", pa.int64()), ("payload_bytes", pa.int64()), ("span_bytes", pa.int64()))
LEAST = (("first_ns", pa.int64()), ("least_offset", pa.int32()), ("least_initial", pa.int32()))
MOST = (
    ("last_ns", pa.int64()),
    ("end_offset", pa.int32()),
    ("most_initial", pa.int32()),
    ("term_length", pa.int32()),
    ("mtu", pa.int32()),
)
TOTALS = pa.schema([*KEYS, *SUMS, *LEAST, *MOST])
_END_FLAGS = 0x30


def empty_totals() -> pa.Table:
    """No rows."""
    return TOTALS.empty_table()


def totals_of(frames: pa.RecordBatch) -> pa.Table:
    """The totals of some frames of schema FRAMES; frames without a session are left out."""
    sessions = frames.column("session_id")
    chosen = frames.filter(pc.is_valid(sessions)) if sessions.null_count else frames
    table = pa.Table.from_batches([chosen])
    if not table.num_rows:
        return empty_totals()
    lengths = table["frame_length"].to_numpy()
    kinds = table["frame_type"]
    spans = ((lengths.astype(np.int64) + 31) & ~31).astype(np.int64)
    is_positional = pc.is_in(kinds, pa.array(["DATA", "PAD"])).to_numpy(zero_copy_only=False)
    is_data = pc.equal(kinds, "DATA").to_numpy(zero_copy_only=False)
    is_heartbeat = pc.equal(kinds, "HEARTBEAT").to_numpy(zero_copy_only=False)
    offsets = pc.fill_null(table["term_offset"], 0).to_numpy()
    flags = table["flags"].to_numpy()
    classes = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int32)
    columns = {
        "vantage_point": table["vantage_point"],
        "session_id": table["session_id"],
        "stream_id": table["stream_id"],
        "source": _end(table, "source"),
        "destination": _end(table, "destination"),
        "frame_type": kinds,
        "term_id": table["term_id"],
        "size_class": np.where(is_positional, classes, 0).astype(np.int32),
        "end_flags": np.where(is_heartbeat, flags & _END_FLAGS, 0).astype(np.int32),
        "frames": np.ones(len(lengths), dtype=np.int64),
        "payload_bytes": np.where(is_data, lengths - 32, 0).astype(np.int64),
        "span_bytes": np.where(is_positional, spans, 0),
        "first_ns": table["time_ns"],
        "least_offset": offsets.astype(np.int32),
        "least_initial": table["initial_term_id"],
        "last_ns": table["time_ns"],
        "end_offset": (offsets + np.where(is_positional, spans, 0)).astype(np.int32),
        "most_initial": table["initial_term_id"],
        "term_length": table["term_length"],
        "mtu": table["mtu"],
    }
    return added_up(pa.table(columns, schema=TOTALS))


def _end(table: pa.Table, which: str) -> pa.Array:
    codes, texts = ends_of(table, which)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts)).cast(pa.string())


def added_up(totals: pa.Table) -> pa.Table:
    """Rows with the same keys made one."""
    keys = [name for name, _ in KEYS]
    work = (
        [(name, "sum") for name, _ in SUMS]
        + [(name, "min") for name, _ in LEAST]
        + [(name, "max") for name, _ in MOST]
    )
    grouped = totals.group_by(keys).aggregate(work)
    names = [*keys, *(name for name, _ in (*SUMS, *LEAST, *MOST))]
    return grouped.rename_columns(names).cast(TOTALS)
