"""What became of each frame of a stream at one place, and of each gap, one after the other.

    position   ----[==== first ====][ hole ][==== first ====]        a frame behind `hwm`: a hole
                                    [  gap, in pieces  ]              a NAK: a gap of the receiver
                                       [===] fills a piece of it      sent again, or late

A hole never came by here; a NAK for bytes that did come by tells of a loss behind this place. A gap
ends when frames have filled all its pieces, or when a status message tells that the receiver went
on without. Memory is bounded: pieces that no receiver can still wait for are given up.

This module imports no other of its package: compiled kernels are cached by what they import from
the harness.
"""

from typing import Any

import numpy as np

from harness.kernel import kernel

FRAME, HEARTBEAT, NAK, STATUS = range(4)
"""Kinds of events."""

FIRST, RESENT, REORDERED, DUPLICATE, EARLIER = range(5)
"""Fates of a frame: never seen before; asked for by a NAK; in a hole and not asked for; seen before
and not asked for; before the first that this capture holds."""
NO_FATE = 255

BEFORE_CAPTURE, BEHIND_CAPTURE = range(2)
"""Where the bytes of a gap were lost: they never came by here, or they did."""

FLOW = np.dtype(
    [
        ("low", "<i8"),  # position of the first byte seen
        ("hwm", "<i8"),  # behind the highest byte seen or told of by a heartbeat
        ("is_known", "<i8"),  # whether those are
        ("frames", "<i8", (5,)),  # by fate
        ("bytes", "<i8", (5,)),  # by fate, of the stream, headers and padding included
        ("messages", "<i8"),  # whose last frame was seen
        ("naks", "<i8"),
        ("nak_bytes", "<i8"),
        ("status_messages", "<i8"),
        ("reordered_ns_max", "<i8"),  # the longest that a reordered frame came behind its hole
    ]
)
GAP = np.dtype(
    [
        ("flow", "<i8"),
        ("start", "<i8"),
        ("end", "<i8"),
        ("remaining", "<i8"),  # bytes in pieces
        ("is_whole", "<i8"),  # all of it was filled, at least once
        ("cause", "<i8"),
        ("opened_ns", "<i8"),
        ("first_nak_ns", "<i8"),  # 0 if nobody asked
        ("last_nak_ns", "<i8"),
        ("nak_count", "<i8"),
        ("filled_frames", "<i8"),
        ("filled_by", "<i8"),  # number of the event that filled last
        ("filled_bytes", "<i8"),
        ("filled_ns", "<i8"),  # when the last piece was; 0 if none was
        ("passed_ns", "<i8"),  # when a status message told a position behind it; 0 if none did
    ]
)
PIECE = np.dtype([("gap", "<i8"), ("start", "<i8"), ("end", "<i8")])

GAPS, PIECES, LOST_TRACK, EVENTS = range(4)
"""Counts of the control array: gaps and pieces in use, pieces without room, events so far."""
CONTROLS = 4
RECENT = 512
"""Gaps that a NAK or a status message may still belong to."""
PIECES_MANY = 4_096
"""From so many on, those out of any receiver's reach are given up."""


@kernel
def _add_piece(gap_index: int, start: int, end: int, gaps: Any, pieces: Any, control: Any) -> None:
    if start >= end:
        return
    if control[PIECES] == len(pieces):
        control[LOST_TRACK] += 1
        return
    piece = pieces[control[PIECES]]
    piece["gap"], piece["start"], piece["end"] = gap_index, start, end
    gaps[gap_index]["remaining"] += end - start
    control[PIECES] += 1


@kernel
def _drop_piece(index: int, gaps: Any, pieces: Any, control: Any) -> None:
    piece = pieces[index]
    gaps[piece["gap"]]["remaining"] -= piece["end"] - piece["start"]
    control[PIECES] -= 1
    last = pieces[control[PIECES]]
    piece["gap"], piece["start"], piece["end"] = last["gap"], last["start"], last["end"]


@kernel
def _open_gap(
    flow: int, start: int, end: int, time_ns: int, cause: int, gaps: Any, pieces: Any, control: Any
) -> Any:
    index = control[GAPS]
    control[GAPS] += 1
    gap = gaps[index]
    gap["flow"], gap["start"], gap["end"], gap["remaining"] = flow, start, end, 0
    gap["cause"], gap["opened_ns"], gap["is_whole"] = cause, time_ns, 0
    gap["first_nak_ns"], gap["last_nak_ns"], gap["nak_count"] = 0, 0, 0
    gap["filled_frames"], gap["filled_bytes"] = 0, 0
    gap["filled_ns"], gap["passed_ns"], gap["filled_by"] = 0, 0, 0
    _add_piece(index, start, end, gaps, pieces, control)
    return gap


@kernel
def _give_up_pieces(position: int, flow: int, gaps: Any, pieces: Any, control: Any) -> None:
    """Drop the pieces of a flow that end at a position or before it."""
    index = 0
    while index < control[PIECES]:
        piece = pieces[index]
        if gaps[piece["gap"]]["flow"] == flow and piece["end"] <= position:
            _drop_piece(index, gaps, pieces, control)
        else:
            index += 1


@kernel
def _fill(
    flow: int, start: int, end: int, time_ns: int, gaps: Any, pieces: Any, control: Any
) -> int:
    """Fill pieces; returns the index of a gap that was touched, or -1.

    Of several it is one that was asked for, then one whose bytes are new here, then the oldest.
    """
    touched, touched_rank = -1, -1
    index = 0
    while index < control[PIECES]:
        piece = pieces[index]
        gap_index = piece["gap"]
        gap = gaps[gap_index]
        piece_start, piece_end = piece["start"], piece["end"]
        if gap["flow"] != flow or piece_start >= end or piece_end <= start:
            index += 1
            continue
        _drop_piece(index, gaps, pieces, control)
        _add_piece(gap_index, piece_start, start, gaps, pieces, control)
        _add_piece(gap_index, end, piece_end, gaps, pieces, control)
        gap["filled_bytes"] += min(piece_end, end) - max(piece_start, start)
        gap["filled_ns"] = time_ns
        if gap["remaining"] == 0:
            gap["is_whole"] = 1
        if gap["filled_by"] != control[EVENTS]:
            gap["filled_by"] = control[EVENTS]
            gap["filled_frames"] += 1
        rank = 2 * (gap["nak_count"] > 0) + (gap["cause"] == BEFORE_CAPTURE)
        if rank > touched_rank or (rank == touched_rank and gap_index < touched):
            touched, touched_rank = gap_index, rank
    return int(touched)


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
            _add_piece(index, max(start, gap["start"]), again_end, gaps, pieces, control)
    if last_matched < 0:
        cause = BEHIND_CAPTURE
        if state["is_known"] == 0 or end > state["hwm"]:
            cause = BEFORE_CAPTURE
        gap = _open_gap(flow, start, end, time_ns, cause, gaps, pieces, control)
        gap["nak_count"], gap["first_nak_ns"], gap["last_nak_ns"] = 1, time_ns, time_ns
    elif covered_to < end:
        gap = gaps[last_matched]
        gap["is_whole"] = 0
        _add_piece(last_matched, max(gap["end"], start), end, gaps, pieces, control)
        gap["end"] = end


@kernel
def _on_status(
    flow: int, position: int, time_ns: int, gaps: Any, pieces: Any, control: Any
) -> None:
    for index in range(max(0, control[GAPS] - RECENT), control[GAPS]):
        gap = gaps[index]
        if gap["flow"] == flow and gap["passed_ns"] == 0 and gap["end"] <= position:
            gap["passed_ns"] = time_ns
    _give_up_pieces(position, flow, gaps, pieces, control)


@kernel
def _advance(
    flow: int, state: Any, start: int, end: int, time_ns: int, gaps: Any, pieces: Any, control: Any
) -> bool:
    """Move `hwm` to a frame's or heartbeat's end; returns whether it told anything new."""
    if state["is_known"] == 0:
        state["is_known"], state["low"], state["hwm"] = 1, start, end
        return True
    hwm = state["hwm"]
    if start > hwm and _fill_nothing(flow, hwm, start, gaps, pieces, control):
        _open_gap(flow, hwm, start, time_ns, BEFORE_CAPTURE, gaps, pieces, control)
    if end > hwm:
        state["hwm"] = end
    return bool(end > hwm)


@kernel
def _fill_nothing(flow: int, start: int, end: int, gaps: Any, pieces: Any, control: Any) -> bool:
    """Whether no open piece lies in a range: a NAK may have told of a hole before a frame did."""
    for index in range(control[PIECES]):
        piece = pieces[index]
        if gaps[piece["gap"]]["flow"] == flow and piece["start"] < end and piece["end"] > start:
            return False
    return True


@kernel
def _fate(
    flow: int, state: Any, start: int, end: int, time_ns: int, gaps: Any, pieces: Any, control: Any
) -> tuple[int, bool]:
    """Fate of a frame, and whether its bytes came by here for the first time."""
    is_new = _advance(flow, state, start, end, time_ns, gaps, pieces, control)
    touched = -1
    if control[PIECES]:
        touched = _fill(flow, start, end, time_ns, gaps, pieces, control)
    if is_new:
        return FIRST, True
    if touched < 0:
        return EARLIER if end <= state["low"] else DUPLICATE, end <= state["low"]
    gap = gaps[touched]
    if gap["nak_count"]:
        return RESENT, bool(gap["cause"] == BEFORE_CAPTURE)
    state["reordered_ns_max"] = max(state["reordered_ns_max"], time_ns - gap["opened_ns"])
    return REORDERED, True


@kernel
def follow(
    times_ns: Any, kinds: Any, flow_of: Any, starts: Any, ends: Any, ends_message: Any,
    reach_bytes: int, fates: Any, flows: Any, gaps: Any, pieces: Any, control: Any,
) -> None:  # fmt: skip
    """Follow a stream's events in the order of capture.

    Shapes:  times_ns, starts, ends int64[n]; kinds, ends_message uint8[n]; flow_of int32[n];
             fates uint8[n], written; flows FLOW[f]; gaps GAP[g] with n free; pieces PIECE[p];
             control int64[CONTROLS]; all but the events are kept from call to call
    Units:   positions in bytes of the stream; of a STATUS event `ends` is the consumed position
    """
    for index in range(len(kinds)):
        flow, kind, time_ns = flow_of[index], kinds[index], times_ns[index]
        start, end = starts[index], ends[index]
        control[EVENTS] += 1
        state = flows[flow]
        fates[index] = NO_FATE
        if kind == NAK:
            _on_nak(flow, state, start, end, time_ns, gaps, pieces, control)
        elif kind == STATUS:
            state["status_messages"] += 1
            _on_status(flow, end, time_ns, gaps, pieces, control)
        elif kind == HEARTBEAT:
            _advance(flow, state, start, end, time_ns, gaps, pieces, control)
        else:
            fate, is_new = _fate(flow, state, start, end, time_ns, gaps, pieces, control)
            fates[index] = fate
            state["frames"][fate] += 1
            state["bytes"][fate] += end - start
            if is_new and ends_message[index]:
                state["messages"] += 1
        if control[PIECES] > PIECES_MANY:
            _give_up_pieces(state["hwm"] - reach_bytes, flow, gaps, pieces, control)
