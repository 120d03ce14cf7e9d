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
import pyarrow.compute as pc

from reports.analysis.geometry import Geometry, StreamKey
from reports.analysis.repair import FLOWS, KEY
from reports.analysis.stream_walk import WITHIN, StreamWalk, Told, WalkKey, WalkSettings

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
    points = chosen.column("vantage_point").dictionary_encode()
    sessions = chosen.column("session_id").to_numpy().astype(np.int64)
    streams = chosen.column("stream_id").to_numpy().astype(np.int64)
    names = points.dictionary.to_pylist()
    same = sessions << 32 | (streams & 0xFFFFFFFF)
    codes, which = np.unique(same, return_inverse=True)
    which = which * len(names) + points.indices.to_numpy()
    for code in np.unique(which):
        rows = np.flatnonzero(which == code)
        stream = int(codes[code // len(names)])
        key = names[code % len(names)], stream >> 32, _signed(stream & 0xFFFFFFFF)
        yield key, chosen if len(rows) == chosen.num_rows else chosen.take(pa.array(rows))


def with_session(frames: Any) -> Any:
    """Those frames that belong to a stream: all but the rare resolution frames."""
    sessions = frames.column("session_id")
    return frames.filter(pc.is_valid(sessions)) if sessions.null_count else frames


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value


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
