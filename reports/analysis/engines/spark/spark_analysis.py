"""The analyses as steps from DataFrame to DataFrame.

    first reading   survey   a row a part                 --> captures, totals: added up here
    second reading  parcels  thousands of frames a row    --by stream, in capture order--> flows
                                                          --by stream, by time-----------> links
A worker holds a stream's state, never its frames. Spark sorts on disk where memory ends, so a
stream may be of any length; that it sorts parcels and not frames is what makes it quick.
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
from pyspark.sql.functions import create_map, lit
from pyspark.sql.pandas.types import from_arrow_schema

from windtunnel.reports.analysis.analyze import AnalysisOptions, unseen
from windtunnel.reports.analysis.engines.spark.frame_batches import PARCEL_ORDER, unpacked
from windtunnel.reports.analysis.engines.spark.spark_engine import EngineError, first_line
from windtunnel.reports.analysis.links.joined import Joined, link_table
from windtunnel.reports.analysis.links.links import LINKS
from windtunnel.reports.analysis.links.points import coarse_offsets, joined_streams
from windtunnel.reports.analysis.output.tables import Tables
from windtunnel.reports.analysis.reading.parts import ReadSettings, summed
from windtunnel.reports.analysis.reading.survey import opened
from windtunnel.reports.analysis.sources.pcap_source import FORMAT
from windtunnel.reports.analysis.streams.frame_outcomes import FATES, inferred_fates
from windtunnel.reports.analysis.streams.geometry import Geometry, StreamKey, learn_geometry
from windtunnel.reports.analysis.streams.stream_set import KEY_NAMES, Followed, tables_of
from windtunnel.reports.analysis.streams.stream_walk import FLOWS_AND_ALL, WalkKey, WalkSettings
from windtunnel.reports.analysis.streams.streams import streams_of

PARCELS_AT_ONCE = 32
"""That go to a worker together: at 2 MB each."""
ROWS_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
"""Spark's setting for that; the session's own value comes back when an analysis is over."""

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


def flows(
    parcels: DataFrame, known: dict[StreamKey, Geometry], settings: WalkSettings
) -> DataFrame:
    """Flows with all that is in them: each stream is followed by one worker, in capture order."""

    def follow(batches: _Batches) -> _Batches:
        followed = Followed(known, settings)
        for key, frames in _frames_of(batches):
            yield from _rows(followed.finish_all_but(key), FLOWS_AND_ALL)
            for _ in followed.told_of(key, frames):
                pass
        yield from _rows(followed.finish_all_but(None), FLOWS_AND_ALL)

    return _in_capture_order(parcels).mapInArrow(follow, from_arrow_schema(FLOWS_AND_ALL))


def inferred(
    parcels: DataFrame, known: dict[StreamKey, Geometry], points: dict[StreamKey, list[str]]
) -> DataFrame:
    """Fates of the frames of streams with one vantage point."""
    alone = {key: geometry for key, geometry in known.items() if key not in points}

    def follow(batches: _Batches) -> _Batches:
        followed = Followed(alone)
        for parcel_key, frames in _frames_of(batches):
            yield from unseen(followed.finish_all_but(parcel_key), points)
            for key, walk, rows, told in followed.told_of(parcel_key, frames):
                yield inferred_fates(key, walk.events.destinations, rows, told)
        yield from unseen(followed.finish_all_but(None), points)

    return _in_capture_order(parcels).mapInArrow(follow, from_arrow_schema(FATES))


def links(
    parcels: DataFrame,
    known: dict[StreamKey, Geometry],
    points: dict[StreamKey, list[str]],
    offsets: dict[str, int],
    fates: bool,
) -> DataFrame:
    """Links, or fates, of streams with several points: each joined by one worker, by time."""

    def join(batches: _Batches) -> _Batches:
        joined = Joined(known, points, fates)
        for key, frames in _frames_of(batches):
            rows, left = joined.finish_all_but(key[1:])
            yield from left if fates else _rows(rows, LINKS)
            found = list(joined.feed_one(key, frames))
            yield from found if fates else ()
        rows, left = joined.finish_all_but(None)
        yield from left if fates else _rows(rows, LINKS)

    # By the nearest clock, so that a worker need not wait long for the other points.
    ahead = create_map(*[lit(each) for pair in sorted(offsets.items()) for each in pair])
    by_time = parcels.withColumn("at_ns", parcels["time_ns"] - ahead[parcels["vantage_point"]])
    keys, order = KEY_NAMES[1:], ("at_ns", KEY_NAMES[0], *PARCEL_ORDER)
    ordered = by_time.repartition(*keys).sortWithinPartitions(*keys, *order)
    schema = from_arrow_schema(FATES if fates else LINKS)
    return ordered.drop("at_ns").mapInArrow(join, schema)


def _in_capture_order(parcels: DataFrame) -> DataFrame:
    return parcels.repartition(*KEY_NAMES).sortWithinPartitions(*KEY_NAMES, *PARCEL_ORDER)


def _frames_of(batches: _Batches) -> Iterator[tuple[WalkKey, pa.RecordBatch]]:
    for batch in batches:
        yield from unpacked(batch)


def _rows(rows: list[dict[str, Any]], schema: pa.Schema) -> _Batches:
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


@contextmanager
def _few_rows_at_once(spark: SparkSession) -> Iterator[None]:
    """Parcels are long rows: a batch of as many as Spark takes at once would be gigabytes."""
    before = spark.conf.get(ROWS_AT_ONCE) or "10000"
    spark.conf.set(ROWS_AT_ONCE, str(PARCELS_AT_ONCE))
    try:
        yield
    finally:
        spark.conf.set(ROWS_AT_ONCE, before)


def analyze_on_spark(
    spark: SparkSession,
    paths: list[str],
    settings: ReadSettings,
    wanted: AnalysisOptions | None = None,
) -> Tables:
    """The tables of captures; files that cannot be read in parts are read whole.

    Raises EngineError when the job fails.
    """
    try:
        return _analyze(spark, paths, settings, wanted or AnalysisOptions())
    except (PySparkException, Py4JError) as error:
        if settings.may_split and "SplitError" in str(error):
            return analyze_on_spark(spark, paths, replace(settings, may_split=False), wanted)
        raise EngineError(f"the Spark job failed: {first_line(error)}") from error


def _analyze(
    spark: SparkSession, paths: list[str], settings: ReadSettings, wanted: AnalysisOptions
) -> Tables:
    quick = replace(settings, keeps_hash=False, keeps_crc32=False)
    captures, totals = opened(read_captures(spark, paths, quick, "survey").toArrow())
    known = learn_geometry(totals)
    points = joined_streams(totals)
    offsets = coarse_offsets(totals, captures["vantage_point"].unique().to_pylist())
    parcels = read_captures(spark, paths, settings, "parcels")
    rows: list[dict[str, Any]] = []
    link_rows: list[dict[str, Any]] = []
    with _few_rows_at_once(spark):
        if known:
            rows = flows(parcels, known, wanted.walking).toArrow().to_pylist()
        if points:
            link_rows = links(parcels, known, points, offsets, False).toArrow().to_pylist()
        if wanted.fates_to is not None:
            found = inferred(parcels, known, points)
            if points:
                found = found.unionAll(links(parcels, known, points, offsets, True))
            by_point = found.write.mode("overwrite").partitionBy("vantage_point")
            by_point.parquet(str(wanted.fates_to.absolute()))
    return Tables(
        captures=summed(captures),
        streams=streams_of(totals, known),
        links=link_table(link_rows),
        **tables_of(rows),
    )
