"""All streams of some frames followed side by side, each by a walk of its own.

    frames in capture order  -->  walk of (vantage point, session, stream)  -->  flows, gaps, ...
                             -->  walk of another ...

In the local engine frames of all streams come mixed; in Spark they come sorted, a stream after the
other. Both hold only the walks that are not over.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.reading.schema import own_texts
from windtunnel.reports.analysis.reading.stream_events import coded, with_session
from windtunnel.reports.analysis.streams.geometry import Geometry, StreamKey
from windtunnel.reports.analysis.streams.repair import FLOWS, KEY
from windtunnel.reports.analysis.streams.stream_walk import (
    WITHIN,
    StreamWalk,
    Told,
    WalkKey,
    WalkSettings,
)

KEY_NAMES = ("vantage_point", "session_id", "stream_id")
FRAME_COLUMNS = (*KEY_NAMES, *StreamWalk.COLUMNS)
"""Of the table of frames, that are needed."""


class Followed:
    """Walks by their keys; streams without a geometry are left out."""

    def __init__(
        self, known: dict[StreamKey, Geometry], settings: WalkSettings | None = None
    ) -> None:
        self._known, self._settings = known, settings or WalkSettings()
        self._walks: dict[WalkKey, StreamWalk] = {}

    def feed(self, frames: pa.RecordBatch) -> None:
        """Take in frames with at least FRAME_COLUMNS, of any streams, in capture order."""
        for _ in self.told(frames):
            pass

    def told(self, frames: pa.RecordBatch) -> Iterator[tuple[WalkKey, StreamWalk, Any, Told]]:
        """The same, and for each stream its frames and what is told of them."""
        for key, rows in by_stream(frames):
            yield from self.told_of(key, rows)

    def told_of(
        self, key: WalkKey, rows: pa.RecordBatch
    ) -> Iterator[tuple[WalkKey, StreamWalk, Any, Told]]:
        """The same of frames that are all of one stream."""
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
        """End the walks but one; returns rows of FLOWS_AND_ALL."""
        rows = []
        for key in sorted(each for each in self._walks if each != keep):
            rows += self._walks.pop(key).rows()
        return rows


def by_stream(frames: pa.RecordBatch) -> Iterator[tuple[WalkKey, pa.RecordBatch]]:
    """The frames of each stream and vantage point, in their order; those of no session left out."""
    chosen = with_session(frames)
    if not chosen.num_rows:
        return
    points, names = coded(chosen.column("vantage_point"))
    sessions = chosen.column("session_id").to_numpy().astype(np.int64)
    streams = chosen.column("stream_id").to_numpy().astype(np.int64)
    same = sessions << 32 | (streams & 0xFFFFFFFF)
    if (same == same[0]).all() and (points == points[0]).all():
        # Mostly so, and sorting would take as long as following.
        yield _walk_key(names[points[0]].as_py(), int(same[0])), chosen
        return
    codes, which = np.unique(same, return_inverse=True)
    which = which * len(names) + points
    for code in np.unique(which):
        rows = np.flatnonzero(which == code)
        key = _walk_key(names[int(code) % len(names)].as_py(), int(codes[code // len(names)]))
        yield key, own_texts(chosen.take(pa.array(rows)))


def _walk_key(point: str, stream: int) -> WalkKey:
    """Of a session id and, in the lower 32 bits, a stream id."""
    stream_id = stream & 0xFFFFFFFF
    return point, stream >> 32, stream_id - (1 << 32) if stream_id >= 1 << 31 else stream_id


def tables_of(rows: Iterable[dict[str, Any]]) -> dict[str, pa.Table]:
    """FLOWS and the tables of WITHIN, of rows of FLOWS_AND_ALL, in an order of their own."""
    keys = [name for name, _ in KEY]
    ordered = sorted(rows, key=lambda each: tuple(each[name] for name in keys))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in WITHIN}
    flows = []
    for row in ordered:
        about = {name: row[name] for name in keys}
        flows.append({name: row[name] for name in FLOWS.names})
        for name in WITHIN:
            found[name] += [{**each, **about} for each in row[name]]
    made = {name: pa.Table.from_pylist(found[name], schema=WITHIN[name]) for name in WITHIN}
    made["messages"] = made.pop("messages_told")
    return {"flows": pa.Table.from_pylist(flows, schema=FLOWS), **made}
