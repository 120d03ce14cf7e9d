"""Gaps and their repair, and the fate of frames, of one stream at one vantage point.

    events of the stream, in capture order --> `repair_kernel` --> flows, gaps, fates

At one vantage point fates are inferred: the flow says so.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.kernels import gap_kernel
from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import FLOW, TOLD
from windtunnel.reports.analysis.reading.stream_events import Events, grown
from windtunnel.reports.analysis.streams import sending_order
from windtunnel.reports.analysis.streams.geometry import Geometry

FATE_NAMES = ("first", "resent", "reordered", "duplicate", "earlier", "late")
KEY = [
    ("vantage_point", pa.string()),
    ("session_id", pa.int32()),
    ("stream_id", pa.int32()),
    ("destination", pa.string()),
]
"""What a row of every table of flows begins with."""

FLOWS = pa.schema(
    [
        *KEY,
        *((f"{name}_frames", pa.int64()) for name in FATE_NAMES),
        *((f"{name}_bytes", pa.int64()) for name in FATE_NAMES),
        ("messages", pa.int64()),
        ("high_position", pa.int64()),
        ("rebuilt_position", pa.int64()),
        ("naks", pa.int64()),
        ("nak_bytes", pa.int64()),
        ("spurious_naks", pa.int64()),
        ("status_messages", pa.int64()),
        ("unmatched_control", pa.int64()),
        ("reordered_ratio", pa.float64()),
        ("reordered_ns_max", pa.int64()),
        ("reordered_extent_max", pa.int64()),
        ("reordered_extent_mean", pa.float64()),
        ("loss_amplification", pa.float64()),
        ("is_inferred", pa.bool_()),
        ("problem", pa.string()),
    ]
)
"""Bytes are of the stream, with headers and padding. `messages`: that could be put together.
`rebuilt_position`: up to where all came or was passed over. `spurious_naks`: whose bytes had come
by already when the first was sent. Ratio and extents of reordering are RFC 4737's, frames that were
sent again left out.
`loss_amplification`: bytes sent again for each byte that was missing, of what was missed here or
asked for here; null where nothing was."""
GAPS = pa.schema(
    [
        *KEY,
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("cause", pa.string()),
        ("outcome", pa.string()),
        ("opened_ns", pa.int64()),
        ("first_nak_ns", pa.int64()),
        ("last_nak_ns", pa.int64()),
        ("nak_count", pa.int64()),
        ("resent_frames", pa.int64()),
        ("resent_bytes", pa.int64()),
        ("over_filled_bytes", pa.int64()),
        ("first_filled_ns", pa.int64()),
        ("repaired_ns", pa.int64()),
        ("passed_ns", pa.int64()),
        ("time_to_repair_ns", pa.int64()),
    ]
)
"""`time_to_repair_ns`: from the first sign, a later frame or a NAK, to the last that filled it.
`over_filled_bytes`: that came although nothing of it was missing any more."""

CAUSES = ("before capture", "behind capture")
OUTCOMES = ("repaired", "reordered", "passed", "open")
"""It came, some of it at least sent again; all of it came late by itself; the receiver went on
without it, as an unreliable one does; not all of it came by until the capture's end."""

_PIECES_MAX = 1 << 16


class RepairWalk:
    """Follows one stream at one vantage point; `feed` its events in capture order, then read."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._senders = np.zeros(1, dtype=sending_order.SENDER)
        self._flows = np.zeros(1, dtype=FLOW)
        self._gaps = np.zeros(1 << 10, dtype=gap_kernel.GAP)
        self._pieces = np.zeros(_PIECES_MAX, dtype=gap_kernel.PIECE)
        self._control = np.zeros(gap_kernel.CONTROLS, dtype=np.int64)

    def feed(self, events: Events, flow_count: int) -> Any:
        """Take in events; returns TOLD[n], what is told of each."""
        count = len(events.rows)
        told = np.zeros(count, dtype=TOLD)
        orders, is_believed = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
        self._senders = grown(self._senders, flow_count)
        sending_order.put_in_order(
            (events.kinds == kernel.FRAME) | (events.kinds == kernel.HEARTBEAT),
            events.flow_of,
            events.identifications,
            events.packets,
            events.starts,
            orders,
            is_believed,
            self._senders,
        )
        self._flows = grown(self._flows, flow_count)
        self._gaps = grown(self._gaps, int(self._control[gap_kernel.GAPS]) + count)
        kernel.follow(
            events.times_ns,
            events.kinds,
            events.flow_of,
            events.starts,
            events.ends,
            orders,
            is_believed,
            events.packets,
            self._geometry.term_length,
            told,
            self._flows,
            self._gaps,
            self._pieces,
            self._control,
        )
        return told

    def flow(self, index: int) -> dict[str, Any]:
        """The columns of FLOWS behind the key, of one destination."""
        flow = self._flows[index]
        gaps = self._gaps_of(index)
        row: dict[str, Any] = {}
        for fate, name in enumerate(FATE_NAMES):
            row[f"{name}_frames"] = int(flow["frames"][fate])
            row[f"{name}_bytes"] = int(flow["bytes"][fate])
        for name in ("naks", "nak_bytes", "status_messages", "reordered_ns_max"):
            row[name] = int(flow[name])
        row["high_position"] = int(flow["hwm"])
        row["rebuilt_position"] = int(flow["rebuilt"])
        reordered = row["reordered_frames"]
        came = row["first_frames"] + reordered
        row["reordered_ratio"] = reordered / came if came else None
        row["reordered_extent_max"] = int(flow["extent_max"])
        row["reordered_extent_mean"] = int(flow["extent_sum"]) / reordered if reordered else None
        lost = gaps[(gaps["nak_count"] > 0) | (gaps["repaired_bytes"] > 0)]
        missing = int(np.maximum(lost["end"] - lost["start"] - lost["late_bytes"], 0).sum())
        asked_bytes = row["resent_bytes"] - int(flow["alone_bytes"])
        row["loss_amplification"] = asked_bytes / missing if missing else None
        filled_ns = lost["first_filled_ns"]
        is_spurious = (lost["nak_count"] > 0) & (filled_ns > 0) & (filled_ns < lost["first_nak_ns"])
        row["spurious_naks"] = int(lost["nak_count"][is_spurious].sum())
        row["is_inferred"] = True
        row["problem"] = self._geometry.problem
        if self._control[gap_kernel.LOST_TRACK]:
            row["problem"] = "more gaps were open at once than can be followed"
        return row

    def _gaps_of(self, flow: int) -> Any:
        gaps = self._gaps[: int(self._control[gap_kernel.GAPS])]
        return gaps[gaps["flow"] == flow]

    def gaps(self, flow: int) -> Iterator[dict[str, Any]]:
        """The columns of GAPS behind the key, of one destination, as the gaps were noticed."""
        return (gap_row(gap) for gap in self._gaps_of(flow))


def gap_row(gap: Any) -> dict[str, Any]:
    """A gap of the kernel as columns of GAPS."""
    length = int(gap["end"] - gap["start"])
    asked, filled = int(gap["first_nak_ns"]), int(gap["filled_ns"])
    is_whole = bool(gap["is_whole"])
    if is_whole:
        is_here = gap["cause"] == gap_kernel.BEFORE_CAPTURE
        came_by_itself = not asked or gap["late_bytes"] > 0
        came_late = is_here and gap["repaired_bytes"] == 0 and came_by_itself
        outcome = "reordered" if came_late else "repaired"
    else:
        outcome = "passed" if gap["passed_ns"] else "open"
    first_sign = int(gap["opened_ns"])
    return {
        "position": int(gap["start"]),
        "length": length,
        "cause": CAUSES[int(gap["cause"])],
        "outcome": outcome,
        "opened_ns": first_sign,
        "first_nak_ns": asked or None,
        "last_nak_ns": int(gap["last_nak_ns"]) or None,
        "nak_count": int(gap["nak_count"]),
        "resent_frames": int(gap["filled_frames"]),
        "resent_bytes": int(gap["filled_bytes"]),
        "over_filled_bytes": max(0, int(gap["filled_bytes"]) - length),
        "first_filled_ns": int(gap["first_filled_ns"]) or None,
        "repaired_ns": filled if is_whole else None,
        "passed_ns": int(gap["passed_ns"]) or None,
        "time_to_repair_ns": filled - first_sign if is_whole else None,
    }
