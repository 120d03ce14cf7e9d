"""Spark data sources for run folders: `aeron.counters`, `.ledger`, `.decisions`, `.logbuffer`.

    spark.read.format("aeron.decisions").load("runs/<suite>/<run>")
    spark.read.format("aeron.counters").option("paths", json.dumps([...])).load()

Options: `path`, a run folder or a pattern (for `aeron.logbuffer` also a log buffer file); `paths`,
a JSON list of them. Schemas: see `run_tables`. Partitions: one per run folder or, for
`aeron.logbuffer`, one per file. Rows are delivered in Arrow batches. The paths must be readable
under the same name on every worker.
"""

import glob
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from windtunnel.reports.analysis.sources.run_tables import READERS, RunTableError, log_files

OPTIONS = ("path", "paths")


@dataclass
class FolderPartition(InputPartition):
    """A Spark partition: a run folder or a log buffer."""

    path: str


def read_paths(options: Mapping[str, str]) -> list[Path]:
    """Expand the paths in the data source's options. Raises RunTableError if one is invalid."""
    for name in options:
        if name.lower() not in OPTIONS:
            raise RunTableError(f"unknown option {name!r}: expected one of {', '.join(OPTIONS)}")
    try:
        given = [options["path"]] if "path" in options else []
        given += json.loads(options.get("paths", "[]"))
    except ValueError as error:
        raise RunTableError(f"option 'paths': not a JSON list: {error}") from error
    if not given:
        raise RunTableError("expected a path or the option 'paths', found neither")
    found = []
    for text in given:
        paths = sorted(glob.glob(text)) or ([text] if Path(text).exists() else [])
        if not paths:
            raise RunTableError(f"{text}: no such file or folder")
        found += [Path(each) for each in paths]
    return found


class RunSource(DataSource):
    """The base class of the four data sources for run folders."""

    kind: ClassVar[str]

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._paths = read_paths(options)

    @classmethod
    def name(cls) -> str:
        return f"aeron.{cls.kind}"

    def schema(self) -> StructType:
        return from_arrow_schema(READERS[self.kind][0])

    def reader(self, schema: StructType) -> DataSourceReader:
        return RunSourceReader(self.kind, self._paths)


class AeronCounters(RunSource):
    __doc__ = __doc__
    kind = "counters"


class AeronLedger(RunSource):
    __doc__ = __doc__
    kind = "ledger"


class AeronDecisions(RunSource):
    __doc__ = __doc__
    kind = "decisions"


class AeronLogbuffer(RunSource):
    __doc__ = __doc__
    kind = "logbuffer"


SOURCES = (AeronCounters, AeronLedger, AeronDecisions, AeronLogbuffer)


class RunSourceReader(DataSourceReader):
    """Plans partitions on Spark's driver, and reads them on its workers."""

    def __init__(self, kind: str, paths: list[Path]) -> None:
        self._kind, self._paths = kind, paths

    def partitions(self) -> list[Any]:
        if self._kind != "logbuffer":
            return [FolderPartition(str(path)) for path in self._paths]
        return [FolderPartition(str(file)) for path in self._paths for file in log_files(path)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        yield from READERS[self._kind][1](Path(partition.path))
