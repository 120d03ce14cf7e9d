"""How hard a host was pressed: a row for each look at its driver, over the whole run.

All but the time are counted from the driver's or the process's start, so that two rows tell what
lay between them.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document

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
"""When; how long the driver's threads have run; how long they were ready to run and did not, the
longest of them alone; how long the system kept them from running by quota, or UNKNOWN; the longest
time between two looks of the sampler since the row before, where one is due every few ms; how long
the machine's own host gave the most robbed processor to others, or UNKNOWN."""
_OLDER = COLUMNS[:-1]
"""Of documents that earlier versions wrote."""


@dataclass(frozen=True)
class Pressure:
    """What one host's sampler noted."""

    interval_ns: int
    "Between two looks of the sampler, as it should be."
    rows: NDArray[np.int64]
    "One row a line, columns as in COLUMNS."

    def column(self, name: str) -> NDArray[np.int64]:
        column: NDArray[np.int64] = self.rows[:, COLUMNS.index(name)]
        return column

    def write(self, path: Path) -> None:
        rows = self.rows.tolist()
        document = {"interval_ns": self.interval_ns, "columns": list(COLUMNS), "rows": rows}
        write_document(path, {"schema": SCHEMA, **document})

    @classmethod
    def read(cls, path: Path) -> "Pressure | None":
        """What was noted, or None when the file is missing; DocumentError when it is damaged."""
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        try:
            columns = tuple(document["columns"])
            if columns not in (COLUMNS, _OLDER):
                raise DocumentError(f"{path.name}: columns {document['columns']}")
            told = np.array(document["rows"], dtype=np.int64).reshape(-1, len(columns))
            rows = np.full((len(told), len(COLUMNS)), UNKNOWN, dtype=np.int64)
            rows[:, : len(columns)] = told
            return cls(int(document["interval_ns"]), rows)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DocumentError(f"{path.name}: {error}") from error
