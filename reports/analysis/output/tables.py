"""The tables of a capture analysis, and the problems that make them incomplete.

    captures    packet counts of each file
    streams     each publication at each vantage point
    flows       each stream per destination: first, retransmitted, late and duplicate frames
    gaps        each gap with its cause and repair
    windows     flow control of each flow, and its round-trip times
    stalls      each pause of a sender whose limit left no room, and its cause
    positions   samples of the positions of each flow
    images      the reassembled messages of each flow: their number and checksum
    messages    each reassembled message; empty unless requested
    links       loss, copies, reordering and delay between two vantage points

An analysis is partial if some packets could not be read, if there were too many streams, or if the
times of a capture go back. Its rows are valid nevertheless.
"""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windtunnel.harness.artifact.noun_form import counted, noun_for
from windtunnel.reports.analysis.output.durations import duration

_LOSSES = (
    ("damaged_bytes", "byte is damaged and was", "bytes are damaged and were", "{} skipped"),
    ("torn_bytes", "byte was", "bytes were", "ends inside a packet, so the last {} ignored"),
    ("cut", "packet was", "packets were", "{} captured too short to be read"),
    ("unseen_bytes", "byte", "bytes", "{} beyond the snap length may contain frames"),
    ("fragments_incomplete", "fragmented datagram is", "fragmented datagrams are", "{} incomplete"),
    ("unknown_link", "packet has", "packets have", "{} an unknown link layer or interface"),
    ("untimed", "packet has", "packets have", "{} no valid capture time"),
)
"""Columns of the captures table that count what was not read, and their descriptions."""


_NO_TABLES = ("left_out", "host_names")


@dataclass(frozen=True)
class Tables:
    """The tables of a capture analysis. Each has the columns of the schema with the same name."""

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
    left_out: tuple[str, ...] = ()
    """Sentences that describe what the analysis left out because of its limits."""
    host_names: dict[str, str] = field(default_factory=dict)
    """The hosts of a run by address, if all captures belong to one run folder."""

    @property
    def problems(self) -> list[str]:
        """The reasons why the analysis is partial, one line each. Empty if it is complete."""
        return list(dict.fromkeys(self._problems()))

    @property
    def is_partial(self) -> bool:
        return bool(self.problems)

    def _problems(self) -> Iterator[str]:
        yield from self.left_out
        for row in self.captures.to_pylist():
            if row["problem"]:
                yield f"{row['file']}: {row['problem']}"
            if row["clock_steps"]:
                yield _clock_problem(row)
            for name, singular, plural, text in _LOSSES:
                if row[name]:
                    items = f"{row[name]:,} {noun_for(row[name], singular, plural)}"
                    yield f"{row['file']}: {text.format(items)}"
        for table in (self.streams, self.flows):
            for row in table.to_pylist():
                if row["problem"]:
                    yield f"stream {row['stream_id']} session {row['session_id']}: {row['problem']}"

    def named(self) -> dict[str, pa.Table]:
        """Return the tables as a dictionary, by name."""
        names = (each.name for each in fields(self) if each.name not in _NO_TABLES)
        return {name: getattr(self, name) for name in names}


def _clock_problem(row: dict[str, Any]) -> str:
    late = counted(row["clock_steps"], "packet") + noun_for(row["clock_steps"], " is", " are")
    return (
        f"{row['file']}: {late} earlier than the one before, by up to "
        f"{duration(row['clock_step_ns'])}, first packet {row['clock_step_packet']:,}: the clock "
        "was stepped back, or the packets are not in order of time; durations, rates, stalls and "
        f"links of {row['vantage_point']} are left out. `editcap` cuts a capture at a packet; "
        "`reordercap` sorts the packets of several interfaces"
    )


def write_tables(tables: Tables, folder: Path) -> None:
    """Write each table as Parquet to a folder named after it, with one file per vantage point.

    Existing tables are replaced as a whole. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.named().items():
        with replace_folder(folder / name) as new_folder:
            if table.num_rows:
                by_point = ["vantage_point"] if "vantage_point" in table.column_names else None
                pq.write_to_dataset(
                    table, new_folder, partition_cols=by_point, basename_template="part-{i}.parquet"
                )
            pq.write_metadata(table.schema, new_folder / "_common_metadata")


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder that replaces the existing one on success. On failure nothing changes."""
    new_folder = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.new")
    new_folder.mkdir(parents=True)
    try:
        yield new_folder
    except BaseException:
        shutil.rmtree(new_folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    new_folder.rename(folder)


class VantagePointWriter:
    """A Parquet writer for batches, with one file per vantage point."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder = folder
        self._schema = schema.remove(schema.get_field_index("vantage_point"))
        self._files: dict[str, pq.ParquetWriter] = {}
        pq.write_metadata(schema, folder / "_common_metadata")

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch, which may have several vantage points, to the files. Raises OSError if a
        file cannot be written.
        """
        for point in pc.unique(batch.column("vantage_point")).to_pylist():
            rows = batch.filter(pc.equal(batch.column("vantage_point"), point))
            if point not in self._files:
                folder = self._folder / f"vantage_point={quote(point, safe='')}"
                folder.mkdir()
                self._files[point] = pq.ParquetWriter(folder / "part-0.parquet", self._schema)
            self._files[point].write_batch(rows.select(self._schema.names))

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
