"""A stream's gaps, their repair, and its frame outcomes at one vantage point.

    events of the stream, in capture order --> `repair_kernel` --> flows, gaps, outcomes

With a single vantage point, outcomes are inferred, and the flow is marked accordingly.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from windtunnel.reports.analysis.kernels import gap_kernel
from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import EVENT_OUTCOME, FLOW, LATE
from windtunnel.reports.analysis.reading.stream_events import (
    Events,
    grow,
    is_group,
    trim,
    with_room,
)
from windtunnel.reports.analysis.streams import sending_order
from windtunnel.reports.analysis.streams.geometry import Geometry
from windtunnel.reports.analysis.streams.repair_tables import FRAME_OUTCOME_NAMES, GAP_CAUSES

GAPS_MAX = 1 << 19
"""Maximum number of gaps in an analysis, per vantage point. Each takes about 3 kB in its tables."""
GAPS_OF_STREAM_MIN = 64
"""Number of gaps that each stream may have, however many streams there are."""
_ALL_PIECES = np.zeros(1 << 16, dtype=gap_kernel.PIECE)
"""Shared memory for the missing pieces of the stream that is being processed. Between batches each
stream keeps only the pieces that it uses, because a capture may contain very many streams.
"""
_HIGHEST = np.iinfo(np.int64).max


class RepairWalk:
    """Tracks the gaps of a stream at one vantage point. `feed` it with events in capture order."""

    def __init__(self, geometry: Geometry, max_gaps: int) -> None:
        self._geometry, self._max_gaps = geometry, max_gaps
        self._senders = np.zeros(1, dtype=sending_order.SENDER)
        self._flows = np.zeros(1, dtype=FLOW)
        self._consumed: dict[int, dict[int, int]] = {}
        self._gaps = np.zeros(1, dtype=gap_kernel.GAP)
        self._pieces = np.zeros(0, dtype=gap_kernel.PIECE)
        self._control = np.zeros(gap_kernel.CONTROL_LENGTH, dtype=np.int64)

    def feed(self, events: Events, destinations: list[str]) -> Any:
        """Process a batch of events, and return the outcome of each event as EVENT_OUTCOME[n].

        `destinations` has the destination of each flow so far.
        """
        flow_count = len(destinations)
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
        known = int(self._control[gap_kernel.GAPS])
        gap_count = min(self._max_gaps, known + count)
        self._gaps = with_room(self._gaps, known, gap_count + 1 - known)
        kernel.follow(
            events.times_ns,
            events.kinds,
            events.flow_of,
            self._passed_positions(events, destinations),
            events.ends,
            orders,
            is_believed,
            events.packets,
            self._geometry.term_length,
            outcomes,
            self._flows,
            self._gaps[: gap_count + 1],
            self._expanded_pieces(),
            self._control,
        )
        self._gaps = trim(self._gaps, int(self._control[gap_kernel.GAPS]))
        self._pieces = _ALL_PIECES[: int(self._control[gap_kernel.PIECES])].copy()
        return outcomes

    def _expanded_pieces(self) -> Any:
        """Copy the stream's missing ranges to the start of an array that all streams share, and
        return the array.
        """
        _ALL_PIECES[: len(self._pieces)] = self._pieces
        return _ALL_PIECES

    def _passed_positions(self, events: Events, destinations: list[str]) -> Any:
        """Return a stream position for each event: the start of a frame or of a NAK's range, or the
        position that a status message reports as consumed. In a multicast group, this is the
        lowest of the positions that the receivers have consumed so far.
        """
        starts = events.starts
        status = np.flatnonzero(events.kinds == kernel.STATUS)
        for flow in np.unique(events.flow_of[status]).tolist():
            if not is_group(destinations[flow]):
                continue
            rows = status[events.flow_of[status] == flow]
            receivers, reported = events.receivers[rows], events.starts[rows]
            known = self._consumed.setdefault(flow, {})
            lowest = np.full(len(rows), _HIGHEST, dtype=np.int64)
            for receiver in sorted({*known, *receivers.tolist()}):
                consumed = np.where(receivers == receiver, reported, -_HIGHEST)
                consumed[0] = max(consumed[0], known.get(receiver, -_HIGHEST))
                consumed = np.maximum.accumulate(consumed)
                known[receiver] = int(consumed[-1])
                lowest = np.minimum(lowest, np.where(consumed == -_HIGHEST, _HIGHEST, consumed))
            starts = starts.copy()
            starts[rows] = lowest
        return starts

    def flow(self, index: int) -> dict[str, Any]:
        """Return one destination's row of the table FLOWS, without key columns."""
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
        skipped = gaps[~self._is_elsewhere(gaps, index)]
        row["gap_fills_min"], row["gap_fills_max"] = self._gap_fills(skipped, row["naks"])
        row["is_order_known"] = bool(sending_order.counts_packets(self._senders[index]))
        row["is_inferred"] = True
        row["problem"] = self._geometry.problem
        if self._control[gap_kernel.PIECES_OVERFLOWED]:
            row["problem"] = "too many gaps were open at once, so some were not tracked"
        if self._control[gap_kernel.GAPS_OVERFLOWED]:
            row["problem"] = (
                f"found more than {self._max_gaps:,} gaps: later ones were not tracked; "
                "raise the limit with --max-gaps"
            )
        return row

    def late_bytes(self, index: int) -> tuple[int, int]:
        """Return the minimum and maximum number of bytes of a flow that late originals carried
        after their gap had been filled.

        Before the sending order is known, a late original and its retransmit look alike.
        """
        flow = self._flows[index]
        late = int(flow["bytes"][LATE])
        if not flow["naks"]:
            return late, late
        return late - int(flow["guessed_late_bytes"]), late + int(flow["doubted_bytes"])

    def _gap_fills(self, gaps: Any, naks: int) -> tuple[int, int]:
        """Return the minimum and maximum number of gaps filled with padding by an unreliable
        receiver. A fill does not extend beyond the end of a term.
        """
        if naks:
            return 0, 0
        gaps = gaps[gaps["cause"] == gap_kernel.BEFORE_CAPTURE]
        term_length = self._geometry.term_length
        terms = (gaps["end"] - 1) // term_length - gaps["start"] // term_length + 1
        # A late frame in the middle of a gap leaves a piece on either side of it.
        pieces = np.maximum(gaps["filled_frames"] + (gaps["is_whole"] == 0), 1)
        is_passed = (gaps["passed_ns"] > 0) & (gaps["is_whole"] == 0)
        return int(is_passed.sum()), int((terms - 1 + pieces).sum())

    def _gaps_of(self, flow: int) -> Any:
        gaps = self._gaps[: int(self._control[gap_kernel.GAPS])]
        return gaps[gaps["flow"] == flow]

    def _is_elsewhere(self, gaps: Any, flow: int) -> Any:
        """Return a mask of a flow's gaps that a reliable receiver filled without using this
        flow.
        """
        is_skipped = (gaps["passed_ns"] > 0) & (gaps["is_whole"] == 0) & (gaps["nak_count"] == 0)
        if self._flows[flow]["naks"]:
            return is_skipped
        if is_skipped.any():
            others = [each for each in range(len(self._flows)) if each != flow]
            found = [self._contains(each, gaps["start"], gaps["end"]) for each in others]
            is_skipped &= np.any([np.zeros(len(gaps), dtype=np.bool_), *found], axis=0)
        return is_skipped

    def _contains(self, flow: int, starts: Any, ends: Any) -> Any:
        """Return a mask of the ranges that a flow contains completely."""
        state, gaps = self._flows[flow], self._gaps_of(flow)
        missing = gaps[(gaps["cause"] == gap_kernel.BEFORE_CAPTURE) & (gaps["is_whole"] == 0)]
        missing = missing[np.argsort(missing["start"], kind="stable")]
        reach = np.maximum.accumulate(np.append(-_HIGHEST, missing["end"]))
        before = np.searchsorted(missing["start"], ends, side="left")
        is_missing = reach[before] > starts
        return (state["low"] <= starts) & (ends <= state["hwm"]) & ~is_missing

    def gaps(self, flow: int, in_group: bool = False) -> Iterator[dict[str, Any]]:
        """Return one destination's rows of the table GAPS, without key columns, in order of
        detection.

        `in_group`: whether the destination is a multicast group.
        """
        is_uncertain = in_group and not sending_order.counts_packets(self._senders[flow])
        gaps = self._gaps_of(flow)
        for gap, is_elsewhere in zip(gaps, self._is_elsewhere(gaps, flow), strict=True):
            row = gap_row(gap, is_uncertain)
            yield {**row, "outcome": "elsewhere"} if is_elsewhere else row


NOT_LOST = ("reordered", "filled", "elsewhere")
"""Gap outcomes that do not show a loss."""


def is_lost(gap: dict[str, Any]) -> bool:
    """Return whether a gap's bytes were lost on the way to this vantage point."""
    return gap["cause"] == "before capture" and gap["outcome"] not in NOT_LOST


def is_requested(gap: dict[str, Any]) -> bool:
    """Return whether a NAK requested a gap's bytes although they had been captured here.

    They were lost, late or refused on the way to a receiver. In a multicast group, the receiver may
    not be behind this vantage point.
    """
    return gap["cause"] == "behind capture" and gap["outcome"] not in NOT_LOST


def lost_bytes(
    late: tuple[int, int], gaps: list[dict[str, Any]], in_group: bool
) -> tuple[int, int]:
    """Return the minimum and maximum number of bytes whose first transmission was lost.

    An original that arrives after its gap was filled was late and not lost. `late`: the minimum and
    maximum number of bytes in such originals. Bytes that filled a gap for the second time may be
    others.
    """
    lost = [gap for gap in gaps if is_lost(gap)]
    most = sum(max(0, gap["length"] - gap["late_bytes"]) for gap in lost)
    # In a group, retransmits for other receivers fill a gap again, not originals.
    filled_again = 0 if in_group else sum(gap["over_filled_bytes"] for gap in lost)
    return max(0, most - late[1] - filled_again), max(0, most - late[0])


def gap_row(gap: Any, is_uncertain: bool = False) -> dict[str, Any]:
    """Convert a compiled kernel's gap record to a row of the table GAPS.

    `is_uncertain`: whether another receiver may have requested the frames that filled the gap.
    """
    length = int(gap["end"] - gap["start"])
    first_nak_ns, filled_ns = int(gap["first_nak_ns"]), int(gap["filled_ns"])
    is_whole = bool(gap["is_whole"])
    is_local = gap["cause"] == gap_kernel.BEFORE_CAPTURE
    if is_whole:
        needed_no_nak = not first_nak_ns or gap["late_bytes"] > 0
        is_reordered = is_local and gap["repaired_bytes"] == 0 and needed_no_nak
        late = "filled" if is_uncertain else "reordered"
        outcome = late if is_reordered else "repaired"
    else:
        skipped = "repaired" if first_nak_ns else "passed"
        outcome = skipped if gap["passed_ns"] else "open"
    opened_ns = int(gap["opened_ns"])
    # Two receive queues may hand over packets in another order than that of their times.
    to_fill_ns = max(0, filled_ns - opened_ns) if is_whole else None
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
        "late_bytes": int(gap["late_bytes"]),
        "over_filled_bytes": max(0, int(gap["filled_bytes"]) - length),
        "first_filled_ns": int(gap["first_filled_ns"]) or None,
        "repaired_ns": filled_ns if is_whole else None,
        "passed_ns": int(gap["passed_ns"]) or None,
        "time_to_repair_ns": to_fill_ns if is_local else None,
        "time_to_resend_ns": max(0, int(gap["whole_ns"]) - opened_ns)
        if is_whole and not is_local
        else None,
    }
