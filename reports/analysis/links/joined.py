"""Joins of all streams that were captured at several vantage points."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from windtunnel.reports.analysis.links.join import JoinWalk
from windtunnel.reports.analysis.links.links import LINKS
from windtunnel.reports.analysis.streams.geometry import Geometry, StreamKey
from windtunnel.reports.analysis.streams.stream_set import by_stream
from windtunnel.reports.analysis.streams.stream_walk import WalkKey


class JoinedStreams:
    """The joins of all streams that were captured at several vantage points, one `JoinWalk` per
    stream. Other streams are ignored.
    """

    def __init__(
        self,
        known: dict[StreamKey, Geometry],
        points: dict[StreamKey, list[str]],
        keeps_outcomes: bool = False,
    ) -> None:
        self._known, self._points, self._keeps_outcomes = known, points, keeps_outcomes
        self._walks: dict[StreamKey, JoinWalk] = {}

    def feed(self, frames: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add a batch of frames with JOIN_COLUMNS, and yield all frame outcomes that are then
        known.
        """
        for key, rows in by_stream(frames, self._points):
            yield from self.feed_stream(key, rows)

    def feed_stream(self, walk_key: WalkKey, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add frames of one stream and vantage point, and yield all frame outcomes that are then
        known.
        """
        point, *stream = walk_key
        key = stream[0], stream[1]
        if key not in self._points:
            return
        if key not in self._walks:
            expected = len(self._points[key])
            self._walks[key] = JoinWalk(key, self._known[key], expected, self._keeps_outcomes)
        self._walks[key].feed(point, rows)
        yield from self._walks[key].outcomes()

    def finish_all_but(
        self, keep: StreamKey | None
    ) -> tuple[list[dict[str, Any]], list[pa.RecordBatch]]:
        """End the joins of all streams except one. Return their rows of the table LINKS, and the
        remaining frame outcomes.
        """
        rows: list[dict[str, Any]] = []
        outcomes: list[pa.RecordBatch] = []
        for key in sorted(each for each in self._walks if each != keep):
            walk = self._walks.pop(key)
            rows += walk.finish()
            outcomes += walk.outcomes()
        return rows, outcomes


def link_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Return the table LINKS with these rows in a fixed order."""
    names = LINKS.names[:5]
    ordered = sorted(rows, key=lambda each: tuple(each[name] for name in names))
    return pa.Table.from_pylist(ordered, schema=LINKS)
