"""The survey of a part of a capture: packet counts and frame totals from the first reading.

Both are returned together because reading dominates the cost, and serialized because the tables
have different schemas. Only surveys are transferred to the Spark driver, not frames.

Each frame of a capture may claim a separate stream, address or term. So the number of totals is
limited: the first ones by their keys are kept. A total that is among the first ones of all parts is
among the first ones of each part, so the result does not depend on the parts and their order.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.reports.analysis.reading.parts import PartReader
from windtunnel.reports.analysis.reading.schema import CAPTURES
from windtunnel.reports.analysis.reading.totals import (
    COLUMNS,
    KEYS,
    TOTALS,
    TOTALS_MAX,
    empty_totals,
    merge_totals,
    totals_of,
)

SURVEY = pa.schema([("captures", pa.binary()), ("totals", pa.binary()), ("left_out", pa.int64())])
"""Columns of a survey: CAPTURES and TOTALS, each as one serialized Arrow batch, and the number of
frames that are not in the totals.
"""
TOTALS_PENDING_MIN = 1 << 16
"""Number of pending rows up to which totals are not merged, and more if there are more merged
ones: a merge takes a time that grows with both.
"""
_ORDER = [
    ("session_id", "ascending"),
    ("stream_id", "ascending"),
    # The SETUP frames of a stream, from which its positions follow, are before its DATA frames.
    ("frame_type", "descending"),
    *((name, "ascending") for name, _ in KEYS if name not in ("session_id", "stream_id")),
]


class TotalsSum:
    """Adds up the totals of many batches, in bounded memory."""

    def __init__(self, limit: int = TOTALS_MAX) -> None:
        self._limit = limit
        self._totals = empty_totals()
        self._pending: list[pa.Table] = []
        self._count = 0
        self.left_out = 0
        """Number of frames that are in no total because of the limit, when `table` was called."""

    def add(self, totals: pa.Table, left_out: int = 0) -> None:
        """Add the totals of a batch or part, and the number of frames that are not in them."""
        self._pending.append(totals)
        self._count += totals.num_rows
        self.left_out += left_out
        if self._count > max(TOTALS_PENDING_MIN, self._totals.num_rows // 2):
            self._merge()

    def _merge(self) -> None:
        merged = merge_totals(pa.concat_tables([self._totals, *self._pending]))
        self._pending, self._count = [], 0
        if merged.num_rows > self._limit:
            order = pc.sort_indices(merged, sort_keys=_ORDER)
            kept = merged.take(order.slice(0, self._limit))
            self.left_out += pc.sum(merged["frames"]).as_py() - pc.sum(kept["frames"]).as_py()
            merged = kept
        self._totals = merged

    def table(self) -> pa.Table:
        """Return the sum so far as the table TOTALS, with one row for each combination of key
        columns.
        """
        self._merge()
        return self._totals


def survey_of(reader: PartReader) -> pa.RecordBatch:
    """Read a part of a capture, and return its packet counts and frame totals as one row of
    SURVEY.
    """
    total = TotalsSum(reader.settings.totals_max)
    for batch in reader.batches(COLUMNS):
        total.add(totals_of(batch))
    found = {
        "captures": reader.captures().serialize().to_pybytes(),
        "totals": _batch(total.table()).serialize().to_pybytes(),
        "left_out": total.left_out,
    }
    return pa.RecordBatch.from_pylist([found], schema=SURVEY)


def _batch(table: pa.Table) -> pa.RecordBatch:
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], TOTALS)]
    return batch


def unpack_survey(survey: pa.Table, totals_max: int) -> tuple[pa.Table, TotalsSum]:
    """Convert surveys to the table CAPTURES, with a row per part, and the totals of all parts."""
    total = TotalsSum(totals_max)
    parts = _deserialized(survey["totals"], TOTALS)
    for each, left_out in zip(parts, survey["left_out"].to_pylist(), strict=True):
        total.add(pa.Table.from_batches([each]), left_out)
    captures = pa.Table.from_batches(_deserialized(survey["captures"], CAPTURES), schema=CAPTURES)
    return captures, total


def _deserialized(column: pa.ChunkedArray, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for each in column:
        yield pa.ipc.read_record_batch(each.as_buffer(), schema)
