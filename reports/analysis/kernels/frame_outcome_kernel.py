"""Compiled kernel that classifies frames as late, retransmitted or duplicated.

If the sending order is known, it determines the class. A frame that was sent before the frame that
revealed a gap, or together with it, is a late original. A frame that was sent after it is a
retransmit. A second arrival of the same packet is a duplicate. If the sending order is unknown,
frames that a receiver requested are classified as retransmits.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.reports.analysis.kernels.gap_kernel import (
    BEFORE_CAPTURE,
    DUPLICATE_DISTANCE_MAX,
    PACKETS_KEPT,
    gap_at,
    is_duplicate,
    remember_packet,
    was_skipped,
)
from windtunnel.reports.analysis.streams.sending_order import UNKNOWN

FIRST, RESENT, REORDERED, DUPLICATE, EARLIER, LATE = range(6)
"""Outcomes of a frame, in this order: not seen before; retransmitted; an original that arrived late
and filled a gap; a copy of a frame seen before; a position before the first frame of this capture;
an original that arrived after its gap had been filled, or skipped by the receiver.
"""
OUTCOME_COUNT = 6
RECENT_FRAMES = 64
"""Number of recent frames kept, to determine how many of them overtook a new frame."""
NO_OUTCOME = 255

EVENT_OUTCOME = np.dtype(
    [
        ("outcome", "u1"),
        ("is_new", "u1"),  # the frame's bytes were captured for the first time
        ("extent", "<i4"),  # if reordered: number of frames since the first one that was sent later
        # If reordered: time since the first frame that was sent later. Otherwise: time since the
        # gap opened.
        ("late_ns", "<i8"),
        ("rebuilt", "<i8"),  # contiguous position after the event
        ("high", "<i8"),  # `hwm` after the event
    ]
)
"""The kernel's result for an event. `extent` and `late_ns`: RFC 4737, sections 4.2.1 and 4.3."""

FLOW = np.dtype(
    [
        ("low", "<i8"),  # position of the first byte seen
        ("hwm", "<i8"),  # end of the highest byte seen, or announced by a heartbeat
        ("is_known", "<i8"),  # whether `low` and `hwm` are set
        ("rebuilt", "<i8"),  # position up to which everything was received or skipped
        ("arrivals", "<i8"),  # number of frames so far
        ("places", "<i8"),  # frames, excluding copies, which RFC 4737 does not number
        ("frames", "<i8", (OUTCOME_COUNT,)),  # by outcome
        (
            "bytes",
            "<i8",
            (OUTCOME_COUNT,),
        ),  # by outcome, including headers and padding
        ("naks", "<i8"),
        ("nak_bytes", "<i8"),
        ("status_messages", "<i8"),
        ("reordered_ns_max", "<i8"),  # largest `late_ns` of a reordered frame
        ("extent_max", "<i8"),  # largest `extent` of a reordered frame
        ("extent_sum", "<i8"),
        (
            "alone_bytes",
            "<i8",
        ),  # bytes retransmitted outside any gap: their NAK is missing
        (
            "guessed_late_bytes",
            "<i8",
        ),  # bytes of frames classified as late that may be retransmits
        (
            "doubted_bytes",
            "<i8",
        ),  # bytes that arrived again after a frame that may have been a late original
        ("order", "<i8"),  # sending order of the packet that was sent last
        ("packet", "<i8"),  # number of that packet
        (
            "recent_orders",
            "<i8",
            (RECENT_FRAMES,),
        ),  # sending orders by arrival number
        ("recent_ns", "<i8", (RECENT_FRAMES,)),
    ]
)


@kernel
def _is_newest(state: Any, order: int, packet: int) -> bool:
    """Return whether a packet was sent after all packets captured before it. Returns False if the
    sending order is unknown.
    """
    if state["order"] == UNKNOWN:
        return False
    return bool(order > state["order"] or packet == state["packet"])


@kernel
def _outcome_without_order(
    flow: int, state: Any, start: int, end: int, gaps: Any, control: Any
) -> int:
    """Classify a frame that filled no gap, without knowing the order in which packets were sent.

    A frame directly after the one that filled its gap is a copy, if this flow has had copies
    before. In a gap behind the capture point no original is late, because all of them were
    captured.
    """
    index = gap_at(flow, start, end, False, gaps, control)
    if index < 0:
        return DUPLICATE
    is_adjacent = state["arrivals"] - gaps[index]["filled_at"] <= DUPLICATE_DISTANCE_MAX
    if is_adjacent and state["frames"][DUPLICATE] > 0:
        return DUPLICATE
    return LATE if gaps[index]["cause"] == BEFORE_CAPTURE else RESENT


@kernel
def _was_missing(gap: Any) -> bool:
    """Return whether the bytes that filled a gap last had been missing. Bytes that were requested
    after they had already arrived had not.
    """
    return bool(gap["nak_count"] == 0 or gap["filled_bytes"] <= gap["end"] - gap["start"])


@kernel
def _outcome_by_order(
    state: Any, gap: Any, has_filled: bool, order: int, packet: int, start: int
) -> int:
    """Classify a frame within a gap by the order in which packets were sent."""
    if is_duplicate(gap, order, packet, start):
        return DUPLICATE
    if order > gap["order"]:
        # Two retransmits may arrive in any order. If there are many packets, only the last ones are
        # kept.
        is_certain = has_filled or gap["seen"] <= PACKETS_KEPT or _is_newest(state, order, packet)
        return RESENT if is_certain else DUPLICATE
    if gap["cause"] != BEFORE_CAPTURE:
        return DUPLICATE
    if has_filled:
        # A NAK may have requested the bytes once more after a retransmit had filled them.
        return REORDERED if _was_missing(gap) else LATE
    return LATE if gap["repaired_bytes"] or was_skipped(gap) else DUPLICATE


@kernel
def _record_reordering(state: Any, result: Any, extent: int) -> None:
    result["extent"] = extent
    state["reordered_ns_max"] = max(state["reordered_ns_max"], result["late_ns"])
    state["extent_max"] = max(state["extent_max"], extent)
    state["extent_sum"] += extent


@kernel
def _first_ahead(state: Any, order: int) -> int:
    """Return how many frames ago the first frame that overtook this frame arrived, or 0 if no frame
    overtook it.
    """
    for behind in range(min(state["places"], RECENT_FRAMES), 0, -1):
        if state["recent_orders"][(state["places"] - behind) % RECENT_FRAMES] > order:
            return behind
    return 0


@kernel
def _arrival_ns(state: Any, behind: int) -> int:
    """Return the arrival time of the frame that arrived `behind` frames ago."""
    return int(state["recent_ns"][(state["places"] - behind) % RECENT_FRAMES])


@kernel
def classify_new_bytes(state: Any, time_ns: int, order: int, is_believed: bool, result: Any) -> int:
    """Return the outcome of a frame above the high-water mark: first or reordered.

    A frame that was sent later, such as its retransmit, may have arrived earlier.
    """
    if not is_believed or order >= state["order"]:
        return FIRST
    behind = _first_ahead(state, order)
    if behind == 0:
        return FIRST
    result["late_ns"] = time_ns - _arrival_ns(state, behind)
    _record_reordering(state, result, behind)
    return REORDERED


@kernel
def record_frame(state: Any, outcome: int, time_ns: int, order: int) -> None:
    """Record the arrival of a frame after its classification."""
    if outcome != DUPLICATE:
        classify_old_bytes = state["places"] % RECENT_FRAMES
        state["recent_orders"][classify_old_bytes], state["recent_ns"][classify_old_bytes] = (
            order,
            time_ns,
        )
        state["places"] += 1


@kernel
def _record_fill(
    outcome: int, state: Any, gap: Any, time_ns: int, order: int, is_order_known: bool, result: Any
) -> bool:
    """Record a frame that filled part of a gap. Return whether its bytes are captured for the first
    time.

    A retransmit may have arrived before it, even before the frame that revealed the gap.
    """
    is_missing = _was_missing(gap)
    if is_missing and outcome == RESENT:
        gap["repaired_bytes"] += gap["filled_now"]
    elif is_missing:
        gap["late_bytes"] += gap["filled_now"]
    result["late_ns"] = time_ns - gap["opened_ns"]
    if outcome == REORDERED:
        extent = state["places"] - gap["opened_at"]
        behind = _first_ahead(state, order) if is_order_known else 0
        if behind > extent:
            extent = behind
            result["late_ns"] = time_ns - _arrival_ns(state, behind)
        _record_reordering(state, result, extent)
    return bool(gap["cause"] == BEFORE_CAPTURE and is_missing)


@kernel
def classify_old_bytes(
    flow: int, state: Any, start: int, end: int, time_ns: int, order: int, is_believed: bool,
    packet: int, filled: int, result: Any, gaps: Any, control: Any,
) -> tuple[int, bool]:  # fmt: skip
    """Return the outcome of a frame below the high-water mark, and whether its bytes are new.

    Bytes are new if they had not been captured before. `filled` is the index of the gap that the
    frame filled in part, or -1. For the other parameters see `repair_kernel.follow`.
    """
    if filled < 0 and end <= state["low"]:
        return EARLIER, True
    at = filled
    if at < 0 and is_believed:
        at = gap_at(flow, start, end, True, gaps, control)
    if is_believed and at < 0:
        if not _is_newest(state, order, packet):
            return DUPLICATE, False
        state["alone_bytes"] += end - start
        return RESENT, False
    is_order_known = is_believed and gaps[at]["order"] != UNKNOWN
    if is_order_known:
        outcome = _outcome_by_order(state, gaps[at], filled >= 0, order, packet, start)
    elif filled < 0:
        outcome = _outcome_without_order(flow, state, start, end, gaps, control)
        if outcome == LATE:
            state["guessed_late_bytes"] += end - start
    else:
        outcome = RESENT if gaps[filled]["nak_count"] else REORDERED
        if outcome == RESENT:
            gaps[filled]["guessed_bytes"] += gaps[filled]["filled_now"]
    if is_order_known and filled < 0 and outcome == RESENT:
        doubted = min(end - start, gaps[at]["guessed_bytes"])
        gaps[at]["guessed_bytes"] -= doubted
        state["doubted_bytes"] += doubted
    if at >= 0 and order != UNKNOWN:
        remember_packet(gaps[at], order, packet, start, end)
    if filled < 0 or outcome == DUPLICATE:
        return outcome, False
    is_new = _record_fill(outcome, state, gaps[filled], time_ns, order, is_order_known, result)
    return outcome, is_new
