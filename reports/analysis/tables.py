"""What an analysis comes to: four small tables, and whether they tell everything.

    captures    what became of the packets of each file
    streams     each publication at each vantage point
    flows       the same to each destination: what was first, sent again, late, double
    gaps        each gap with its cause and its repair

Partial means that some packets could not be read; what the tables hold is sound all the same.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_LOSSES = (
    ("damaged_bytes", "{count:,} bytes are damaged and were passed over"),
    ("torn_bytes", "ends within a packet; its last {count:,} bytes were left out"),
    ("cut", "{count:,} packets were captured too short to be read"),
    ("unseen_bytes", "{count:,} bytes behind the snap length may hold frames"),
    ("fragments_incomplete", "{count:,} fragmented datagrams are not whole"),
    ("unknown_link", "{count:,} packets come from an unknown link layer or interface"),
    ("untimed", "{count:,} packets have no time of capture"),
)
NAMES = ("captures", "streams", "flows", "gaps")


@dataclass(frozen=True)
class Tables:
    """The answers; columns are those of CAPTURES, STREAMS, FLOWS and GAPS."""

    captures: pa.Table
    streams: pa.Table
    flows: pa.Table
    gaps: pa.Table

    @property
    def problems(self) -> list[str]:
        """Why the answers are partial, one line each; empty when they are not."""
        return list(dict.fromkeys(self._problems()))

    @property
    def is_partial(self) -> bool:
        return bool(self.problems)

    def _problems(self) -> Iterator[str]:
        for row in self.captures.to_pylist():
            if row["problem"]:
                yield f"{row['file']}: {row['problem']}"
            for name, text in _LOSSES:
                if row[name]:
                    yield f"{row['file']}: {text.format(count=row[name])}"
        for table in (self.streams, self.flows):
            for row in table.to_pylist():
                if row["problem"]:
                    yield f"stream {row['stream_id']} session {row['session_id']}: {row['problem']}"

    def named(self) -> dict[str, pa.Table]:
        """The tables by their names."""
        return {name: getattr(self, name) for name in NAMES}


def write_tables(tables: Tables, folder: Path) -> None:
    """Write each table as Parquet into a folder of its name, a file per vantage point.

    What an earlier run wrote there is replaced as a whole, so the same run twice gives the same
    files. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.named().items():
        target, made = folder / name, folder / f".{name}.new"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        if table.num_rows:
            pq.write_to_dataset(
                table, made, partition_cols=["vantage_point"], basename_template="part-{i}.parquet"
            )
        pq.write_metadata(table.schema, made / "_common_metadata")
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
