"""A set of stream analyses: one `StreamWalk` for each vantage point, session and stream.

    frames in capture order  -->  walk of (vantage point, session, stream)  -->  flows, gaps, ...
                             -->  another walk

The local engine delivers the frames of all streams interleaved. Spark delivers them sorted, one
stream after the other. Only unfinished walks are kept.
"""

from collections.abc import Container, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.reading.schema import compact_dictionaries
from windtunnel.reports.analysis.reading.stream_events import dictionary_codes, with_session
from windtunnel.reports.analysis.streams.geometry import Geometry, StreamKey
from windtunnel.reports.analysis.streams.repair_tables import FLOWS, KEY
from windtunnel.reports.analysis.streams.stream_walk import (
    NESTED_TABLES,
    StreamWalk,
    WalkedFrames,
    WalkKey,
    WalkSettings,
)

KEY_NAMES = ("vantage_point", "session_id", "stream_id")
FRAME_COLUMNS = (*KEY_NAMES, *StreamWalk.COLUMNS)
"""Columns of the frame table that are needed for a StreamWalk and its key."""


class StreamSet:
    """The analyses of all streams at all vantage points, one `StreamWalk` each. Streams with
    unknown geometry are ignored.
    """

    def __init__(
        self, known: dict[StreamKey, Geometry], settings: WalkSettings | None = None
    ) -> None:
        self._known, self._settings = known, settings or WalkSettings()
        self._walks: dict[WalkKey, StreamWalk] = {}

    def feed(self, frames: pa.RecordBatch) -> None:
        """Process frames of any streams, with FRAME_COLUMNS, in capture order."""
        for _ in self.follow(frames):
            pass

    def follow(
        self, frames: pa.RecordBatch
    ) -> Iterator[tuple[WalkKey, StreamWalk, Any, WalkedFrames]]:
        """Process frames, and yield the key, analysis, frames and outcomes of each stream."""
        for key, rows in by_stream(frames, self._known):
            yield from self.follow_stream(key, rows)

    def follow_stream(
        self, key: WalkKey, rows: pa.RecordBatch
    ) -> Iterator[tuple[WalkKey, StreamWalk, Any, WalkedFrames]]:
        """Process frames like `follow`, but for a single stream."""
        walk = self._walk(key)
        if walk is not None:
            yield key, walk, rows, walk.feed(rows)

    def _walk(self, key: WalkKey) -> StreamWalk | None:
        geometry = self._known.get(key[1:])
        if geometry is None:
            return None
        if key not in self._walks:
            self._walks[key] = StreamWalk(key, geometry, self._settings)
        return self._walks[key]

    def finish_all_but(self, keep: WalkKey | None) -> list[dict[str, Any]]:
        """End the analyses of all streams except one, and return their rows of the table
        NESTED_FLOWS.
        """
        rows = []
        for key in sorted(each for each in self._walks if each != keep):
            rows += self._walks.pop(key).rows()
        return rows


def by_stream(
    frames: pa.RecordBatch, known: Container[StreamKey] | None = None
) -> Iterator[tuple[WalkKey, pa.RecordBatch]]:
    """Split frames by vantage point and stream, in order. Frames without a session are dropped,
    and so are those of streams that are not `known`, if given.
    """
    chosen = with_session(frames)
    if not chosen.num_rows:
        return
    points, names = dictionary_codes(chosen.column("vantage_point"))
    sessions = chosen.column("session_id").to_numpy().astype(np.int64)
    streams = chosen.column("stream_id").to_numpy().astype(np.int64)
    pairs = sessions << 32 | (streams & 0xFFFFFFFF)
    if (pairs == pairs[0]).all() and (points == points[0]).all():
        # This is the usual case, in which sorting would take as long as processing the frames.
        key = _walk_key(names[points[0]].as_py(), int(pairs[0]))
        if known is None or key[1:] in known:
            yield key, chosen
        return
    # A batch may have as many streams as frames, so it is sorted once instead of searched for each.
    codes, which = np.unique(pairs, return_inverse=True)
    which = which * len(names) + points
    order = np.argsort(which, kind="stable")
    found, starts = np.unique(which[order], return_index=True)
    for code, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        key = _walk_key(names[code % len(names)].as_py(), int(codes[code // len(names)]))
        if known is None or key[1:] in known:
            yield key, compact_dictionaries(chosen.take(pa.array(rows)))


def _walk_key(point: str, stream: int) -> WalkKey:
    """Return the key of a stream's analysis: vantage point, session id and stream id.

    `stream` has the session id in its upper half, and the stream id in its lower half.
    """
    stream_id = stream & 0xFFFFFFFF
    return point, stream >> 32, stream_id - (1 << 32) if stream_id >= 1 << 31 else stream_id


def tables_of(rows: Iterable[dict[str, Any]]) -> dict[str, pa.Table]:
    """Split rows of NESTED_FLOWS into the table FLOWS and one table per kind of nested rows, in a
    fixed order.
    """
    keys = [name for name, _ in KEY]
    ordered = sorted(rows, key=lambda each: tuple(each[name] for name in keys))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in NESTED_TABLES}
    flows = []
    for row in ordered:
        key = {name: row[name] for name in keys}
        flows.append({name: row[name] for name in FLOWS.names})
        for name in NESTED_TABLES:
            found[name] += [{**each, **key} for each in row[name]]
    tables = {
        name: pa.Table.from_pylist(found[name], schema=NESTED_TABLES[name])
        for name in NESTED_TABLES
    }
    tables["messages"] = tables.pop("message_rows")
    return {"flows": pa.Table.from_pylist(flows, schema=FLOWS), **tables}
