"""Compiled kernel that determines each frame's and each gap's outcome at one capture point.

    position   ----[==== first ====][ gap  ][==== first ====]        a frame beyond `hwm`: a gap
                                    [  gap, in pieces  ]              a NAK: a gap of the receiver
                                       [===] fills a piece of it      retransmitted, or late

Bytes of a gap were either lost before the capture point, or captured and then lost behind it, which
a NAK reveals. A gap ends when frames have filled all its pieces, or when a status message shows
that the receiver skipped it. Memory is bounded: pieces that no receiver can still wait for are
dropped.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import (
    NO_OUTCOME,
    classify_new_bytes,
    classify_old_bytes,
    record_frame,
)
from windtunnel.reports.analysis.kernels.gap_kernel import (
    BEFORE_CAPTURE,
    BEHIND_CAPTURE,
    BLOCKED,
    EVENTS,
    GAPS,
    PIECES,
    PIECES_BEFORE_CLEANUP,
    RECENT_GAPS,
    add_piece,
    drop_pieces,
    fill,
    first_missing,
    is_complete,
    open_gap,
)
from windtunnel.reports.analysis.streams.sending_order import UNKNOWN

FRAME, HEARTBEAT, NAK, STATUS = range(4)
"""Kinds of events."""


@kernel
def _on_nak(
    flow: int, state: Any, start: int, end: int, time_ns: int, gaps: Any, pieces: Any, control: Any
) -> None:
    state["naks"] += 1
    state["nak_bytes"] += end - start
    if end <= start:
        return
    last_matched = -1
    covered_to = start
    for index in range(max(0, control[GAPS] - RECENT_GAPS), control[GAPS]):
        gap = gaps[index]
        if gap["flow"] != flow or gap["start"] >= end or gap["end"] <= start:
            continue
        last_matched = index
        covered_to = max(covered_to, gap["end"])
        gap["nak_count"] += 1
        gap["last_nak_ns"] = time_ns
        if gap["first_nak_ns"] == 0:
            gap["first_nak_ns"] = time_ns
        if gap["remaining"] == 0 and gap["passed_ns"] == 0:
            requested_end = min(end, gap["end"])
            add_piece(index, max(start, gap["start"]), requested_end, gaps, pieces, control)
    if last_matched < 0:
        cause = BEHIND_CAPTURE
        order = state["order"]
        if state["is_known"] == 0 or end > state["hwm"]:
            # The originals may still arrive.
            cause, order = BEFORE_CAPTURE, UNKNOWN
        gap = open_gap(flow, state, start, end, time_ns, cause, order, gaps, pieces, control)
        gap["nak_count"], gap["first_nak_ns"], gap["last_nak_ns"] = 1, time_ns, time_ns
    elif covered_to < end <= state["hwm"] and gaps[last_matched]["cause"] == BEFORE_CAPTURE:
        # The receiver requests bytes behind the gap, too, although they arrived here: they were
        # lost behind the capture point, or refused.
        cause, order = BEHIND_CAPTURE, state["order"]
        gap = open_gap(flow, state, covered_to, end, time_ns, cause, order, gaps, pieces, control)
        gap["nak_count"], gap["first_nak_ns"], gap["last_nak_ns"] = 1, time_ns, time_ns
    elif covered_to < end:
        gap = gaps[last_matched]
        gap["is_whole"] = 0
        if end > state["hwm"]:
            # Originals that were sent after the frame that revealed the gap may still arrive.
            gap["order"] = UNKNOWN
        add_piece(last_matched, max(gap["end"], start), end, gaps, pieces, control)
        gap["end"] = end


@kernel
def _on_status(
    flow: int, position: int, time_ns: int, gaps: Any, pieces: Any, control: Any
) -> None:
    for index in range(max(0, control[GAPS] - RECENT_GAPS), control[GAPS]):
        gap = gaps[index]
        if gap["flow"] == flow and gap["passed_ns"] == 0 and gap["end"] <= position:
            gap["passed_ns"] = time_ns
    drop_pieces(position, flow, gaps, pieces, control)


@kernel
def _advance(
    flow: int, state: Any, start: int, end: int, time_ns: int, order: int, gaps: Any, pieces: Any,
    control: Any,
) -> bool:  # fmt: skip
    """Advance the high-water mark to the end of a frame or heartbeat. Return whether it moved."""
    if state["is_known"] == 0:
        state["is_known"], state["low"], state["hwm"] = 1, start, end
        state["rebuilt"] = start
        return True
    hwm = state["hwm"]
    if start > hwm and is_complete(flow, hwm, start, gaps, pieces, control):
        cause = BEFORE_CAPTURE
        open_gap(flow, state, hwm, start, time_ns, cause, order, gaps, pieces, control)
    if end > hwm:
        state["hwm"] = end
    return bool(end > hwm)


@kernel
def follow(
    times_ns: Any, kinds: Any, flow_of: Any, starts: Any, ends: Any, orders: Any,
    is_believed: Any, packets: Any, reach_bytes: int, outcomes: Any, flows: Any, gaps: Any,
    pieces: Any, control: Any,
) -> None:  # fmt: skip
    """Determine a stream's gaps and frame outcomes from its events, in capture order.

    Shapes:  times_ns, starts, ends, orders, packets int64[n]; kinds uint8[n]; flow_of int32[n];
             is_believed bool[n]; outcomes EVENT_OUTCOME[n], written; flows FLOW[f]; gaps GAP[g],
             of which the last is never used; pieces PIECE[p]; control int64[CONTROL_LENGTH]; all
             but the events persist between calls
    Units:   positions in bytes of the stream; a STATUS event spans from the consumption position to
             the end of the window; `orders` and `is_believed` as in `sending_order`
    """
    for index in range(len(kinds)):
        flow, kind, time_ns = flow_of[index], kinds[index], times_ns[index]
        start, end, order, packet = starts[index], ends[index], orders[index], packets[index]
        control[EVENTS] += 1
        state, result = flows[flow], outcomes[index]
        result["outcome"], result["is_new"], result["extent"], result["late_ns"] = (
            NO_OUTCOME,
            0,
            0,
            0,
        )
        if kind == NAK:
            _on_nak(flow, state, start, end, time_ns, gaps, pieces, control)
        elif kind == STATUS:
            state["status_messages"] += 1
            _on_status(flow, start, time_ns, gaps, pieces, control)
        elif kind == HEARTBEAT:
            _advance(flow, state, start, end, time_ns, order, gaps, pieces, control)
        else:
            state["arrivals"] += 1
            is_new = _advance(flow, state, start, end, time_ns, order, gaps, pieces, control)
            filled = -1
            if control[PIECES]:
                filled = fill(flow, state["arrivals"], start, end, time_ns, gaps, pieces, control)
            if is_new:
                outcome = classify_new_bytes(state, time_ns, order, is_believed[index], result)
            else:
                outcome, is_new = classify_old_bytes(
                    flow, state, start, end, time_ns, order, is_believed[index], packet, filled,
                    result, gaps, control,
                )  # fmt: skip
            record_frame(state, outcome, time_ns, order)
            result["outcome"], result["is_new"] = outcome, is_new
            state["frames"][outcome] += 1
            state["bytes"][outcome] += end - start
        if control[BLOCKED] != flow + 1:
            missing = first_missing(flow, state, gaps, pieces, control)
            state["rebuilt"] = max(state["rebuilt"], missing)
            # Until a piece is dropped, more pieces cannot move the first missing byte forward.
            control[BLOCKED] = flow + 1 if missing < state["hwm"] else 0
        if order > state["order"]:
            state["order"], state["packet"] = order, packet
        result["rebuilt"], result["high"] = state["rebuilt"], state["hwm"]
        if control[PIECES] > PIECES_BEFORE_CLEANUP:
            drop_pieces(state["hwm"] - reach_bytes, flow, gaps, pieces, control)
