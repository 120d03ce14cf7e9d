"""What became of each frame of a stream at one place, and of each gap, one after the other.

    position   ----[==== first ====][ hole ][==== first ====]        a frame behind `hwm`: a hole
                                    [  gap, in pieces  ]              a NAK: a gap of the receiver
                                       [===] fills a piece of it      sent again, or late

A hole never came by here; a NAK for bytes that did come by tells of a loss behind this place. A gap
ends when frames have filled all its pieces, or when a status message tells that the receiver went
on without. Memory is bounded: pieces that no receiver can still wait for are given up.
"""

from typing import Any

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import (
    NO_FATE,
    new_bytes,
    note_frame,
    place,
)
from windtunnel.reports.analysis.kernels.gap_kernel import (
    BEFORE_CAPTURE,
    BEHIND_CAPTURE,
    EVENTS,
    GAPS,
    PIECES,
    PIECES_MANY,
    RECENT,
    add_piece,
    fill,
    first_hole,
    give_up_pieces,
    is_all_here,
    open_gap,
)
from windtunnel.reports.analysis.streams.sending_order import UNKNOWN

FRAME, HEARTBEAT, NAK, STATUS = range(4)
"""Kinds of events."""


@allocating_kernel
def _on_nak(
    flow: int, state: Any, start: int, end: int, time_ns: int, gaps: Any, pieces: Any, control: Any
) -> None:
    state["naks"] += 1
    state["nak_bytes"] += end - start
    if end <= start:
        return
    last_matched = -1
    covered_to = start
    for index in range(max(0, control[GAPS] - RECENT), control[GAPS]):
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
            again_end = min(end, gap["end"])
            add_piece(index, max(start, gap["start"]), again_end, gaps, pieces, control)
    if last_matched < 0:
        cause = BEHIND_CAPTURE
        order = state["order"]
        if state["is_known"] == 0 or end > state["hwm"]:
            # Its originals may still be on their way.
            cause, order = BEFORE_CAPTURE, UNKNOWN
        gap = open_gap(flow, state, start, end, time_ns, cause, order, gaps, pieces, control)
        gap["nak_count"], gap["first_nak_ns"], gap["last_nak_ns"] = 1, time_ns, time_ns
    elif covered_to < end:
        gap = gaps[last_matched]
        gap["is_whole"] = 0
        if end > state["hwm"]:
            # Originals that were sent behind the frame that showed the gap may be on their way.
            gap["order"] = UNKNOWN
        add_piece(last_matched, max(gap["end"], start), end, gaps, pieces, control)
        gap["end"] = end


@allocating_kernel
def _on_status(
    flow: int, position: int, time_ns: int, gaps: Any, pieces: Any, control: Any
) -> None:
    for index in range(max(0, control[GAPS] - RECENT), control[GAPS]):
        gap = gaps[index]
        if gap["flow"] == flow and gap["passed_ns"] == 0 and gap["end"] <= position:
            gap["passed_ns"] = time_ns
    give_up_pieces(position, flow, gaps, pieces, control)


@allocating_kernel
def _advance(
    flow: int, state: Any, start: int, end: int, time_ns: int, order: int, gaps: Any, pieces: Any,
    control: Any,
) -> bool:  # fmt: skip
    """Move `hwm` to a frame's or heartbeat's end; returns whether it told anything new."""
    if state["is_known"] == 0:
        state["is_known"], state["low"], state["hwm"] = 1, start, end
        state["rebuilt"] = start
        return True
    hwm = state["hwm"]
    if start > hwm and is_all_here(flow, hwm, start, gaps, pieces, control):
        cause = BEFORE_CAPTURE
        open_gap(flow, state, hwm, start, time_ns, cause, order, gaps, pieces, control)
    if end > hwm:
        state["hwm"] = end
    return bool(end > hwm)


@allocating_kernel
def follow(
    times_ns: Any, kinds: Any, flow_of: Any, starts: Any, ends: Any, orders: Any,
    is_believed: Any, packets: Any, reach_bytes: int, told: Any, flows: Any, gaps: Any, pieces: Any,
    control: Any,
) -> None:  # fmt: skip
    """Follow a stream's events in the order of capture.

    Shapes:  times_ns, starts, ends, orders, packets int64[n]; kinds uint8[n]; flow_of int32[n];
             is_believed bool[n]; told TOLD[n], written; flows FLOW[f]; gaps GAP[g] with n free;
             pieces PIECE[p]; control int64[CONTROLS]; all but the events are kept from call to call
    Units:   positions in bytes of the stream; a STATUS event goes from the consumed position to the
             end of the window; `orders` and `is_believed` as of `sending_order`
    """
    for index in range(len(kinds)):
        flow, kind, time_ns = flow_of[index], kinds[index], times_ns[index]
        start, end, order, packet = starts[index], ends[index], orders[index], packets[index]
        control[EVENTS] += 1
        state, about = flows[flow], told[index]
        about["fate"], about["is_new"], about["extent"], about["late_ns"] = NO_FATE, 0, 0, 0
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
                fate = new_bytes(state, time_ns, order, is_believed[index], about)
            else:
                fate, is_new = place(
                    flow, state, start, end, time_ns, order, is_believed[index], packet, filled,
                    about, gaps, control,
                )  # fmt: skip
            note_frame(state, fate, time_ns, order)
            about["fate"], about["is_new"] = fate, is_new
            state["frames"][fate] += 1
            state["bytes"][fate] += end - start
        state["rebuilt"] = max(state["rebuilt"], first_hole(flow, state, gaps, pieces, control))
        if order > state["order"]:
            state["order"], state["packet"] = order, packet
        about["rebuilt"], about["high"] = state["rebuilt"], state["hwm"]
        if control[PIECES] > PIECES_MANY:
            give_up_pieces(state["hwm"] - reach_bytes, flow, gaps, pieces, control)
