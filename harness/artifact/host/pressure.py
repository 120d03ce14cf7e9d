"""Scheduling pressure on a host: one row for each sample of its driver, over the whole run.

All columns but the time are cumulative since the start of the driver or process, so the difference
of two rows covers the time between them.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.documents import DocumentError, read_as, write_document

SCHEMA = "windtunnel-pressure/1"
UNKNOWN = -1

COLUMNS = (
    "time_ns",
    "run_ns",
    "wait_ns",
    "throttled_ns",
    "longest_gap_ns",
    "stolen_ns",
)
"""Time of the sample; run time of the driver's threads; time that they were runnable but not
running, of the thread with the longest; time throttled by a CPU quota, or UNKNOWN; longest interval
between two samples since the previous row (one is due every few ms); steal time of the processor
with the most, or UNKNOWN."""
_OLDER = COLUMNS[:-1]
"""Columns of documents of earlier versions."""


@dataclass(frozen=True)
class Pressure:
    """The samples of one host."""

    interval_ns: int
    "Nominal interval between two samples."
    rows: NDArray[np.int64]
    "One row per sample, columns as in COLUMNS."

    def column(self, name: str) -> NDArray[np.int64]:
        column: NDArray[np.int64] = self.rows[:, COLUMNS.index(name)]
        return column

    def write(self, path: Path) -> None:
        rows = self.rows.tolist()
        document = {"interval_ns": self.interval_ns, "columns": list(COLUMNS), "rows": rows}
        write_document(path, {"schema": SCHEMA, **document})

    @classmethod
    def read(cls, path: Path) -> "Pressure | None":
        """Return the samples, or None if the file is missing; raise DocumentError if damaged."""
        table = read_as(_Table, path, SCHEMA)
        if table is None:
            return None
        columns = tuple(table.columns)
        if columns not in (COLUMNS, _OLDER):
            expected = ", ".join(COLUMNS)
            raise DocumentError(f"{path.name}: columns: expected {expected}, found others")
        wrong = [at for at, row in enumerate(table.rows) if len(row) != len(columns)]
        if wrong:
            found = len(table.rows[wrong[0]])
            text = f"rows[{wrong[0]}]: expected {len(columns)} values, found {found}"
            raise DocumentError(f"{path.name}: {text}")
        values = np.array(table.rows, dtype=np.int64).reshape(-1, len(columns))
        rows = np.full((len(values), len(COLUMNS)), UNKNOWN, dtype=np.int64)
        rows[:, : len(columns)] = values
        return cls(table.interval_ns, rows)


@dataclass(frozen=True)
class _Table:
    """The document."""

    interval_ns: int
    columns: list[str]
    rows: list[list[int]]
