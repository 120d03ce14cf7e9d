"""Totals of a capture's frames, which are computed per part in any order and then merged.

    batch -> totals --+
    batch -> totals --+--> merged totals --> streams, terms
    batch -> totals --+

A row sums one stream's frames with the same vantage point, endpoints, type, term, size class and
end-of-stream flags. There are usually few rows, however many frames there are, so only totals are
transferred.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.harness.artifact.middlebox.frame_class import NAMES, SETUP
from windtunnel.reports.analysis.kernels import totals_kernel as kernel
from windtunnel.reports.analysis.reading.schema import WITH_TERM
from windtunnel.reports.analysis.reading.stream_events import (
    dictionary_codes,
    endpoint_codes,
    endpoint_text,
    ints,
    types_of,
    with_session,
)

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
"""The columns by which frames are grouped. `size_class`: frame_length is at most 2 to this power.
`end_flags`: the flags EOS and REVOKED, or 0.
"""

SUMS = (("frames", pa.int64()), ("payload_bytes", pa.int64()), ("span_bytes", pa.int64()))
MINIMA = (("first_ns", pa.int64()), ("least_offset", pa.int32()), ("least_initial", pa.int32()))
MAXIMA = (
    ("last_ns", pa.int64()),
    ("end_offset", pa.int32()),
    ("most_initial", pa.int32()),
    ("term_length", pa.int32()),
    ("mtu", pa.int32()),
)
TOTALS = pa.schema([*KEYS, *SUMS, *MINIMA, *MAXIMA])
_SUMMED = (
    "term_id", "term_offset", "frame_length", "flags", "time_ns", "initial_term_id", "term_length",
    "mtu",
)  # fmt: skip
TOTALS_MAX = 1 << 18
"""Maximum number of rows. Each takes about 2 kB."""
COLUMNS = (
    "vantage_point", "session_id", "stream_id", "source_address", "source_port",
    "destination_address", "destination_port", "frame_type", *_SUMMED,
)  # fmt: skip
"""Columns of the frame table that are needed to compute totals."""
_TYPES_WITH = {
    "term_id": WITH_TERM,
    "least_initial": (SETUP,),
    "most_initial": (SETUP,),
    "term_length": (SETUP,),
    "mtu": (SETUP,),
}
"""The columns that only some frame types have, with these types. They are null in other types."""


def empty_totals() -> pa.Table:
    """Return the table TOTALS without rows."""
    return TOTALS.empty_table()


def totals_of(frames: pa.RecordBatch) -> pa.Table:
    """Count and sum the frames of a batch. Frames without a session are ignored."""
    chosen = with_session(frames)
    count = chosen.num_rows
    if not count:
        return empty_totals()
    found = np.empty(count, dtype=kernel.TOTAL)
    points, point_names = dictionary_codes(chosen.column("vantage_point"))
    sources, source_addresses = endpoint_codes(chosen, "source")
    destinations, destination_addresses = endpoint_codes(chosen, "destination")
    arrays = [
        points.astype(np.int32),
        ints(chosen, "session_id"),
        ints(chosen, "stream_id"),
        sources,
        destinations,
        types_of(chosen),
        *(ints(chosen, name) for name in _SUMMED),
        np.empty(1 << (2 * count).bit_length(), dtype=np.int32),
        found,
    ]
    # Hash arithmetic wraps intentionally. Without the JIT, numpy would warn about it.
    with np.errstate(over="ignore"):
        used = kernel.sum_up(*arrays)
    addresses = {"source": source_addresses, "destination": destination_addresses}
    return _table(found[:used], point_names, addresses)


def _table(found: Any, points: pa.Array, addresses: dict[str, pa.Array]) -> pa.Table:
    """Convert the compiled kernel's rows to the table TOTALS."""
    columns: dict[str, Any] = {}
    for field in TOTALS:
        values = found["point" if field.name == "vantage_point" else field.name]
        if field.name == "vantage_point":
            columns[field.name] = points.take(pa.array(values))
        elif field.name == "frame_type":
            columns[field.name] = [NAMES[each] for each in values.tolist()]
        elif field.name in addresses:
            names = addresses[field.name]
            columns[field.name] = [endpoint_text(int(each), names) for each in values]
        else:
            types = _TYPES_WITH.get(field.name)
            mask = None if types is None else ~np.isin(found["frame_type"], types)
            columns[field.name] = pa.array(values, pa.int64(), mask=mask).cast(field.type)
    return pa.table(columns, schema=TOTALS)


def merge_totals(totals: pa.Table) -> pa.Table:
    """Merge the rows of a table of totals whose keys are equal."""
    keys = [name for name, _ in KEYS]
    work = (
        [(name, "sum") for name, _ in SUMS]
        + [(name, "min") for name, _ in MINIMA]
        + [(name, "max") for name, _ in MAXIMA]
    )
    grouped = totals.group_by(keys).aggregate(work)
    names = [*keys, *(name for name, _ in (*SUMS, *MINIMA, *MAXIMA))]
    return grouped.rename_columns(names).cast(TOTALS)
