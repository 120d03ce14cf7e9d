"""The survey of a part of a capture: packet counts and frame totals from the first reading.

Both are returned together because reading dominates the cost, and serialized because the tables
have different schemas. Only surveys are transferred to the Spark driver, not frames.
"""

from collections.abc import Iterator

import pyarrow as pa

from windtunnel.reports.analysis.reading.parts import PartReader
from windtunnel.reports.analysis.reading.schema import CAPTURES
from windtunnel.reports.analysis.reading.totals import (
    COLUMNS,
    TOTALS,
    empty_totals,
    merge_totals,
    totals_of,
)

SURVEY = pa.schema([("captures", pa.binary()), ("totals", pa.binary())])
"""Columns of a survey: CAPTURES and TOTALS, each as one serialized Arrow batch."""
TOTALS_PENDING_MAX = 1 << 16
"""Number of pending rows above which totals are merged."""


class TotalsSum:
    """Adds up the totals of many batches, in bounded memory."""

    def __init__(self) -> None:
        self._totals = empty_totals()
        self._pending: list[pa.Table] = []
        self._count = 0

    def add(self, totals: pa.Table) -> None:
        """Add the totals of a batch."""
        self._pending.append(totals)
        self._count += totals.num_rows
        if self._count > TOTALS_PENDING_MAX:
            self._totals, self._pending, self._count = self.table(), [], 0

    def table(self) -> pa.Table:
        """Return the sum so far as the table TOTALS, with one row for each combination of key
        columns.
        """
        return merge_totals(pa.concat_tables([self._totals, *self._pending]))


def survey_of(reader: PartReader) -> pa.RecordBatch:
    """Read a part of a capture, and return its packet counts and frame totals as one row of
    SURVEY.
    """
    total = TotalsSum()
    for batch in reader.batches(COLUMNS):
        total.add(totals_of(batch))
    found = {
        "captures": reader.captures().serialize().to_pybytes(),
        "totals": _batch(total.table()).serialize().to_pybytes(),
    }
    return pa.RecordBatch.from_pylist([found], schema=SURVEY)


def _batch(table: pa.Table) -> pa.RecordBatch:
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], TOTALS)]
    return batch


def unpack_survey(survey: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Convert surveys to two tables: CAPTURES with a row per part, and TOTALS with a row for each
    combination of key columns.
    """
    total = TotalsSum()
    for each in _deserialized(survey["totals"], TOTALS):
        total.add(pa.Table.from_batches([each]))
    captures = pa.Table.from_batches(_deserialized(survey["captures"], CAPTURES), schema=CAPTURES)
    return captures, total.table()


def _deserialized(column: pa.ChunkedArray, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for each in column:
        yield pa.ipc.read_record_batch(each.as_buffer(), schema)
