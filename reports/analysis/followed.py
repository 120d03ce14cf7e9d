"""All streams of some frames followed side by side, each by a walk of its own.

    frames in capture order  -->  walk of (vantage point, session, stream)  -->  flows, gaps
                             -->  walk of another ...

In the local engine frames of all streams come mixed; in Spark they come sorted, a stream after the
other. Both hold only the walks that are not over.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reports.analysis.geometry import Geometry, StreamKey
from reports.analysis.repair import FLOWS, GAPS, RepairWalk

WalkKey = tuple[str, int, int]
KEY_NAMES = ("vantage_point", "session_id", "stream_id")
FRAME_COLUMNS = (*KEY_NAMES, *RepairWalk.COLUMNS)
"""Of the table of frames, that are needed."""

FLOWS_WITH_GAPS = FLOWS.append(
    pa.field("gaps", pa.list_(pa.struct([GAPS.field(name) for name in GAPS.names[4:]])))
)
"""Flows with their gaps in one row, as they travel from Spark's workers."""


class Followed:
    """Walks by their keys; streams without a geometry are left out."""

    def __init__(self, known: dict[StreamKey, Geometry]) -> None:
        self._known = known
        self._walks: dict[WalkKey, RepairWalk] = {}

    def feed(self, frames: pa.RecordBatch) -> None:
        """Take in frames with at least FRAME_COLUMNS, of any streams, in capture order."""
        chosen = frames.filter(pc.is_valid(frames.column("session_id")))
        if not chosen.num_rows:
            return
        points = chosen.column("vantage_point").dictionary_encode()
        ids = np.stack(
            [
                points.indices.to_numpy().astype(np.int64),
                chosen.column("session_id").to_numpy().astype(np.int64),
                chosen.column("stream_id").to_numpy().astype(np.int64),
            ]
        )
        keys, which = np.unique(ids, axis=1, return_inverse=True)
        names = points.dictionary.to_pylist()
        for index, (point, session, stream) in enumerate(keys.T):
            walk = self._walk((names[point], int(session), int(stream)))
            if walk is not None:
                rows = np.flatnonzero(which.ravel() == index)
                walk.feed(chosen if len(keys.T) == 1 else chosen.take(pa.array(rows)))

    def _walk(self, key: WalkKey) -> RepairWalk | None:
        geometry = self._known.get(key[1:])
        if geometry is None:
            return None
        if key not in self._walks:
            self._walks[key] = RepairWalk(key, geometry)
        return self._walks[key]

    def finish_all_but(self, keep: WalkKey | None) -> list[dict[str, Any]]:
        """End the walks but one; returns rows of FLOWS_WITH_GAPS."""
        rows = []
        for key in sorted(each for each in self._walks if each != keep):
            walk = self._walks.pop(key)
            gaps: dict[str, list[dict[str, Any]]] = {}
            for gap in walk.gaps():
                gaps.setdefault(gap["destination"], []).append(gap)
            rows += [{**flow, "gaps": gaps.get(flow["destination"], [])} for flow in walk.flows()]
        return rows


def tables_of(rows: Iterable[dict[str, Any]]) -> tuple[pa.Table, pa.Table]:
    """FLOWS and GAPS of rows of FLOWS_WITH_GAPS, in an order of their own."""
    flows, gaps = [], []
    for row in sorted(rows, key=lambda each: tuple(each[name] for name in FLOWS.names[:4])):
        about = {name: row[name] for name in FLOWS.names[:4]}
        flows.append({name: row[name] for name in FLOWS.names})
        gaps += [{**gap, **about} for gap in row["gaps"]]
    return pa.Table.from_pylist(flows, schema=FLOWS), pa.Table.from_pylist(gaps, schema=GAPS)
