"""Gaps, their repair, and frame outcomes of a stream at one vantage point.

    events of the stream, in capture order --> `repair_kernel` --> flows, gaps, outcomes

With a single vantage point, outcomes are inferred, and the flow is marked accordingly.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.kernels import gap_kernel
from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import EVENT_OUTCOME, FLOW
from windtunnel.reports.analysis.reading.stream_events import Events, grow
from windtunnel.reports.analysis.streams import sending_order
from windtunnel.reports.analysis.streams.geometry import Geometry

FRAME_OUTCOME_NAMES = ("first", "resent", "reordered", "duplicate", "earlier", "late")
KEY = [
    ("vantage_point", pa.string()),
    ("session_id", pa.int32()),
    ("stream_id", pa.int32()),
    ("destination", pa.string()),
]
"""The first columns of every table about flows."""

FLOWS = pa.schema(
    [
        *KEY,
        *((f"{name}_frames", pa.int64()) for name in FRAME_OUTCOME_NAMES),
        *((f"{name}_bytes", pa.int64()) for name in FRAME_OUTCOME_NAMES),
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
"""Bytes are stream bytes, including headers and padding. `messages`: complete messages.
`rebuilt_position`: end of the bytes that were all received or skipped. `spurious_naks`: NAKs for
bytes that had been captured before the first NAK. Reordering ratio and extents follow RFC 4737 and
exclude retransmits. `loss_amplification`: retransmitted bytes per missing byte, over all gaps that
were seen or requested here; null if there are none."""
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
"""`time_to_repair_ns`: from the first sign of the gap, a later frame or a NAK, to the last frame
that filled it. `over_filled_bytes`: bytes that arrived after the gap had been filled."""

GAP_CAUSES = ("before capture", "behind capture")
GAP_OUTCOMES = ("repaired", "reordered", "passed", "open")
"""Outcomes of a gap: filled, at least partly by retransmits; filled by late originals alone;
skipped by the receiver, which an unreliable subscription does; incomplete at the end of the
capture."""

_PIECES_MAX = 1 << 16


class RepairWalk:
    """Tracks the gaps of a stream at one vantage point. `feed` it with events in capture order."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._senders = np.zeros(1, dtype=sending_order.SENDER)
        self._flows = np.zeros(1, dtype=FLOW)
        self._gaps = np.zeros(1 << 10, dtype=gap_kernel.GAP)
        self._pieces = np.zeros(_PIECES_MAX, dtype=gap_kernel.PIECE)
        self._control = np.zeros(gap_kernel.CONTROL_LENGTH, dtype=np.int64)

    def feed(self, events: Events, flow_count: int) -> Any:
        """Process events and return their outcomes as EVENT_OUTCOME[n]."""
        count = len(events.rows)
        outcomes = np.zeros(count, dtype=EVENT_OUTCOME)
        orders, is_believed = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
        self._senders = grow(self._senders, flow_count)
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
        self._flows = grow(self._flows, flow_count)
        self._gaps = grow(self._gaps, int(self._control[gap_kernel.GAPS]) + count)
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
            outcomes,
            self._flows,
            self._gaps,
            self._pieces,
            self._control,
        )
        return outcomes

    def flow(self, index: int) -> dict[str, Any]:
        """Return a row of FLOWS without key columns, for one destination."""
        flow = self._flows[index]
        gaps = self._gaps_of(index)
        row: dict[str, Any] = {}
        for outcome, name in enumerate(FRAME_OUTCOME_NAMES):
            row[f"{name}_frames"] = int(flow["frames"][outcome])
            row[f"{name}_bytes"] = int(flow["bytes"][outcome])
        for name in ("naks", "nak_bytes", "status_messages", "reordered_ns_max"):
            row[name] = int(flow[name])
        row["high_position"] = int(flow["hwm"])
        row["rebuilt_position"] = int(flow["rebuilt"])
        reordered = row["reordered_frames"]
        received = row["first_frames"] + reordered
        row["reordered_ratio"] = reordered / received if received else None
        row["reordered_extent_max"] = int(flow["extent_max"])
        row["reordered_extent_mean"] = int(flow["extent_sum"]) / reordered if reordered else None
        lost = gaps[(gaps["nak_count"] > 0) | (gaps["repaired_bytes"] > 0)]
        missing = int(np.maximum(lost["end"] - lost["start"] - lost["late_bytes"], 0).sum())
        requested_bytes = row["resent_bytes"] - int(flow["alone_bytes"])
        row["loss_amplification"] = requested_bytes / missing if missing else None
        filled_ns = lost["first_filled_ns"]
        is_spurious = (lost["nak_count"] > 0) & (filled_ns > 0) & (filled_ns < lost["first_nak_ns"])
        row["spurious_naks"] = int(lost["nak_count"][is_spurious].sum())
        row["is_inferred"] = True
        row["problem"] = self._geometry.problem
        if self._control[gap_kernel.PIECES_OVERFLOWED]:
            row["problem"] = "too many gaps were open at once, so some were not tracked"
        return row

    def _gaps_of(self, flow: int) -> Any:
        gaps = self._gaps[: int(self._control[gap_kernel.GAPS])]
        return gaps[gaps["flow"] == flow]

    def gaps(self, flow: int) -> Iterator[dict[str, Any]]:
        """Return the rows of GAPS for one destination, without key columns, in order of
        detection."""
        return (gap_row(gap) for gap in self._gaps_of(flow))


def gap_row(gap: Any) -> dict[str, Any]:
    """Convert a gap record of the kernel to a row of GAPS."""
    length = int(gap["end"] - gap["start"])
    first_nak_ns, filled_ns = int(gap["first_nak_ns"]), int(gap["filled_ns"])
    is_whole = bool(gap["is_whole"])
    if is_whole:
        is_local = gap["cause"] == gap_kernel.BEFORE_CAPTURE
        needed_no_nak = not first_nak_ns or gap["late_bytes"] > 0
        is_reordered = is_local and gap["repaired_bytes"] == 0 and needed_no_nak
        outcome = "reordered" if is_reordered else "repaired"
    else:
        outcome = "passed" if gap["passed_ns"] else "open"
    opened_ns = int(gap["opened_ns"])
    return {
        "position": int(gap["start"]),
        "length": length,
        "cause": GAP_CAUSES[int(gap["cause"])],
        "outcome": outcome,
        "opened_ns": opened_ns,
        "first_nak_ns": first_nak_ns or None,
        "last_nak_ns": int(gap["last_nak_ns"]) or None,
        "nak_count": int(gap["nak_count"]),
        "resent_frames": int(gap["filled_frames"]),
        "resent_bytes": int(gap["filled_bytes"]),
        "over_filled_bytes": max(0, int(gap["filled_bytes"]) - length),
        "first_filled_ns": int(gap["first_filled_ns"]) or None,
        "repaired_ns": filled_ns if is_whole else None,
        "passed_ns": int(gap["passed_ns"]) or None,
        "time_to_repair_ns": filled_ns - opened_ns if is_whole else None,
    }
