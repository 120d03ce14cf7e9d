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

FIRST, RESENT, REORDERED, DUPLICATE, EARLIER, LATE = range(6)
"""Fates of a frame: never seen before; asked for by a NAK; in a hole and not asked for; seen before
and not asked for; before the first that this capture holds; asked for, but its place was filled
before it came, or the receiver had gone on without it."""
FATES = 6
NO_FATE = 255

TOLD = np.dtype(
    [
        ("fate", "u1"),
        ("is_new", "u1"),  # the frame's bytes came by here for the first time
        ("extent", "<i4"),  # reordered: frames that came since the first one from behind it
        ("late_ns", "<i8"),  # reordered or sent again: time since its hole was noticed
        ("rebuilt", "<i8"),  # up to where all had come when the event was over
        ("high", "<i8"),  # `hwm` then
    ]
)
"""What is told of each event. `extent` and `late_ns` are RFC 4737's, sections 4.2.1 and 4.3."""

BEFORE_CAPTURE, BEHIND_CAPTURE = range(2)
"""Where the bytes of a gap were lost: they never came by here, or they did."""

FLOW = np.dtype(
    [
        ("low", "<i8"),  # position of the first byte seen
        ("hwm", "<i8"),  # behind the highest byte seen or told of by a heartbeat
        ("is_known", "<i8"),  # whether those are
        ("rebuilt", "<i8"),  # up to where all came, or was passed over
        ("arrivals", "<i8"),  # frames so far
        ("frames", "<i8", (FATES,)),  # by fate
        ("bytes", "<i8", (FATES,)),  # by fate, of the stream, headers and padding included
        ("naks", "<i8"),
        ("nak_bytes", "<i8"),
        ("status_messages", "<i8"),
        ("reordered_ns_max", "<i8"),  # the longest that a reordered frame came behind its hole
        ("extent_max", "<i8"),  # of reordered frames
        ("extent_sum", "<i8"),
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
        ("opened_at", "<i8"),  # number of the frame that showed it
        ("first_nak_ns", "<i8"),  # 0 if nobody asked
        ("last_nak_ns", "<i8"),
        ("nak_count", "<i8"),
        ("filled_frames", "<i8"),
        ("filled_by", "<i8"),  # number of the event that filled last
        ("filled_at", "<i8"),  # and of its frame in the flow
        ("filled_bytes", "<i8"),
        ("first_filled_ns", "<i8"),  # 0 if no piece was
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
COPY_FRAMES = 4
"""Within which a copy follows its original."""
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
    flow: int, state: Any, start: int, end: int, time_ns: int, cause: int, gaps: Any, pieces: Any,
    control: Any,
) -> Any:  # fmt: skip
    index = control[GAPS]
    control[GAPS] += 1
    gap = gaps[index]
    gap["flow"], gap["start"], gap["end"], gap["remaining"] = flow, start, end, 0
    gap["cause"], gap["opened_ns"], gap["is_whole"] = cause, time_ns, 0
    gap["first_nak_ns"], gap["last_nak_ns"], gap["nak_count"] = 0, 0, 0
    gap["opened_at"] = state["arrivals"]
    gap["filled_frames"], gap["filled_bytes"], gap["first_filled_ns"] = 0, 0, 0
    gap["filled_ns"], gap["passed_ns"], gap["filled_by"] = 0, 0, 0
    gap["filled_at"] = -COPY_FRAMES
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
    flow: int, arrivals: int, start: int, end: int, time_ns: int, gaps: Any, pieces: Any,
    control: Any,
) -> int:  # fmt: skip
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
        if gap["first_filled_ns"] == 0:
            gap["first_filled_ns"] = time_ns
        if gap["remaining"] == 0:
            gap["is_whole"] = 1
        if gap["filled_by"] != control[EVENTS]:
            gap["filled_by"], gap["filled_at"] = control[EVENTS], arrivals
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
        gap = _open_gap(flow, state, start, end, time_ns, cause, gaps, pieces, control)
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
        state["rebuilt"] = start
        return True
    hwm = state["hwm"]
    if start > hwm and _fill_nothing(flow, hwm, start, gaps, pieces, control):
        _open_gap(flow, state, hwm, start, time_ns, BEFORE_CAPTURE, gaps, pieces, control)
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
def _asked_gap(flow: int, start: int, end: int, gaps: Any, control: Any) -> int:
    """The gap for whose bytes a receiver asked, or which it passed over; -1 if there is none."""
    for index in range(max(0, control[GAPS] - RECENT), control[GAPS]):
        gap = gaps[index]
        was_passed = gap["passed_ns"] > 0 and gap["is_whole"] == 0
        is_here = gap["flow"] == flow and gap["start"] < end and gap["end"] > start
        if is_here and (gap["nak_count"] > 0 or was_passed):
            return int(index)
    return -1


@kernel
def _is_late(flow: int, state: Any, start: int, end: int, gaps: Any, control: Any) -> bool:
    """Whether a frame whose bytes are here came late, and is no copy.

    A frame right behind the one that filled its place is a copy if this flow is known to have any.
    """
    index = _asked_gap(flow, start, end, gaps, control)
    if index < 0:
        return False
    is_behind = state["arrivals"] - gaps[index]["filled_at"] <= COPY_FRAMES
    return not (is_behind and state["frames"][DUPLICATE] > 0)


@kernel
def _fate(
    flow: int, state: Any, start: int, end: int, time_ns: int, told: Any, gaps: Any, pieces: Any,
    control: Any,
) -> tuple[int, bool]:  # fmt: skip
    """Fate of a frame, and whether its bytes came by here for the first time."""
    state["arrivals"] += 1
    is_new = _advance(flow, state, start, end, time_ns, gaps, pieces, control)
    touched = -1
    if control[PIECES]:
        touched = _fill(flow, state["arrivals"], start, end, time_ns, gaps, pieces, control)
    if is_new:
        return FIRST, True
    if touched < 0:
        if end <= state["low"]:
            return EARLIER, True
        is_late = _is_late(flow, state, start, end, gaps, control)
        return LATE if is_late else DUPLICATE, False
    gap = gaps[touched]
    told["late_ns"] = time_ns - gap["opened_ns"]
    if gap["nak_count"]:
        # What was asked for again after it had come is not new.
        is_missing = gap["filled_bytes"] <= gap["end"] - gap["start"]
        return RESENT, bool(gap["cause"] == BEFORE_CAPTURE and is_missing)
    told["extent"] = state["arrivals"] - gap["opened_at"]
    state["reordered_ns_max"] = max(state["reordered_ns_max"], told["late_ns"])
    state["extent_max"] = max(state["extent_max"], told["extent"])
    state["extent_sum"] += told["extent"]
    return REORDERED, True


@kernel
def _rebuilt(flow: int, state: Any, gaps: Any, pieces: Any, control: Any) -> int:
    """Where the first hole of a flow begins, or its high-water mark."""
    found = state["hwm"]
    for index in range(control[PIECES]):
        piece = pieces[index]
        if piece["start"] < found and gaps[piece["gap"]]["flow"] == flow:
            found = piece["start"]
    return int(found)


@kernel
def follow(
    times_ns: Any, kinds: Any, flow_of: Any, starts: Any, ends: Any, reach_bytes: int,
    told: Any, flows: Any, gaps: Any, pieces: Any, control: Any,
) -> None:  # fmt: skip
    """Follow a stream's events in the order of capture.

    Shapes:  times_ns, starts, ends int64[n]; kinds uint8[n]; flow_of int32[n];
             told TOLD[n], written; flows FLOW[f]; gaps GAP[g] with n free; pieces PIECE[p];
             control int64[CONTROLS]; all but the events are kept from call to call
    Units:   positions in bytes of the stream; a STATUS event goes from the consumed position to the
             end of the window
    """
    for index in range(len(kinds)):
        flow, kind, time_ns = flow_of[index], kinds[index], times_ns[index]
        start, end = starts[index], ends[index]
        control[EVENTS] += 1
        state, about = flows[flow], told[index]
        about["fate"], about["is_new"], about["extent"], about["late_ns"] = NO_FATE, 0, 0, 0
        if kind == NAK:
            _on_nak(flow, state, start, end, time_ns, gaps, pieces, control)
        elif kind == STATUS:
            state["status_messages"] += 1
            _on_status(flow, start, time_ns, gaps, pieces, control)
        elif kind == HEARTBEAT:
            _advance(flow, state, start, end, time_ns, gaps, pieces, control)
        else:
            fate, is_new = _fate(flow, state, start, end, time_ns, about, gaps, pieces, control)
            about["fate"], about["is_new"] = fate, is_new
            state["frames"][fate] += 1
            state["bytes"][fate] += end - start
        state["rebuilt"] = max(state["rebuilt"], _rebuilt(flow, state, gaps, pieces, control))
        about["rebuilt"], about["high"] = state["rebuilt"], state["hwm"]
        if control[PIECES] > PIECES_MANY:
            _give_up_pieces(state["hwm"] - reach_bytes, flow, gaps, pieces, control)
