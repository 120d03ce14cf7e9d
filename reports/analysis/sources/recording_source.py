"""`aeron.recording`: an archive's directory in Spark, Aeron's or ours.

    spark.read.format("aeron.recording").load("archive")
    spark.read.format("aeron.recording").option("table", "messages").option("recordings", "0,2")...

Options, all texts:

    path, paths    an archive's directory or a pattern of such; JSON list of such
    table          "frames" (one row a frame), "messages", "recordings" (the catalog) or "segments"
                   (one row a file: how far it could be read, and why no further)
    recordings     recording ids separated by commas; all that are valid if there are none
    payload        "true": with each message its bytes

Schemas are those of `recording_tables`. Partition rule: one partition a segment file, of the table
"recordings" one a directory; neither frame nor message reaches into another file. Rows come as
Arrow batches of at most some 16,000 frames or 8 MiB of messages; a reader holds a few MB whatever
the file's length. The paths must be readable under the same name on every worker.
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
class Asked:
    """What the options ask for."""

    archives: tuple[Path, ...]
    table: str
    recordings: frozenset[int] | None
    keeps_payload: bool


@dataclass
class ArchivePartition(InputPartition):
    """A segment file, or the directory whose catalog is wanted, as it is sent to a worker."""

    part: SegmentPart | Path


def read_options(options: Mapping[str, str]) -> Asked:
    """What is asked for. Raises RunTableError naming what is wrong or missing."""
    for name in options:
        if name.lower() not in OPTIONS:
            raise RunTableError(f"option {name!r}: expected one of {', '.join(OPTIONS)}")
    table = options.get("table", "frames")
    if table not in TABLES:
        raise RunTableError(f"table {table!r}: expected one of {', '.join(TABLES)}")
    ids = [each for each in options.get("recordings", "").split(",") if each.strip()]
    for each in ids:
        if not each.strip().isdecimal():
            raise RunTableError(f"option 'recordings': {each!r} is no recording id")
    payload = options.get("payload", "false").lower()
    if payload not in ("true", "false"):
        raise RunTableError(f"option 'payload': {payload!r}: expected true or false")
    paths = {name: options[name] for name in ("path", "paths") if name in options}
    wanted = frozenset(int(each) for each in ids) if ids else None
    return Asked(tuple(read_paths(paths)), table, wanted, payload == "true")


class AeronRecording(DataSource):
    __doc__ = __doc__

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._asked = read_options(options)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(TABLES[self._asked.table])

    def reader(self, schema: StructType) -> DataSourceReader:
        return AeronRecordingReader(self._asked)


class AeronRecordingReader(DataSourceReader):
    """Plans on the driver, reads on the workers."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    def partitions(self) -> list[Any]:
        asked = self._asked
        if asked.table == "recordings":
            return [ArchivePartition(each) for each in asked.archives]
        return [
            ArchivePartition(part)
            for archive in asked.archives
            for part in segment_parts(archive, asked.recordings)
        ]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if isinstance(partition.part, Path):
            yield recordings(partition.part)
            return
        reader = SegmentReader(partition.part)
        if self._asked.table == "segments":
            yield reader.summary()
        elif self._asked.table == "messages":
            yield from reader.messages(keeps_payload=self._asked.keeps_payload)
        else:
            yield from reader.frames()
