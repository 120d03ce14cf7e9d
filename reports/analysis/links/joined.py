"""All streams with several vantage points joined side by side, each by a walk of its own."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from windtunnel.reports.analysis.links.join import JoinWalk
from windtunnel.reports.analysis.links.links import LINKS
from windtunnel.reports.analysis.streams.geometry import Geometry, StreamKey
from windtunnel.reports.analysis.streams.stream_set import by_stream
from windtunnel.reports.analysis.streams.stream_walk import WalkKey


class Joined:
    """Join walks by their streams; other streams are left out."""

    def __init__(
        self,
        known: dict[StreamKey, Geometry],
        points: dict[StreamKey, list[str]],
        keeps_fates: bool = False,
    ) -> None:
        self._known, self._points, self._keeps_fates = known, points, keeps_fates
        self._walks: dict[StreamKey, JoinWalk] = {}

    def feed(self, frames: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take in frames of JOIN_COLUMNS; returns fates that are known by now."""
        for key, rows in by_stream(frames):
            yield from self.feed_one(key, rows)

    def feed_one(self, walk_key: WalkKey, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The same of frames that are all of one stream at one point."""
        point, *stream = walk_key
        key = stream[0], stream[1]
        if key not in self._points:
            return
        if key not in self._walks:
            expected = len(self._points[key])
            self._walks[key] = JoinWalk(key, self._known[key], expected, self._keeps_fates)
        self._walks[key].feed(point, rows)
        yield from self._walks[key].fates()

    def finish_all_but(
        self, keep: StreamKey | None
    ) -> tuple[list[dict[str, Any]], list[pa.RecordBatch]]:
        """End the walks but one; returns rows of LINKS, and the fates that were left."""
        rows: list[dict[str, Any]] = []
        fates: list[pa.RecordBatch] = []
        for key in sorted(each for each in self._walks if each != keep):
            walk = self._walks.pop(key)
            rows += walk.finish()
            fates += walk.fates()
        return rows, fates


def link_table(rows: list[dict[str, Any]]) -> pa.Table:
    """LINKS of its rows, in an order of their own."""
    names = LINKS.names[:5]
    ordered = sorted(rows, key=lambda each: tuple(each[name] for name in names))
    return pa.Table.from_pylist(ordered, schema=LINKS)
