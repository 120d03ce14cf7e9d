"""The capture analysis, from capture files to result tables, on the local or the Spark engine.

    first reading   totals -> geometry -> streams, points    the streams are not known yet
    second reading  frames in capture order -> walks -> flows, gaps, windows, images, ...
                    if several points                -> joins -> links
                    if requested                              -> outcomes, a row per frame

Both engines take the same steps with the same code, but read and sort frames differently.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from windtunnel.reports.analysis.engines.local.local_engine import LocalFrames, local_frames
from windtunnel.reports.analysis.links.joined import JoinedStreams, link_table
from windtunnel.reports.analysis.links.points import coarse_offsets, joined_streams
from windtunnel.reports.analysis.links.window_causes import with_window_causes
from windtunnel.reports.analysis.options import OUTCOME_COLUMNS, AnalysisOptions
from windtunnel.reports.analysis.output.stepped_clocks import (
    stepped_points,
    without_lateness,
    without_times,
)
from windtunnel.reports.analysis.output.tables import Tables, VantagePointWriter, replace_folder
from windtunnel.reports.analysis.reading.capture_files import (
    CaptureFile,
    find_captures,
    host_names,
    skipped_captures,
)
from windtunnel.reports.analysis.reading.parts import ReadSettings
from windtunnel.reports.analysis.reading.survey import TotalsSum
from windtunnel.reports.analysis.reading.totals import COLUMNS as TOTALS_COLUMNS
from windtunnel.reports.analysis.reading.totals import totals_of
from windtunnel.reports.analysis.streams.frame_outcomes import (
    FRAME_OUTCOMES,
    inferred_outcomes,
    missing_batches,
)
from windtunnel.reports.analysis.streams.geometry import StreamKey, learn_geometry
from windtunnel.reports.analysis.streams.stream_limit import limit_streams
from windtunnel.reports.analysis.streams.stream_set import StreamSet, tables_of
from windtunnel.reports.analysis.streams.streams import streams_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READINGS = 2
"""Number of times that each byte is read, from the file or from memory. Used for progress
reports.
"""


def analyze(
    paths: Sequence[str],
    *,
    ports: Iterable[int] = (),
    options: AnalysisOptions | None = None,
    spark: "SparkSession | None" = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Tables:
    """Analyse captures and return the result as `Tables`.

    `paths` are files, patterns, folders or NAME=PATTERN (see `capture_files`). Only UDP to or from
    `ports` is read, or all UDP if `ports` is empty. With a Spark session, the analysis runs on its
    workers. `on_progress` receives the number of bytes read since its last call, in which each byte
    counts READINGS times. It is not called with Spark. Raises CapturePathError, ValueError.
    """
    files = find_captures(list(paths))
    options = options or AnalysisOptions()
    settings = ReadSettings(ports=tuple(ports), **options.read_settings)
    names = host_names(files)
    if spark is not None:
        from windtunnel.reports.analysis.engines.spark.spark_analysis import analyze_on_spark

        tables = analyze_on_spark(spark, list(paths), settings, options)
    else:
        tables = _analyze_locally(files, settings, options, on_progress)
    skipped = skipped_captures(list(paths))
    return replace(tables, host_names=names, left_out=(*tables.left_out, *skipped))


def _analyze_locally(
    files: list[CaptureFile],
    settings: ReadSettings,
    options: AnalysisOptions,
    on_progress: Callable[[int], None],
) -> Tables:
    if options.outcomes_dir is None:
        return _read_twice(files, settings, options, on_progress, None)
    with replace_folder(options.outcomes_dir) as folder:
        writer = VantagePointWriter(folder, FRAME_OUTCOMES)
        try:
            return _read_twice(files, settings, options, on_progress, writer.write)
        finally:
            writer.close()


def _read_twice(
    files: list[CaptureFile],
    settings: ReadSettings,
    options: AnalysisOptions,
    on_progress: Callable[[int], None],
    write: Callable[[pa.RecordBatch], None] | None,
) -> Tables:
    frames = local_frames(files, settings, on_progress)
    totals, endpoints, left_out = limit_streams(_totals(frames, options), options.limits)
    known = learn_geometry(totals, endpoints)
    stepped = stepped_points(frames.captures)
    points = joined_streams(totals, stepped)
    walks = StreamSet(known, options.walk_settings(len(known)))
    joins = JoinedStreams(known, points, write is not None)
    if write is not None and stepped:
        write = _without_lateness(write, stepped)
    offsets = coarse_offsets(totals, {each.vantage_point for each in files})
    for batch in frames.merged(OUTCOME_COLUMNS, offsets) if known else ():
        _process(batch, walks, joins, points, write)
    rows = walks.finish_all_but(None)
    link_rows, remaining = joins.finish_all_but(None)
    if write is not None:
        for outcomes in (*remaining, *missing_batches(rows, points)):
            write(outcomes)
    links, tables = link_table(link_rows), tables_of(rows)
    tables["stalls"] = with_window_causes(tables["stalls"], links)
    return without_times(
        Tables(
            captures=frames.captures,
            streams=streams_of(totals, known),
            links=links,
            left_out=left_out,
            **tables,
        )
    )


def _without_lateness(
    write: Callable[[pa.RecordBatch], None], points: frozenset[str]
) -> Callable[[pa.RecordBatch], None]:
    return lambda batch: write(without_lateness(batch, points))


def _totals(frames: LocalFrames, options: AnalysisOptions) -> TotalsSum:
    total = TotalsSum(options.max_totals)
    for batch in frames.batches((*OUTCOME_COLUMNS, *TOTALS_COLUMNS), keep=OUTCOME_COLUMNS):
        total.add(totals_of(batch))
    return total


def _process(
    frames: pa.RecordBatch,
    walks: StreamSet,
    joins: JoinedStreams,
    points: dict[StreamKey, list[str]],
    write: Callable[[pa.RecordBatch], None] | None,
) -> None:
    """Analyse one batch of frames, and write all frame outcomes that are then known."""
    for key, walk, rows, walked in walks.follow(frames):
        if write is not None and key[1:] not in points:
            write(inferred_outcomes(key, walk.events.destinations, rows, walked))
    for outcomes in joins.feed(frames) if points else ():
        if write is not None:
            write(outcomes)
