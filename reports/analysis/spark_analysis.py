"""The analyses as steps from DataFrame to DataFrame.

    frames --mapInArrow--> totals                                  few rows, added up by the driver
    frames --by stream, in capture order--mapInArrow--> flows      a worker holds a stream's state,
                                                                   never its frames
Spark sorts on disk where memory ends, so a stream may be of any length.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from reports.analysis.followed import (
    FLOWS_WITH_GAPS,
    FRAME_COLUMNS,
    KEY_NAMES,
    Followed,
    WalkKey,
    tables_of,
)
from reports.analysis.geometry import Geometry, StreamKey, learn_geometry
from reports.analysis.parts import ReadSettings, summed
from reports.analysis.pcap_source import FORMAT
from reports.analysis.schema import CAPTURES
from reports.analysis.spark_engine import EngineError, first_line
from reports.analysis.streams import streams_of
from reports.analysis.tables import Tables
from reports.analysis.totals import TOTALS, added_up, totals_of

ORDER = ("file_index", "record_at", "frame_index")
"""Of frames in a capture."""

_Batches = Iterator[pa.RecordBatch]


def read_captures(
    spark: SparkSession, paths: list[str], settings: ReadSettings, table: str = "frames"
) -> DataFrame:
    """The frames of captures, or what became of their packets."""
    options = {
        "paths": json.dumps(paths),
        "ports": ",".join(str(each) for each in settings.ports),
        "hash": str(settings.keeps_hash).lower(),
        "split": str(settings.may_split).lower(),
        "parts": str(settings.parts),
        "cell": str(settings.cell_length),
        "table": table,
    }
    return spark.read.format(FORMAT).options(**options).load()


def totals(frames: DataFrame) -> DataFrame:
    """Totals of frames; rows with the same keys are still to be added up."""

    def add(batches: _Batches) -> _Batches:
        for batch in batches:
            yield from totals_of(batch).to_batches()

    return frames.mapInArrow(add, from_arrow_schema(TOTALS))


def flows(frames: DataFrame, known: dict[StreamKey, Geometry]) -> DataFrame:
    """Flows with their gaps: each stream is followed by one worker, in capture order."""
    needed = frames.select(*FRAME_COLUMNS, *ORDER).where("session_id is not null")
    ordered = needed.repartition(*KEY_NAMES).sortWithinPartitions(*KEY_NAMES, *ORDER)
    return ordered.mapInArrow(_follower(known), from_arrow_schema(FLOWS_WITH_GAPS))


def _follower(known: dict[StreamKey, Geometry]) -> Callable[[_Batches], _Batches]:
    def follow(batches: _Batches) -> _Batches:
        followed = Followed(known)
        for batch in batches:
            if batch.num_rows:
                followed.feed(batch)
                yield from _rows(followed.finish_all_but(_last_key(batch)))
        yield from _rows(followed.finish_all_but(None))

    return follow


def _last_key(batch: pa.RecordBatch) -> WalkKey:
    point, session, stream = (batch.column(name)[-1].as_py() for name in KEY_NAMES)
    return point, session, stream


def _rows(rows: list[dict[str, Any]]) -> _Batches:
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=FLOWS_WITH_GAPS)


def analyze_on_spark(spark: SparkSession, paths: list[str], settings: ReadSettings) -> Tables:
    """The tables of captures; files that cannot be read in parts are read whole.

    Raises EngineError when the job fails.
    """
    try:
        return _analyze(spark, paths, settings)
    except (PySparkException, Py4JError) as error:
        if settings.may_split and "SplitError" in str(error):
            return analyze_on_spark(spark, paths, replace(settings, may_split=False))
        raise EngineError(f"the Spark job failed: {first_line(error)}") from error


def _analyze(spark: SparkSession, paths: list[str], settings: ReadSettings) -> Tables:
    captures = read_captures(spark, paths, settings, "captures").toArrow().cast(CAPTURES)
    frames = read_captures(spark, paths, settings)
    summed_totals = added_up(totals(frames).toArrow().cast(TOTALS))
    known = learn_geometry(summed_totals)
    rows = flows(frames, known).toArrow().to_pylist() if known else []
    flow_table, gap_table = tables_of(rows)
    return Tables(summed(captures), streams_of(summed_totals, known), flow_table, gap_table)
