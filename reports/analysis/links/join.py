"""One stream at all its vantage points: each passage of a frame joined with its arrivals.

    frames of all points --> positions that are over --> `hop` for each link --> links, fates

A position is over when the stream is a term further at every point: no receiver asks for it any
more. Memory is bounded by the frames of two terms. What is read in which order does not matter
within that; in a capture the points' own order counts.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.harness.dissect.frames.wire_frame import NO_IDENTIFICATION
from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.links.link_matching import LOST, Hop, match
from windtunnel.reports.analysis.links.links import LinkSum
from windtunnel.reports.analysis.links.path import Path, find_path
from windtunnel.reports.analysis.reading.stream_events import StreamEvents, ints
from windtunnel.reports.analysis.streams.frame_outcomes import (
    JOINED,
    NUMBER_COLUMNS,
    ONWARD,
    fate_batch,
)
from windtunnel.reports.analysis.streams.geometry import Geometry, StreamKey

ROWS_MANY = 1 << 20
"""From so many on, positions that are over are joined."""
PATIENCE = 8
"""So many times as many are kept while a point has not begun."""

PASSAGE = np.dtype(
    [
        ("point", "<i4"),
        ("flow", "<i4"),
        ("kind", "u1"),
        ("position", "<i8"),
        ("length", "<i8"),
        ("time_ns", "<i8"),
        ("identification", "<i8"),
        ("file_index", "<i8"),
        ("record_at", "<i8"),
        ("frame_index", "<i8"),
    ]
)
_ORDER = ("frame_index", "record_at", "file_index")
JOIN_COLUMNS = tuple(
    dict.fromkeys(
        ("vantage_point", "session_id", "stream_id", *StreamEvents.COLUMNS, *NUMBER_COLUMNS)
    )
)


class JoinWalk:
    """Joins the vantage points of one stream; `feed` their frames, take `fates`, then `rows`."""

    def __init__(
        self, key: StreamKey, geometry: Geometry, expected: int, keeps_fates: bool
    ) -> None:
        self._key, self._reach = key, geometry.term_length
        self._expected, self._keeps_fates = expected, keeps_fates
        self._limit = ROWS_MANY
        self._events = StreamEvents(("", *key), geometry)
        self._points: dict[str, int] = {}
        self._waiting: list[Any] = []
        self._count = 0
        self._paths: dict[int, Path] = {}
        self._sums: dict[tuple[int, int, int], LinkSum] = {}
        self._fates: list[pa.RecordBatch] = []

    def feed(self, point: str, frames: Any) -> None:
        """Take in frames of this stream at one point, in capture order."""
        events = self._events.of(frames)
        made = np.zeros(len(events.rows), dtype=PASSAGE)
        made["point"] = self._points.setdefault(point, len(self._points))
        made["flow"], made["kind"] = events.flow_of, events.kinds
        made["position"], made["length"] = events.starts, events.ends - events.starts
        made["time_ns"] = events.times_ns
        numbers = ints(frames, "ip_identification", NO_IDENTIFICATION)
        made["identification"] = numbers[events.rows]
        for name in NUMBER_COLUMNS:
            made[name] = ints(frames, name)[events.rows]
        self._waiting.append(made[made["kind"] != kernel.HEARTBEAT])
        self._count += len(made)
        is_patient = len(self._points) < self._expected and self._count < PATIENCE * ROWS_MANY
        if self._count > self._limit and not is_patient:
            self._join(is_last=False)
            self._limit = max(ROWS_MANY, 2 * self._count)

    def fates(self) -> Iterator[pa.RecordBatch]:
        """The fates that are known by now and were not taken yet."""
        taken, self._fates = self._fates, []
        yield from taken

    def finish(self) -> list[dict[str, Any]]:
        """Rows of LINKS; then take the last of `fates`."""
        self._join(is_last=True)
        names, destinations = list(self._points), self._events.destinations
        rows = []
        for (flow, near, far), total in self._sums.items():
            rows.append(
                {
                    "session_id": self._key[0],
                    "stream_id": self._key[1],
                    "destination": destinations[flow],
                    "from_point": names[near],
                    "to_point": names[far],
                    **total.row(),
                }
            )
        return rows

    def _join(self, is_last: bool) -> None:
        if not self._waiting:
            return
        everything = np.concatenate(self._waiting)
        everything = everything[np.lexsort([everything[name] for name in _ORDER])]
        self._waiting = []
        for flow in range(len(self._events.destinations)):
            rows = everything[everything["flow"] == flow]
            is_frame = rows["kind"] == kernel.FRAME
            frames, control = rows[is_frame], rows[~is_frame]
            known = self._paths.get(flow)
            if known is None or not set(np.unique(frames["point"])) <= set(known.order):
                self._paths[flow] = find_path(frames, control)
            until = self._over(frames) if not is_last else np.iinfo(np.int64).max
            is_over = frames["position"] < until
            is_old = control["position"] < until
            self._join_flow(flow, frames[is_over], control[is_old])
            self._waiting += [frames[~is_over], control[~is_old]]
        self._count = sum(len(each) for each in self._waiting)

    def _over(self, frames: Any) -> int:
        """The position that no receiver can ask for any more, wherever it listens."""
        highs = [
            int(frames["position"][frames["point"] == point].max(initial=0))
            for point in np.unique(frames["point"])
        ]
        return min(highs, default=0) - self._reach

    def _join_flow(self, flow: int, frames: Any, control: Any) -> None:
        path = self._paths[flow]
        attempts: dict[int, Any] = {}
        at = {point: frames[frames["point"] == point] for point in path.order}
        arrivals: dict[int, Hop] = {}
        onward: dict[int, list[tuple[int, Hop]]] = {point: [] for point in path.order}
        for point in path.order:
            near = path.before.get(point)
            if near is None:
                attempts[point] = _occurrences(at[point]["position"])
                continue
            link = (flow, near, point)
            if link not in self._sums:
                self._sums[link] = LinkSum(path.clocks[point])
            hop = match(at[near], at[point], path.clocks[point].correction_ns)
            self._sums[link].add(hop)
            self._add_control(self._sums[link], control, near, point)
            arrivals[point] = hop
            onward[near].append((point, hop))
            attempts[point] = np.where(
                hop.send_of == LOST, 0, np.append(attempts[near], 0)[hop.send_of]
            )
        if self._keeps_fates:
            for point in path.order:
                if len(at[point]):
                    is_status = (control["kind"] == kernel.STATUS) & (control["point"] == point)
                    was_here = _was_here(at[point], control[is_status])
                    told = (at[point], attempts[point], arrivals.get(point), onward[point])
                    self._tell(flow, point, was_here, *told)

    def _add_control(self, total: LinkSum, control: Any, near: int, far: int) -> None:
        """NAKs and status messages go from the further point to the nearer."""
        names = ["kind", "position", "length"]
        for point, sign in ((far, 1), (near, -1)):
            rows = control[control["point"] == point][names]
            keys, counts = np.unique(rows, return_counts=True)
            total.add_control(keys.tolist(), (sign * counts).tolist())

    def _tell(
        self, flow: int, point: int, was_here: Any, rows: Any, attempts: Any, hop: Hop | None,
        onward: list[tuple[int, Hop]],
    ) -> None:  # fmt: skip
        nothing = np.zeros(len(rows), dtype=np.int64)
        names = list(self._points)
        fates = _fate_names(was_here, attempts, hop)
        values = {name: rows[name] for name in ("time_ns", "position", "length")}
        values["extent_frames"] = nothing if hop is None else hop.extents
        values["late_ns"] = nothing if hop is None else hop.late_ns
        self._fates.append(
            fate_batch(
                (names[point], *self._key),
                pa.repeat(pa.scalar(self._events.destinations[flow]), len(rows)),
                {name: rows[name] for name in NUMBER_COLUMNS},
                values,
                fates,
                JOINED,
                pa.array(attempts, pa.int64(), mask=attempts == 0),
                _onward(len(rows), [(names[far], each) for far, each in onward]),
            )
        )


def _occurrences(positions: Any) -> Any:
    """How often each position has been seen up to and with each row, from 1 on."""
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    lengths = np.diff(np.append(starts, len(ordered)))
    found = np.zeros(len(positions), dtype=np.int64)
    if len(positions):
        found[order] = np.arange(len(ordered)) - np.repeat(starts, lengths) + 1
    return found


def _was_here(rows: Any, status: Any) -> Any:
    """Whether each frame's place was filled when it came, or the receiver had gone on without."""
    consumed = np.maximum.accumulate(status["position"]) if len(status) else np.zeros(0)
    times = np.maximum.accumulate(status["time_ns"]) if len(status) else np.zeros(0)
    known = np.append(np.iinfo(np.int64).min, consumed)
    passed = known[np.searchsorted(times, rows["time_ns"])] >= rows["position"] + rows["length"]
    return passed | (_occurrences(rows["position"]) > 1)


def _fate_names(was_here: Any, attempts: Any, hop: Hop | None) -> pa.Array:
    if hop is None:
        return pa.array(np.where(attempts == 1, "first", "resent"), pa.string())
    names = np.where(
        hop.extents > 0, np.where(was_here, "late", "reordered"), np.full(len(attempts), "first")
    )
    names = np.where(attempts > 1, "resent", names)
    names = np.where(hop.is_copy, "duplicate", names)
    names = np.where(hop.send_of == LOST, "unsent", names)
    return pa.array(names, pa.string())


def _onward(count: int, hops: list[tuple[str, Hop]]) -> pa.Array:
    """What became of each row at each of the next points."""
    each = len(hops)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * each)
    if not each:
        return pa.ListArray.from_arrays(offsets, pa.array([], ONWARD))

    def woven(values: list[Any]) -> Any:
        return np.stack(values, axis=1).ravel()

    came = woven([hop.arrival_of != LOST for _, hop in hops])
    columns = [
        pa.array([name for name, _ in hops]).take(pa.array(np.tile(np.arange(each), count))),
        pa.array(came),
        pa.array(woven([hop.delays_ns for _, hop in hops]), pa.int64(), mask=~came),
        pa.array(woven([hop.copies for _, hop in hops]), pa.int64()),
    ]
    structs = pa.StructArray.from_arrays(columns, fields=list(ONWARD))
    return pa.ListArray.from_arrays(offsets, structs)
