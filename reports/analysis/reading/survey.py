"""What a first reading tells of a part: what became of its packets, and the totals of its frames.

Both in one row, since reading is what costs, and packed, since they are tables of two kinds. Only
these travel, not the frames.
"""

from collections.abc import Iterator

import pyarrow as pa

from windtunnel.reports.analysis.reading.parts import PartReader
from windtunnel.reports.analysis.reading.schema import CAPTURES
from windtunnel.reports.analysis.reading.totals import (
    COLUMNS,
    TOTALS,
    added_up,
    empty_totals,
    totals_of,
)

SURVEY = pa.schema([("captures", pa.binary()), ("totals", pa.binary())])
"""CAPTURES and TOTALS, each as one Arrow batch."""
TOTALS_MANY = 1 << 16
"""Rows of totals that are added up before there are more."""


class TotalsSum:
    """Adds up the totals of many batches in bounded memory."""

    def __init__(self) -> None:
        self._totals = empty_totals()
        self._pending: list[pa.Table] = []
        self._count = 0

    def add(self, totals: pa.Table) -> None:
        """Take in totals."""
        self._pending.append(totals)
        self._count += totals.num_rows
        if self._count > TOTALS_MANY:
            self._totals, self._pending, self._count = self.table(), [], 0

    def table(self) -> pa.Table:
        """All so far, a row for each key."""
        return added_up(pa.concat_tables([self._totals, *self._pending]))


def survey_of(reader: PartReader) -> pa.RecordBatch:
    """One row of SURVEY of a part that was not read yet."""
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


def opened(survey: pa.Table) -> tuple[pa.Table, pa.Table]:
    """CAPTURES of all parts, a row each, and TOTALS, a row for each key."""
    total = TotalsSum()
    for each in _unpacked(survey["totals"], TOTALS):
        total.add(pa.Table.from_batches([each]))
    captures = pa.Table.from_batches(_unpacked(survey["captures"], CAPTURES), schema=CAPTURES)
    return captures, total.table()


def _unpacked(column: pa.ChunkedArray, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for each in column:
        yield pa.ipc.read_record_batch(each.as_buffer(), schema)
