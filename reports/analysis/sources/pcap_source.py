"""`aeron.pcap`: a Spark data source for captures of Aeron traffic.

    spark.dataSource.register(AeronPcap)
    spark.read.format("aeron.pcap").load("lan/*.pcap")
    spark.read.format("aeron.pcap").option("paths", json.dumps(["a.pcap", "b=lan/*.gz"])).load()

Options, all strings:

    path, paths    a path, pattern, folder or NAME=PATTERN; a JSON list of them
    ports          UDP ports of either endpoint, separated by commas; other packets are only counted
    table          "frames" (one row per frame) or "captures" (packet counts per part);
                   for the analysis, "survey" (both as sums) and "frame_batches" (frames packed)
    parts          minimum number of partitions, if files and cells allow it
    split          "false": one partition per file
    hash           "false": leave payload_hash null, which is faster
    crc32          "true": also compute payload_crc32
    cell           bytes per cell; for tests
    totals         maximum number of totals of a survey

Schema: `schema.FRAMES`, `schema.CAPTURES`, `survey.SURVEY` or `frame_batches.FRAME_BATCHES`.
Partitions: a compressed file is one partition. An uncompressed file is split every 128 MiB (or into
`parts`) at multiples of a cell, and each reader searches for the first record in its cells (see
`capture_stream`). The rows and their contents do not depend on the partitions, except for the
number of frames in a frame batch. Rows are delivered in Arrow batches of at most about 65,000 rows.
A reader uses about 100 MB regardless of the file size. The paths must be readable under the same
name on every worker.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from windtunnel.harness.dissect.capture.capture_stream import CELL_LENGTH
from windtunnel.reports.analysis.options import OUTCOME_COLUMNS
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.parts import Part, PartReader, ReadSettings, plan
from windtunnel.reports.analysis.reading.schema import CAPTURES, FRAMES, decode_dictionaries
from windtunnel.reports.analysis.reading.survey import SURVEY, survey_of
from windtunnel.reports.analysis.reading.totals import TOTALS_MAX
from windtunnel.reports.analysis.sources.frame_batches import FRAME_BATCHES, pack_frames

FORMAT = "aeron.pcap"
TABLES = {"frames": FRAMES, "captures": CAPTURES, "survey": SURVEY, "frame_batches": FRAME_BATCHES}
OPTIONS = ("path", "paths", "ports", "table", "parts", "split", "hash", "crc32", "cell", "totals")


class CaptureOptionError(ValueError):
    """Raised for an invalid option of the data source. The message names it and the expected
    values.
    """


@dataclass
class CapturePartition(InputPartition):
    """A Spark partition: a part of a capture that is sent to a worker."""

    part: Part


def read_options(options: Mapping[str, str]) -> tuple[list[str], str, ReadSettings]:
    """Parse the data source's options into paths, table and settings. Raises CaptureOptionError if
    an option is unknown or invalid.
    """
    for name in options:
        if name.lower() not in OPTIONS:
            raise CaptureOptionError(
                f"unknown option {name!r}: expected one of {', '.join(OPTIONS)}"
            )
    table = options.get("table", "frames")
    if table not in TABLES:
        raise CaptureOptionError(f"unknown table {table!r}: expected one of {', '.join(TABLES)}")
    try:
        paths = [options["path"]] if "path" in options else []
        paths += json.loads(options.get("paths", "[]"))
        settings = ReadSettings(
            ports=tuple(int(each) for each in options.get("ports", "").split(",") if each.strip()),
            parts=int(options.get("parts", "0")),
            may_split=_boolean(options, "split"),
            keeps_hash=_boolean(options, "hash"),
            keeps_crc32=_boolean(options, "crc32", "false"),
            cell_length=int(options.get("cell", str(CELL_LENGTH))),
            totals_max=int(options.get("totals", str(TOTALS_MAX))),
        )
    except ValueError as error:
        raise CaptureOptionError(f"invalid options for {FORMAT}: {error}") from error
    if not paths:
        raise CaptureOptionError(f"{FORMAT}: expected a path or the option 'paths', found neither")
    return paths, table, settings


def _boolean(options: Mapping[str, str], name: str, default: str = "true") -> bool:
    text = options.get(name, default).lower()
    if text not in ("true", "false"):
        raise CaptureOptionError(f"{name}={text!r}: expected true or false")
    return text == "true"


class AeronPcap(DataSource):
    __doc__ = __doc__

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._paths, self._table, self._settings = read_options(options)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(TABLES[self._table])

    def reader(self, schema: StructType) -> DataSourceReader:
        if schema != self.schema():
            raise CaptureOptionError(f"{FORMAT} has a fixed schema: remove .schema(...)")
        return CaptureSourceReader(self._paths, self._table, self._settings)


class CaptureSourceReader(DataSourceReader):
    """Plans partitions on Spark's driver, and reads them on its workers."""

    def __init__(self, paths: list[str], table: str, settings: ReadSettings) -> None:
        self._paths, self._table, self._settings = paths, table, settings

    def partitions(self) -> list[Any]:
        files = find_captures(self._paths)
        return [CapturePartition(part) for part in plan(files, self._settings)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        reader = PartReader(partition.part, self._settings)
        if self._table == "frames":
            yield from map(decode_dictionaries, reader.batches())
        elif self._table == "frame_batches":
            yield from pack_frames(reader.batches(OUTCOME_COLUMNS))
        elif self._table == "survey":
            yield survey_of(reader)
        else:
            for _ in reader.batches(()):
                pass
            yield reader.captures()
