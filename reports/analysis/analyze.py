"""The whole way from captures to tables, on either engine.

    first reading   totals -> geometry -> streams, points    nothing is known of the streams yet
    second reading  frames in capture order -> walks -> flows, gaps, windows, images, ...
                    of several points               -> joins -> links
                    of each frame                             -> fates, if asked for

Both engines take the same steps with the same code; only who reads and who sorts differs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.reports.analysis.engines.local.local_engine import LocalFrames, local_frames
from windtunnel.reports.analysis.links.join import JOIN_COLUMNS
from windtunnel.reports.analysis.links.joined import Joined, link_table
from windtunnel.reports.analysis.links.points import coarse_offsets, joined_streams
from windtunnel.reports.analysis.output.tables import PointWriter, Tables, replaced
from windtunnel.reports.analysis.reading.capture_files import CaptureFile, find_captures
from windtunnel.reports.analysis.reading.parts import ReadSettings
from windtunnel.reports.analysis.reading.survey import TotalsSum
from windtunnel.reports.analysis.reading.totals import COLUMNS as TOTALS_COLUMNS
from windtunnel.reports.analysis.reading.totals import totals_of
from windtunnel.reports.analysis.streams.frame_outcomes import FATES, inferred_fates, unseen_fates
from windtunnel.reports.analysis.streams.geometry import StreamKey, learn_geometry
from windtunnel.reports.analysis.streams.stream_set import FRAME_COLUMNS, Followed, tables_of
from windtunnel.reports.analysis.streams.stream_walk import WalkSettings
from windtunnel.reports.analysis.streams.streams import streams_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READINGS = 2
"""How often each byte is read, or taken from memory; for whoever shows progress."""
FATE_COLUMNS = tuple(dict.fromkeys((*FRAME_COLUMNS, *JOIN_COLUMNS)))


@dataclass(frozen=True)
class AnalysisOptions:
    """What to work out beside the tables that are always told."""

    checksums: bool = False
    "Of each payload and message, which costs a look at every byte."
    messages: bool = False
    "A row for each message; implies checksums."
    fates_to: Path | None = None
    "A folder for the table of fates as Parquet: it may be longer than memory."

    @property
    def reading(self) -> dict[str, Any]:
        return {"keeps_hash": False, "keeps_crc32": self.checksums or self.messages}

    @property
    def walking(self) -> WalkSettings:
        return WalkSettings(keeps_messages=self.messages)


def analyze(
    paths: Sequence[str],
    *,
    ports: Iterable[int] = (),
    wanted: AnalysisOptions | None = None,
    spark: "SparkSession | None" = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Tables:
    """What captures tell: see `Tables`.

    `paths` are files, patterns, folders or NAME=PATTERN (see `capture_files`); only UDP to or from
    one of `ports` counts, all if there are none; with a Spark session its workers do the work.
    `on_progress` is told bytes read, READINGS times each; Spark does not tell.
    Raises CapturePathError, ValueError.
    """
    files = find_captures(list(paths))
    wanted = wanted or AnalysisOptions()
    settings = ReadSettings(ports=tuple(ports), **wanted.reading)
    if spark is not None:
        from windtunnel.reports.analysis.engines.spark.spark_analysis import analyze_on_spark

        return analyze_on_spark(spark, list(paths), settings, wanted)
    return _analyze_here(files, settings, wanted, on_progress)


def _analyze_here(
    files: list[CaptureFile],
    settings: ReadSettings,
    wanted: AnalysisOptions,
    on_progress: Callable[[int], None],
) -> Tables:
    if wanted.fates_to is None:
        return _followed(files, settings, wanted, on_progress, None)
    with replaced(wanted.fates_to) as made:
        writer = PointWriter(made, FATES)
        try:
            return _followed(files, settings, wanted, on_progress, writer.write)
        finally:
            writer.close()


def _followed(
    files: list[CaptureFile],
    settings: ReadSettings,
    wanted: AnalysisOptions,
    on_progress: Callable[[int], None],
    tell: Callable[[pa.RecordBatch], None] | None,
) -> Tables:
    frames = local_frames(files, settings, on_progress)
    totals = _totals(frames)
    known = learn_geometry(totals)
    points = joined_streams(totals)
    followed = Followed(known, wanted.walking)
    joined = Joined(known, points, tell is not None)
    offsets = coarse_offsets(totals, {each.vantage_point for each in files})
    for batch in frames.side_by_side(FATE_COLUMNS, offsets) if known else ():
        _feed(batch, followed, joined, points, tell)
    rows = followed.finish_all_but(None)
    links, left = joined.finish_all_but(None)
    if tell is not None:
        for fates in (*left, *unseen(rows, points)):
            tell(fates)
    return Tables(
        captures=frames.captures,
        streams=streams_of(totals, known),
        links=link_table(links),
        **tables_of(rows),
    )


def _totals(frames: LocalFrames) -> pa.Table:
    total = TotalsSum()
    for batch in frames.batches((*FATE_COLUMNS, *TOTALS_COLUMNS), keep=FATE_COLUMNS):
        total.add(totals_of(batch))
    return total.table()


def _feed(
    frames: pa.RecordBatch,
    followed: Followed,
    joined: Joined,
    points: dict[StreamKey, list[str]],
    tell: Callable[[pa.RecordBatch], None] | None,
) -> None:
    """Follow and join some frames, and tell the fates that are known by now."""
    for key, walk, rows, told in followed.told(frames):
        if tell is not None and key[1:] not in points:
            tell(inferred_fates(key, walk.events.destinations, rows, told))
    for fates in joined.feed(frames) if points else ():
        if tell is not None:
            tell(fates)


def unseen(
    rows: list[dict[str, Any]], points: dict[StreamKey, list[str]]
) -> Iterator[pa.RecordBatch]:
    """Fates of what never came by, of the streams with one vantage point."""
    found = [
        fate
        for row in rows
        if (row["session_id"], row["stream_id"]) not in points
        for fate in unseen_fates(row)
    ]
    if found:
        yield pa.RecordBatch.from_pylist(found, schema=FATES)
