"""The analyses as steps from DataFrame to DataFrame.

    frames --mapInArrow--> totals                                  few rows, added up by the driver
    frames --by stream, in capture order--mapInArrow--> flows      a worker holds a stream's state,
                                                                   never its frames
Spark sorts on disk where memory ends, so a stream may be of any length.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import create_map, lit
from pyspark.sql.pandas.types import from_arrow_schema

from reports.analysis.analyze import FATE_COLUMNS, Wanted, unseen
from reports.analysis.fates import FATES, NUMBER_COLUMNS, inferred_fates
from reports.analysis.followed import FRAME_COLUMNS, KEY_NAMES, Followed, tables_of
from reports.analysis.geometry import Geometry, StreamKey, learn_geometry
from reports.analysis.join import JOIN_COLUMNS
from reports.analysis.joined import Joined, link_table
from reports.analysis.links import LINKS
from reports.analysis.parts import ReadSettings, summed
from reports.analysis.pcap_source import FORMAT
from reports.analysis.points import coarse_offsets, joined_streams
from reports.analysis.schema import CAPTURES
from reports.analysis.spark_engine import EngineError, first_line
from reports.analysis.stream_walk import FLOWS_AND_ALL, WalkKey, WalkSettings
from reports.analysis.streams import streams_of
from reports.analysis.tables import Tables
from reports.analysis.totals import TOTALS, added_up, totals_of

ORDER = NUMBER_COLUMNS
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
        "crc32": str(settings.keeps_crc32).lower(),
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


def flows(frames: DataFrame, known: dict[StreamKey, Geometry], settings: WalkSettings) -> DataFrame:
    """Flows with all that is in them: each stream is followed by one worker, in capture order."""

    def follow(batches: _Batches) -> _Batches:
        followed = Followed(known, settings)
        for batch in batches:
            if batch.num_rows:
                followed.feed(batch)
                yield from _rows(followed.finish_all_but(_last_key(batch)), FLOWS_AND_ALL)
        yield from _rows(followed.finish_all_but(None), FLOWS_AND_ALL)

    return _in_capture_order(frames, FRAME_COLUMNS).mapInArrow(
        follow, from_arrow_schema(FLOWS_AND_ALL)
    )


def inferred(
    frames: DataFrame, known: dict[StreamKey, Geometry], points: dict[StreamKey, list[str]]
) -> DataFrame:
    """Fates of the frames of streams with one vantage point."""
    alone = {key: geometry for key, geometry in known.items() if key not in points}

    def follow(batches: _Batches) -> _Batches:
        followed = Followed(alone)
        for batch in batches:
            for key, walk, rows, told in followed.told(batch):
                yield inferred_fates(key, walk.events.destinations, rows, told)
            if batch.num_rows:
                done = followed.finish_all_but(_last_key(batch))
                yield from unseen(done, points)
        yield from unseen(followed.finish_all_but(None), points)

    return _in_capture_order(frames, FATE_COLUMNS).mapInArrow(follow, from_arrow_schema(FATES))


def links(
    frames: DataFrame,
    known: dict[StreamKey, Geometry],
    points: dict[StreamKey, list[str]],
    offsets: dict[str, int],
    fates: bool,
) -> DataFrame:
    """Links, or fates, of streams with several points: each joined by one worker, by time."""

    def join(batches: _Batches) -> _Batches:
        joined = Joined(known, points, fates)
        for batch in batches:
            found = list(joined.feed(batch))
            last = _last_key(batch)[1:] if batch.num_rows else None
            rows, left = joined.finish_all_but(last) if last else ([], [])
            yield from [*found, *left] if fates else _rows(rows, LINKS)
        rows, left = joined.finish_all_but(None)
        yield from left if fates else _rows(rows, LINKS)

    # By the nearest clock, so that a worker need not wait long for the other points.
    ahead = create_map(*[lit(each) for pair in sorted(offsets.items()) for each in pair])
    by_time = frames.select(*JOIN_COLUMNS).where("session_id is not null")
    by_time = by_time.withColumn("at_ns", by_time["time_ns"] - ahead[by_time["vantage_point"]])
    keys = KEY_NAMES[1:]
    ordered = by_time.repartition(*keys).sortWithinPartitions(*keys, "at_ns", KEY_NAMES[0], *ORDER)
    schema = from_arrow_schema(FATES if fates else LINKS)
    return ordered.drop("at_ns").mapInArrow(join, schema)


def _in_capture_order(frames: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    names = dict.fromkeys((*columns, *ORDER))
    needed = frames.select(*names).where("session_id is not null")
    return needed.repartition(*KEY_NAMES).sortWithinPartitions(*KEY_NAMES, *ORDER)


def _last_key(batch: pa.RecordBatch) -> WalkKey:
    point, session, stream = (batch.column(name)[-1].as_py() for name in KEY_NAMES)
    return point, session, stream


def _rows(rows: list[dict[str, Any]], schema: pa.Schema) -> _Batches:
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def analyze_on_spark(
    spark: SparkSession, paths: list[str], settings: ReadSettings, wanted: Wanted | None = None
) -> Tables:
    """The tables of captures; files that cannot be read in parts are read whole.

    Raises EngineError when the job fails.
    """
    try:
        return _analyze(spark, paths, settings, wanted or Wanted())
    except (PySparkException, Py4JError) as error:
        if settings.may_split and "SplitError" in str(error):
            return analyze_on_spark(spark, paths, replace(settings, may_split=False), wanted)
        raise EngineError(f"the Spark job failed: {first_line(error)}") from error


def _analyze(
    spark: SparkSession, paths: list[str], settings: ReadSettings, wanted: Wanted
) -> Tables:
    captures = read_captures(spark, paths, settings, "captures").toArrow().cast(CAPTURES)
    frames = read_captures(spark, paths, settings)
    summed_totals = added_up(totals(frames).toArrow().cast(TOTALS))
    known = learn_geometry(summed_totals)
    points = joined_streams(summed_totals)
    offsets = coarse_offsets(summed_totals, captures["vantage_point"].unique().to_pylist())
    rows = flows(frames, known, wanted.walking).toArrow().to_pylist() if known else []
    link_rows = links(frames, known, points, offsets, False).toArrow().to_pylist() if points else []
    if wanted.fates_to is not None:
        found = inferred(frames, known, points)
        if points:
            found = found.unionAll(links(frames, known, points, offsets, True))
        by_point = found.write.mode("overwrite").partitionBy("vantage_point")
        by_point.parquet(str(wanted.fates_to.absolute()))
    return Tables(
        captures=summed(captures),
        streams=streams_of(summed_totals, known),
        links=link_table(link_rows),
        **tables_of(rows),
    )
