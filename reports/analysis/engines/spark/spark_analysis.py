"""The capture analysis on Spark, as a sequence of DataFrame transformations.

    first reading   survey         one row per part              --> captures, totals: merged here
    second reading  frame batches  thousands of frames  --by stream, in capture order--> flows
                                   per row              --by stream, by time-----------> links

A worker holds the state of a stream, never all of its frames. Spark sorts on disk when memory is
short, so a stream may have any length. Sorting is fast because Spark sorts frame batches, not
frames.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import create_map, lit, when
from pyspark.sql.pandas.types import from_arrow_schema

from windtunnel.reports.analysis.engines.spark.spark_engine import EngineError, first_line
from windtunnel.reports.analysis.links.joined import JoinedStreams, link_table
from windtunnel.reports.analysis.links.links import LINKS
from windtunnel.reports.analysis.links.points import coarse_offsets, joined_streams
from windtunnel.reports.analysis.links.window_causes import with_window_causes
from windtunnel.reports.analysis.options import AnalysisOptions
from windtunnel.reports.analysis.output.stepped_clocks import stepped_points, without_times
from windtunnel.reports.analysis.output.tables import Tables
from windtunnel.reports.analysis.reading.parts import ReadSettings, sum_captures
from windtunnel.reports.analysis.reading.survey import unpack_survey
from windtunnel.reports.analysis.sources.frame_batches import BATCH_ORDER, unpack_frames
from windtunnel.reports.analysis.sources.pcap_source import FORMAT
from windtunnel.reports.analysis.streams.frame_outcomes import (
    FRAME_OUTCOMES,
    inferred_outcomes,
    missing_batches,
)
from windtunnel.reports.analysis.streams.geometry import Geometry, StreamKey, learn_geometry
from windtunnel.reports.analysis.streams.stream_limit import limit_streams
from windtunnel.reports.analysis.streams.stream_set import KEY_NAMES, StreamSet, tables_of
from windtunnel.reports.analysis.streams.stream_walk import NESTED_FLOWS, WalkKey, WalkSettings
from windtunnel.reports.analysis.streams.streams import streams_of

ARROW_BATCH_ROWS = 32
"""Number of frame batches that are passed to a worker together. Each takes 2 MB."""
ARROW_BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
"""The Spark setting for ARROW_BATCH_ROWS. Its previous value is restored after the analysis."""

_Batches = Iterator[pa.RecordBatch]


def read_captures(
    spark: SparkSession, paths: list[str], settings: ReadSettings, table: str = "frames"
) -> DataFrame:
    """Return a Spark DataFrame that reads captures through the data source `aeron.pcap`."""
    options = {
        "paths": json.dumps(paths),
        "ports": ",".join(str(each) for each in settings.ports),
        "hash": str(settings.keeps_hash).lower(),
        "crc32": str(settings.keeps_crc32).lower(),
        "split": str(settings.may_split).lower(),
        "parts": str(settings.parts),
        "cell": str(settings.cell_length),
        "totals": str(settings.totals_max),
        "table": table,
    }
    return spark.read.format(FORMAT).options(**options).load()


def flows(
    batches: DataFrame, known: dict[StreamKey, Geometry], settings: WalkSettings
) -> DataFrame:
    """Return the table NESTED_FLOWS as a DataFrame, with a row per flow that contains its gaps,
    stalls and other results. One worker processes each stream, in capture order.
    """

    def follow(rows: _Batches) -> _Batches:
        walks = StreamSet(known, settings)
        for key, frames in _frames_of(rows):
            yield from _table_rows(walks.finish_all_but(key), NESTED_FLOWS)
            for _ in walks.follow_stream(key, frames):
                pass
        yield from _table_rows(walks.finish_all_but(None), NESTED_FLOWS)

    return _in_capture_order(batches).mapInArrow(follow, from_arrow_schema(NESTED_FLOWS))


def single_point_outcomes(
    batches: DataFrame,
    known: dict[StreamKey, Geometry],
    points: dict[StreamKey, list[str]],
    settings: WalkSettings,
) -> DataFrame:
    """Return the table FRAME_OUTCOMES for the streams that were captured at only one vantage
    point.
    """
    unjoined = {key: geometry for key, geometry in known.items() if key not in points}

    def follow(rows: _Batches) -> _Batches:
        walks = StreamSet(unjoined, settings)
        for batch_key, batch in _frames_of(rows):
            yield from missing_batches(walks.finish_all_but(batch_key), points)
            for key, walk, frames, walked in walks.follow_stream(batch_key, batch):
                yield inferred_outcomes(key, walk.events.destinations, frames, walked)
        yield from missing_batches(walks.finish_all_but(None), points)

    return _in_capture_order(batches).mapInArrow(follow, from_arrow_schema(FRAME_OUTCOMES))


def links(
    batches: DataFrame,
    known: dict[StreamKey, Geometry],
    points: dict[StreamKey, list[str]],
    offsets: dict[str, int],
    outcomes: bool,
) -> DataFrame:
    """Return the table LINKS, or FRAME_OUTCOMES if `outcomes` is true, for the streams that were
    captured at several vantage points.

    Each stream is joined by one worker, in time order.
    """

    def join(rows: _Batches) -> _Batches:
        joins = JoinedStreams(known, points, outcomes)
        for key, frames in _frames_of(rows):
            link_rows, remaining = joins.finish_all_but(key[1:])
            yield from remaining if outcomes else _table_rows(link_rows, LINKS)
            found = list(joins.feed_stream(key, frames))
            yield from found if outcomes else ()
        link_rows, remaining = joins.finish_all_but(None)
        yield from remaining if outcomes else _table_rows(link_rows, LINKS)

    # Sorted by corrected time, so a worker does not wait long for the other vantage points.
    ahead = create_map(*[lit(each) for pair in sorted(offsets.items()) for each in pair])
    by_time = batches.withColumn("at_ns", batches["time_ns"] - ahead[batches["vantage_point"]])
    keys, order = KEY_NAMES[1:], ("at_ns", KEY_NAMES[0], *BATCH_ORDER)
    ordered = by_time.repartition(*keys).sortWithinPartitions(*keys, *order)
    schema = from_arrow_schema(FRAME_OUTCOMES if outcomes else LINKS)
    return ordered.drop("at_ns").mapInArrow(join, schema)


def _in_capture_order(batches: DataFrame) -> DataFrame:
    return batches.repartition(*KEY_NAMES).sortWithinPartitions(*KEY_NAMES, *BATCH_ORDER)


def _frames_of(batches: _Batches) -> Iterator[tuple[WalkKey, pa.RecordBatch]]:
    for batch in batches:
        yield from unpack_frames(batch)


def _table_rows(rows: list[dict[str, Any]], schema: pa.Schema) -> _Batches:
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


@contextmanager
def _small_arrow_batches(spark: SparkSession) -> Iterator[None]:
    """Limit the rows per Arrow batch. With Spark's default, these batches would take gigabytes."""
    before = spark.conf.get(ARROW_BATCH_SETTING) or "10000"
    spark.conf.set(ARROW_BATCH_SETTING, str(ARROW_BATCH_ROWS))
    try:
        yield
    finally:
        spark.conf.set(ARROW_BATCH_SETTING, before)


def analyze_on_spark(
    spark: SparkSession,
    paths: list[str],
    settings: ReadSettings,
    options: AnalysisOptions | None = None,
) -> Tables:
    """Analyse captures on Spark and return the tables. A file that cannot be split is one
    partition.

    Raises EngineError if the Spark job fails.
    """
    try:
        return _analyze(spark, paths, settings, options or AnalysisOptions())
    except (PySparkException, Py4JError) as error:
        if settings.may_split and "SplitError" in str(error):
            return analyze_on_spark(spark, paths, replace(settings, may_split=False), options)
        raise EngineError(f"the Spark job failed: {first_line(error)}") from error


def _analyze(
    spark: SparkSession, paths: list[str], settings: ReadSettings, options: AnalysisOptions
) -> Tables:
    quick = replace(settings, keeps_hash=False, keeps_crc32=False)
    survey = read_captures(spark, paths, quick, "survey").toArrow()
    parts, sums = unpack_survey(survey, options.max_totals)
    captures = sum_captures(parts)
    stepped = stepped_points(captures)
    totals, endpoints, left_out = limit_streams(sums, options.limits)
    known = learn_geometry(totals, endpoints)
    points = joined_streams(totals, stepped)
    offsets = coarse_offsets(totals, captures["vantage_point"].unique().to_pylist())
    batches = read_captures(spark, paths, settings, "frame_batches")
    walk_settings = options.walk_settings(len(known))
    rows: list[dict[str, Any]] = []
    link_rows: list[dict[str, Any]] = []
    with _small_arrow_batches(spark):
        if known:
            rows = flows(batches, known, walk_settings).toArrow().to_pylist()
        if points:
            link_rows = links(batches, known, points, offsets, False).toArrow().to_pylist()
        if options.outcomes_dir is not None:
            found = single_point_outcomes(batches, known, points, walk_settings)
            if points:
                found = found.unionAll(links(batches, known, points, offsets, True))
            if stepped:
                is_timed = ~found["vantage_point"].isin(*stepped)
                found = found.withColumn("late_ns", when(is_timed, found["late_ns"]))
            by_point = found.write.mode("overwrite").partitionBy("vantage_point")
            by_point.parquet(str(options.outcomes_dir.absolute()))
    all_links, tables = link_table(link_rows), tables_of(rows)
    tables["stalls"] = with_window_causes(tables["stalls"], all_links)
    return without_times(
        Tables(
            captures=captures,
            streams=streams_of(totals, known),
            links=all_links,
            left_out=left_out,
            **tables,
        )
    )
