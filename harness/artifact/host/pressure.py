"""Scheduling pressure on a host's driver: samples of how long its threads ran, and how long they
waited for a processor.

All columns except the time are cumulative since the start of the driver or process, so the
difference between two rows covers the time between them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.documents import DocumentError, StoredDocument

UNKNOWN = -1

COLUMNS = (
    "time_ns",
    "run_ns",
    "wait_ns",
    "throttled_ns",
    "longest_gap_ns",
    "stolen_ns",
)
"""Columns of a row: the time of the sample, and five measurements in nanoseconds.

The measurements are the run time of the driver's threads; the longest time that any thread was
runnable but not running; the time throttled by a CPU quota, or UNKNOWN; the longest interval
between samples since the previous row (a sample is due every few ms); and the steal time of the
most affected processor, or UNKNOWN.
"""
_OLDER = COLUMNS[:-1]
"""Columns of documents that earlier versions wrote."""


@dataclass(frozen=True)
class Pressure:
    """All samples of the scheduling pressure on one host."""

    interval_ns: int
    "Nominal interval between samples."
    rows: NDArray[np.int64]
    "One row per sample, with the columns of COLUMNS."

    def column(self, name: str) -> NDArray[np.int64]:
        column: NDArray[np.int64] = self.rows[:, COLUMNS.index(name)]
        return column

    def write(self, path: Path) -> None:
        _Table(self.interval_ns, list(COLUMNS), self.rows.tolist()).write(path)

    @classmethod
    def read(cls, path: Path) -> "Pressure | None":
        """Read the samples, or return None if the file is missing. Raises DocumentError if the file
        is invalid.
        """
        table = _Table.read(path)
        if table is None:
            return None
        columns = tuple(table.columns)
        if columns not in (COLUMNS, _OLDER):
            expected = ", ".join(COLUMNS)
            raise DocumentError(f"{path.name}: columns: expected {expected}, found other columns")
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
class _Table(StoredDocument):
    """The contents of a scheduling-pressure document."""

    SCHEMA: ClassVar[str] = "windtunnel-pressure/1"

    interval_ns: int
    columns: list[str]
    rows: list[list[int]]
