"""What an analysis comes to: small tables, and whether they tell everything.

    captures    what became of the packets of each file
    streams     each publication at each vantage point
    flows       the same to each destination: what was first, sent again, late, double
    gaps        each gap with its cause and its repair
    windows     flow control of each flow, and its round trips
    stalls      each pause of a sender that had no room, and who caused it
    positions   samples of how far each flow was
    images      what of each flow could be put together, with the checksum of all its messages
    messages    each of these messages; empty unless asked for
    links       what was lost, copied, reordered and how long it took between two vantage points

Partial means that some packets could not be read; what the tables hold is sound all the same.
"""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
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


@dataclass(frozen=True)
class Tables:
    """The answers; columns are those of the schema of the same name."""

    captures: pa.Table
    streams: pa.Table
    flows: pa.Table
    gaps: pa.Table
    windows: pa.Table
    stalls: pa.Table
    positions: pa.Table
    images: pa.Table
    messages: pa.Table
    links: pa.Table

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
        return {each.name: getattr(self, each.name) for each in fields(self)}


def write_tables(tables: Tables, folder: Path) -> None:
    """Write each table as Parquet into a folder of its name, a file per vantage point.

    What an earlier run wrote there is replaced as a whole, so the same run twice gives the same
    files. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.named().items():
        with replaced(folder / name) as made:
            if table.num_rows:
                by_point = ["vantage_point"] if "vantage_point" in table.column_names else None
                pq.write_to_dataset(
                    table, made, partition_cols=by_point, basename_template="part-{i}.parquet"
                )
            pq.write_metadata(table.schema, made / "_common_metadata")


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A new folder that takes the place of another when it is done; nothing changes if it fails."""
    made = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.new")
    made.mkdir(parents=True)
    try:
        yield made
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    made.rename(folder)


class PointWriter:
    """Writes batches of any number as Parquet, a file per vantage point, as they come."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder = folder
        self._schema = schema.remove(schema.get_field_index("vantage_point"))
        self._files: dict[str, pq.ParquetWriter] = {}
        pq.write_metadata(schema, folder / "_common_metadata")

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; a batch may hold several vantage points. Raises OSError."""
        for point in pc.unique(batch.column("vantage_point")).to_pylist():
            rows = batch.filter(pc.equal(batch.column("vantage_point"), point))
            if point not in self._files:
                folder = self._folder / f"vantage_point={quote(point, safe='')}"
                folder.mkdir()
                self._files[point] = pq.ParquetWriter(folder / "part-0.parquet", self._schema)
            self._files[point].write_batch(rows.select(self._schema.names))

    def close(self) -> None:
        """Finish all files."""
        for file in self._files.values():
            file.close()
