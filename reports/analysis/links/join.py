"""Join of one stream's captures from all vantage points. It matches transmissions with arrivals.

    frames of all points --> settled positions --> `link_matching` for each link --> links, outcomes

A position is settled once the stream has advanced by a term at every vantage point, because no
receiver requests it any more. Memory is bounded by the frames of two terms. Within that bound,
captures may be read in any order, but the order within a capture is kept.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.harness.dissect.frames.wire_frame import NO_IDENTIFICATION
from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.links.link_matching import (
    ALWAYS,
    LOST,
    NEVER,
    LinkMatch,
    Period,
    match,
)
from windtunnel.reports.analysis.links.links import LinkTotals
from windtunnel.reports.analysis.links.path import CONTROL_NAMES, Path, find_path
from windtunnel.reports.analysis.reading.stream_events import StreamEvents, ints, is_group
from windtunnel.reports.analysis.streams.frame_outcomes import (
    FRAME_ID_COLUMNS,
    JOINED,
    ONWARD,
    outcome_batch,
)
from windtunnel.reports.analysis.streams.geometry import Geometry, StreamKey

JOIN_ROWS_MIN = 1 << 20
"""Number of pending rows above which settled positions are joined."""
LATE_POINT_FACTOR = 8
"""Factor by which pending rows may exceed JOIN_ROWS_MIN while a vantage point has no frames yet."""

OBSERVATION = np.dtype(
    [
        ("point", "<i4"),
        ("flow", "<i4"),
        ("kind", "u1"),
        ("receiver", "<i4"),  # that sent a control frame to a multicast group; 0 in other flows
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
        ("vantage_point", "session_id", "stream_id", *StreamEvents.COLUMNS, *FRAME_ID_COLUMNS)
    )
)


class JoinWalk:
    """Joins a stream's captures from all vantage points. Call `feed`, `outcomes`, then `finish`."""

    def __init__(
        self, key: StreamKey, geometry: Geometry, expected: int, keeps_outcomes: bool
    ) -> None:
        self._key, self._term_length = key, geometry.term_length
        self._expected, self._keeps_outcomes = expected, keeps_outcomes
        self._limit = JOIN_ROWS_MIN
        self._events = StreamEvents(("", *key), geometry)
        self._points: dict[str, int] = {}
        self._periods: dict[int, Period] = {}
        self._pending: list[Any] = []
        self._count = 0
        self._paths: dict[int, Path] = {}
        self._sums: dict[tuple[int, int, int], LinkTotals] = {}
        self._outcomes: list[pa.RecordBatch] = []

    def feed(self, point: str, frames: Any) -> None:
        """Add frames of this stream that were captured at one vantage point, in capture order."""
        events = self._events.of(frames)
        rows = np.zeros(len(events.rows), dtype=OBSERVATION)
        number = self._points.setdefault(point, len(self._points))
        period = self._periods.get(number, NEVER)
        self._periods[number] = period.extended(ints(frames, "time_ns"))
        rows["point"] = number
        rows["flow"], rows["kind"] = events.flow_of, events.kinds
        in_group = np.array([is_group(each) for each in self._events.destinations], dtype=np.bool_)
        rows["receiver"] = np.where(in_group[events.flow_of], events.receivers, 0)
        rows["position"], rows["length"] = events.starts, events.ends - events.starts
        rows["time_ns"] = events.times_ns
        numbers = ints(frames, "ip_identification", NO_IDENTIFICATION)
        rows["identification"] = numbers[events.rows]
        for name in FRAME_ID_COLUMNS:
            rows[name] = ints(frames, name)[events.rows]
        self._pending.append(rows[rows["kind"] != kernel.HEARTBEAT])
        self._count += len(rows)
        may_wait = (
            len(self._points) < self._expected and self._count < LATE_POINT_FACTOR * JOIN_ROWS_MIN
        )
        if self._count > self._limit and not may_wait:
            self._join(is_last=False)
            self._limit = max(JOIN_ROWS_MIN, 2 * self._count)

    def outcomes(self) -> Iterator[pa.RecordBatch]:
        """Yield the frame outcomes that have been determined since the last call."""
        taken, self._outcomes = self._outcomes, []
        yield from taken

    def finish(self) -> list[dict[str, Any]]:
        """Join the remaining frames and return rows of the table LINKS. Call `outcomes` again
        afterwards.
        """
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
        if not self._pending:
            return
        everything = np.concatenate(self._pending)
        everything = everything[np.lexsort([everything[name] for name in _ORDER])]
        self._pending = []
        for flow in range(len(self._events.destinations)):
            rows = everything[everything["flow"] == flow]
            is_frame = rows["kind"] == kernel.FRAME
            frames, control = rows[is_frame], rows[~is_frame]
            known = self._paths.get(flow)
            if known is None or not set(np.unique(frames["point"])) <= set(known.order):
                self._paths[flow] = find_path(frames, control)
            until = self._settled_until(frames) if not is_last else np.iinfo(np.int64).max
            is_settled = frames["position"] < until
            is_settled_control = control["position"] < until
            self._join_flow(flow, frames[is_settled], control[is_settled_control], is_last)
            self._pending += [frames[~is_settled], control[~is_settled_control]]
        self._count = sum(len(each) for each in self._pending)

    def _settled_until(self, frames: Any) -> int:
        """Return the position below which no receiver can still request frames."""
        highs = [
            int(frames["position"][frames["point"] == point].max(initial=0))
            for point in np.unique(frames["point"])
        ]
        return min(highs, default=0) - self._term_length

    def _period(self, point: int, is_last: bool) -> Period:
        """Return the period that a capture covers. It may go on unless all of it was read."""
        period = self._periods[point]
        return period if is_last else period._replace(last_ns=ALWAYS.last_ns)

    def _join_flow(self, flow: int, frames: Any, control: Any, is_last: bool) -> None:
        path = self._paths[flow]
        attempts: dict[int, Any] = {}
        at = {point: frames[frames["point"] == point] for point in path.order}
        matches: dict[int, LinkMatch] = {}
        onward: dict[int, list[tuple[int, LinkMatch]]] = {point: [] for point in path.order}
        for point in path.order:
            near = path.before.get(point)
            if near is None:
                attempts[point] = _occurrences(at[point]["position"])
                continue
            link = (flow, near, point)
            if link not in self._sums:
                self._sums[link] = LinkTotals(path.clocks[point])
            correction_ns = path.clocks[point].correction_ns
            sending, arriving = self._period(near, is_last), self._period(point, is_last)
            matched = match(at[near], at[point], correction_ns, sending, arriving)
            self._sums[link].add(matched)
            beyond = control[np.isin(control["receiver"], path.receivers[point])]
            sent_ns = beyond["time_ns"] - correction_ns
            unseen = sending.lacks(sent_ns, sent_ns)
            beyond = beyond[(beyond["point"] != point) | ~unseen]
            self._add_control(self._sums[link], beyond, near, point)
            matches[point] = matched
            onward[near].append((point, matched))
            attempts[point] = np.where(
                matched.send_of == LOST, 0, np.append(attempts[near], 0)[matched.send_of]
            )
        if self._keeps_outcomes:
            for point in path.order:
                if len(at[point]):
                    was_filled = _was_filled(at[point], _status_at(point, control, path))
                    self._add_outcomes(
                        flow, point, was_filled, at[point], attempts[point], matches.get(point),
                        onward[point],
                    )  # fmt: skip

    def _add_control(self, total: LinkTotals, control: Any, near: int, far: int) -> None:
        """Count the NAKs and status messages that travel from the farther to the nearer vantage
        point.
        """
        names = list(CONTROL_NAMES)
        for point, sign in ((far, 1), (near, -1)):
            rows = control[control["point"] == point][names]
            keys, counts = np.unique(rows, return_counts=True)
            total.add_control(keys.tolist(), (sign * counts).tolist())

    def _add_outcomes(
        self, flow: int, point: int, was_filled: Any, rows: Any, attempts: Any,
        matched: LinkMatch | None,
        onward: list[tuple[int, LinkMatch]],
    ) -> None:  # fmt: skip
        nothing = np.zeros(len(rows), dtype=np.int64)
        names = list(self._points)
        outcomes = _outcome_names(was_filled, attempts, matched)
        values = {name: rows[name] for name in ("time_ns", "position", "length")}
        values["extent_frames"] = nothing if matched is None else matched.extents
        values["late_ns"] = nothing if matched is None else matched.late_ns
        self._outcomes.append(
            outcome_batch(
                (names[point], *self._key),
                pa.repeat(pa.scalar(self._events.destinations[flow]), len(rows)),
                {name: rows[name] for name in FRAME_ID_COLUMNS},
                values,
                outcomes,
                JOINED,
                pa.array(attempts, pa.int64(), mask=attempts == 0),
                _onward(len(rows), [(names[far], each) for far, each in onward]),
            )
        )


def _occurrences(positions: Any) -> Any:
    """Return, for each element, how often its value has occurred so far, itself included."""
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    lengths = np.diff(np.append(starts, len(ordered)))
    found = np.zeros(len(positions), dtype=np.int64)
    if len(positions):
        found[order] = np.arange(len(ordered)) - np.repeat(starts, lengths) + 1
    return found


def _status_at(point: int, control: Any, path: Path) -> Any:
    """Return the status messages captured at a vantage point, from receivers at or behind it."""
    chosen = (control["kind"] == kernel.STATUS) & (control["point"] == point)
    if point in path.receivers:
        chosen &= np.isin(control["receiver"], path.receivers[point])
    return control[chosen]


def _was_filled(rows: Any, status: Any) -> Any:
    """Return, for each frame, whether its range had been filled or skipped before it arrived."""
    consumed = np.maximum.accumulate(status["position"]) if len(status) else np.zeros(0)
    times = np.maximum.accumulate(status["time_ns"]) if len(status) else np.zeros(0)
    known = np.append(np.iinfo(np.int64).min, consumed)
    skipped = known[np.searchsorted(times, rows["time_ns"])] >= rows["position"] + rows["length"]
    return skipped | (_occurrences(rows["position"]) > 1)


def _outcome_names(was_filled: Any, attempts: Any, matched: LinkMatch | None) -> pa.Array:
    if matched is None:
        return pa.array(np.where(attempts == 1, "first", "resent"), pa.string())
    names = np.where(
        matched.extents > 0,
        np.where(was_filled, "late", "reordered"),
        np.full(len(attempts), "first"),
    )
    names = np.where(attempts > 1, "resent", names)
    names = np.where(matched.is_copy, "duplicate", names)
    names = np.where(matched.send_of == LOST, "unsent", names)
    return pa.array(names, pa.string())


def _onward(count: int, matches: list[tuple[str, LinkMatch]]) -> pa.Array:
    """Return an Arrow list column: each frame's outcomes at the next vantage points."""
    each = len(matches)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * each)
    if not each:
        return pa.ListArray.from_arrays(offsets, pa.array([], ONWARD))

    def interleaved(values: list[Any]) -> Any:
        return np.stack(values, axis=1).ravel()

    arrived = interleaved([matched.arrival_of != LOST for _, matched in matches])
    columns = [
        pa.array([name for name, _ in matches]).take(pa.array(np.tile(np.arange(each), count))),
        pa.array(arrived),
        pa.array(
            interleaved([matched.delays_ns for _, matched in matches]), pa.int64(), mask=~arrived
        ),
        pa.array(interleaved([matched.copies for _, matched in matches]), pa.int64()),
    ]
    structs = pa.StructArray.from_arrays(columns, fields=list(ONWARD))
    return pa.ListArray.from_arrays(offsets, structs)
