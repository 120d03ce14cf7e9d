"""`aeron.recording`: a Spark data source for Aeron or Windtunnel archive directories.

    spark.read.format("aeron.recording").load("archive")
    spark.read.format("aeron.recording").option("table", "messages").option("recordings", "0,2")...

Options, all strings:

    path, paths    an archive directory or a pattern; JSON list of them
    table          "frames" (one row per frame), "messages", "recordings" (the catalog) or
                   "segments" (one row per file: how much of it could be read, and any problem)
    recordings     recording ids, separated by commas; default: all valid ones
    payload        "true": include the bytes of each message

Schemas: see `recording_tables`. Partitions: one per segment file or, for the table "recordings",
one per directory. Neither frames nor messages span files. Rows are delivered in Arrow batches of at
most about 16,000 frames or 8 MiB of messages. A reader uses a few MB regardless of the file length.
The paths must be readable under the same name on every worker.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from windtunnel.reports.analysis.sources.recording_tables import (
    FRAMES,
    MESSAGES,
    RECORDINGS,
    SEGMENTS,
    SegmentPart,
    recordings,
    segment_parts,
)
from windtunnel.reports.analysis.sources.run_source import read_paths
from windtunnel.reports.analysis.sources.run_tables import RunTableError
from windtunnel.reports.analysis.sources.segment_reader import SegmentReader

FORMAT = "aeron.recording"
TABLES = {"frames": FRAMES, "messages": MESSAGES, "recordings": RECORDINGS, "segments": SEGMENTS}
OPTIONS = ("path", "paths", "table", "recordings", "payload")


@dataclass(frozen=True)
class RecordingOptions:
    """The parsed options of the data source `aeron.recording`."""

    archives: tuple[Path, ...]
    table: str
    recordings: frozenset[int] | None
    keeps_payload: bool


@dataclass
class ArchivePartition(InputPartition):
    """A Spark partition: a segment file or, for the catalog, an archive directory."""

    part: SegmentPart | Path


def read_options(options: Mapping[str, str]) -> RecordingOptions:
    """Parse the data source's options. Raises RunTableError if one is invalid or missing."""
    for name in options:
        if name.lower() not in OPTIONS:
            raise RunTableError(f"unknown option {name!r}: expected one of {', '.join(OPTIONS)}")
    table = options.get("table", "frames")
    if table not in TABLES:
        raise RunTableError(f"unknown table {table!r}: expected one of {', '.join(TABLES)}")
    ids = [each for each in options.get("recordings", "").split(",") if each.strip()]
    for each in ids:
        if not each.strip().isdecimal():
            raise RunTableError(f"option 'recordings': {each!r}: expected a recording id")
    payload = options.get("payload", "false").lower()
    if payload not in ("true", "false"):
        raise RunTableError(f"option 'payload': {payload!r}: expected true or false")
    paths = {name: options[name] for name in ("path", "paths") if name in options}
    recording_ids = frozenset(int(each) for each in ids) if ids else None
    return RecordingOptions(tuple(read_paths(paths)), table, recording_ids, payload == "true")


class AeronRecording(DataSource):
    __doc__ = __doc__

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._options = read_options(options)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(TABLES[self._options.table])

    def reader(self, schema: StructType) -> DataSourceReader:
        return AeronRecordingReader(self._options)


class AeronRecordingReader(DataSourceReader):
    """Plans partitions on Spark's driver, and reads them on its workers."""

    def __init__(self, options: RecordingOptions) -> None:
        self._options = options

    def partitions(self) -> list[Any]:
        options = self._options
        if options.table == "recordings":
            return [ArchivePartition(each) for each in options.archives]
        return [
            ArchivePartition(part)
            for archive in options.archives
            for part in segment_parts(archive, options.recordings)
        ]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if isinstance(partition.part, Path):
            yield recordings(partition.part)
            return
        reader = SegmentReader(partition.part)
        if self._options.table == "segments":
            yield reader.summary()
        elif self._options.table == "messages":
            yield from reader.messages(keeps_payload=self._options.keeps_payload)
        else:
            yield from reader.frames()
