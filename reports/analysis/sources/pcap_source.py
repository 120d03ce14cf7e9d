"""`aeron.pcap`: captures of Aeron traffic as a Spark data source.

    spark.dataSource.register(AeronPcap)
    spark.read.format("aeron.pcap").load("lan/*.pcap")
    spark.read.format("aeron.pcap").option("paths", json.dumps(["a.pcap", "b=lan/*.gz"])).load()

Options, all texts:

    path, paths    a path, pattern, folder or NAME=PATTERN; JSON list of such
    ports          UDP ports separated by commas, either end; all others are counted, not read
    table          "frames" (one row a frame) or "captures" (what became of a part's packets);
                   for the analysis "survey" (both summed up) and "parcels" (frames packed together)
    parts          at least so many partitions, as far as files and cells allow
    split          "false": one partition a file
    hash           "false": leave payload_hash null, which is quicker
    crc32          "true": work out payload_crc32 as well
    cell           bytes of a cell; for tests

Schema: `schema.FRAMES`, `schema.CAPTURES`, `survey.SURVEY` or `parcels.PARCELS`, nothing else.
Partition rule: a compressed file is one partition; a plain one is cut every 128 MiB (or so that
there are `parts`) at multiples of a cell, and each reader looks for the first record of its cells
by itself (see `capture_stream`). Which rows there are, and what is in them, does not depend on the
partitions, but for how many frames a parcel holds. Rows come as Arrow batches of at most about
65,000; a reader holds some 100 MB whatever the file's size. The paths must be readable under the
same name on every worker.
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
from windtunnel.reports.analysis.analyze import FATE_COLUMNS
from windtunnel.reports.analysis.engines.spark.frame_batches import PARCELS, packed
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.parts import Part, PartReader, ReadSettings, plan
from windtunnel.reports.analysis.reading.schema import CAPTURES, FRAMES, plain
from windtunnel.reports.analysis.reading.survey import SURVEY, survey_of

FORMAT = "aeron.pcap"
TABLES = {"frames": FRAMES, "captures": CAPTURES, "survey": SURVEY, "parcels": PARCELS}
OPTIONS = ("path", "paths", "ports", "table", "parts", "split", "hash", "crc32", "cell")


class CaptureOptionError(ValueError):
    """An option of the source is wrong; the text names it, its value and what is expected."""


@dataclass
class CapturePartition(InputPartition):
    """A part, as it is sent to a worker."""

    part: Part


def read_options(options: Mapping[str, str]) -> tuple[list[str], str, ReadSettings]:
    """Paths, table and settings that options ask for. Raises CaptureOptionError."""
    for name in options:
        if name.lower() not in OPTIONS:
            raise CaptureOptionError(f"option {name!r}: expected one of {', '.join(OPTIONS)}")
    table = options.get("table", "frames")
    if table not in TABLES:
        raise CaptureOptionError(f"table {table!r}: expected one of {', '.join(TABLES)}")
    try:
        paths = [options["path"]] if "path" in options else []
        paths += json.loads(options.get("paths", "[]"))
        settings = ReadSettings(
            ports=tuple(int(each) for each in options.get("ports", "").split(",") if each.strip()),
            parts=int(options.get("parts", "0")),
            may_split=_truth(options, "split"),
            keeps_hash=_truth(options, "hash"),
            keeps_crc32=_truth(options, "crc32", "false"),
            cell_length=int(options.get("cell", str(CELL_LENGTH))),
        )
    except ValueError as error:
        raise CaptureOptionError(f"options of {FORMAT}: {error}") from error
    if not paths:
        raise CaptureOptionError(f"{FORMAT} needs a path, or the option 'paths'")
    return paths, table, settings


def _truth(options: Mapping[str, str], name: str, otherwise: str = "true") -> bool:
    text = options.get(name, otherwise).lower()
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
            raise CaptureOptionError(f"{FORMAT} has its own schema; leave out .schema(...)")
        return CaptureSourceReader(self._paths, self._table, self._settings)


class CaptureSourceReader(DataSourceReader):
    """Plans on the driver, reads on the workers."""

    def __init__(self, paths: list[str], table: str, settings: ReadSettings) -> None:
        self._paths, self._table, self._settings = paths, table, settings

    def partitions(self) -> list[Any]:
        files = find_captures(self._paths)
        return [CapturePartition(part) for part in plan(files, self._settings)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        reader = PartReader(partition.part, self._settings)
        if self._table == "frames":
            yield from map(plain, reader.batches())
        elif self._table == "parcels":
            yield from packed(reader.batches(FATE_COLUMNS))
        elif self._table == "survey":
            yield survey_of(reader)
        else:
            for _ in reader.batches(()):
                pass
            yield reader.captures()
