"""The whole way from captures to tables, on either engine.

    first reading   totals -> geometry -> streams       nothing is known of the streams yet
    second reading  frames in capture order -> walks -> flows, gaps

Both engines take the same steps with the same code; only who reads and who sorts differs.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from reports.analysis.capture_files import CaptureFile, find_captures
from reports.analysis.followed import FRAME_COLUMNS, Followed, tables_of
from reports.analysis.geometry import learn_geometry
from reports.analysis.local_engine import local_frames
from reports.analysis.parts import ReadSettings
from reports.analysis.streams import streams_of
from reports.analysis.tables import Tables
from reports.analysis.totals import added_up, empty_totals, totals_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READINGS = 2
"""How often each byte is read; for whoever shows progress."""
_TOTALS_MANY = 1 << 16


def analyze(
    paths: Sequence[str],
    *,
    ports: Iterable[int] = (),
    spark: "SparkSession | None" = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Tables:
    """What captures tell: captures, streams, flows and gaps.

    `paths` are files, patterns, folders or NAME=PATTERN (see `capture_files`); only UDP to or from
    one of `ports` counts, all if there are none; with a Spark session its workers do the work.
    `on_progress` is told bytes read, READINGS times each; Spark does not tell.
    Raises CapturePathError, ValueError.
    """
    files = find_captures(list(paths))
    settings = ReadSettings(ports=tuple(ports), keeps_hash=False)
    if spark is not None:
        from reports.analysis.spark_analysis import analyze_on_spark

        return analyze_on_spark(spark, list(paths), settings)
    return _analyze_here(files, settings, on_progress)


def _analyze_here(
    files: list[CaptureFile], settings: ReadSettings, on_progress: Callable[[int], None]
) -> Tables:
    frames = local_frames(files, settings, on_progress)
    totals = empty_totals()
    pending: list[pa.Table] = []
    for batch in frames.batches():
        pending.append(totals_of(batch))
        if sum(each.num_rows for each in pending) > _TOTALS_MANY:
            totals = added_up(pa.concat_tables([totals, *pending]))
            pending = []
    totals = added_up(pa.concat_tables([totals, *pending]))
    known = learn_geometry(totals)
    followed = Followed(known)
    if known:
        for batch in frames.batches():
            followed.feed(batch.select(FRAME_COLUMNS))
    flows, gaps = tables_of(followed.finish_all_but(None))
    return Tables(frames.captures, streams_of(totals, known), flows, gaps)
