"""Gaps of a stream and their pieces that are still missing; what repair is followed with.

    gap        [=============================]   whatever was missing, and for whatever a NAK asked
    pieces     [=====]     [===]  [==========]   of it that nothing has filled yet

A gap also remembers the last packets with its bytes, by which the next one is known for a copy, for
an original that came late, or for one that was sent again. Nothing here decides what they are.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import allocating_kernel

BEFORE_CAPTURE, BEHIND_CAPTURE = range(2)
"""Where the bytes of a gap were lost: they never came by here, or they did."""

SEEN_KEPT = 8
"""Packets with a gap's bytes that it remembers."""

GAP = np.dtype(
    [
        ("flow", "<i8"),
        ("start", "<i8"),
        ("end", "<i8"),
        ("remaining", "<i8"),  # bytes in pieces
        ("is_whole", "<i8"),  # all of it was filled, at least once
        ("cause", "<i8"),
        ("opened_ns", "<i8"),
        ("opened_at", "<i8"),  # place of the first frame behind it
        ("first_nak_ns", "<i8"),  # 0 if nobody asked
        ("last_nak_ns", "<i8"),
        ("nak_count", "<i8"),
        ("filled_frames", "<i8"),
        ("filled_by", "<i8"),  # number of the event that filled last
        ("filled_at", "<i8"),  # and the number of its frame in the flow
        ("filled_bytes", "<i8"),
        ("first_filled_ns", "<i8"),  # 0 if no piece was
        ("filled_ns", "<i8"),  # when the last piece was; 0 if none was
        ("passed_ns", "<i8"),  # when a status message told a position behind it; 0 if none did
        ("order", "<i8"),  # up to which all are originals; UNKNOWN if none can be told
        ("filled_now", "<i8"),  # bytes, by the event that filled last
        ("late_bytes", "<i8"),  # of it that came late; none was here before
        ("repaired_bytes", "<i8"),  # that came again, likewise
        ("seen", "<i8"),  # packets with these bytes so far
        ("orders", "<i8", (SEEN_KEPT,)),  # of the last of them
        ("packets", "<i8", (SEEN_KEPT,)),
        ("starts", "<i8", (SEEN_KEPT,)),  # of the frames in each, so far
        ("ends", "<i8", (SEEN_KEPT,)),
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


@allocating_kernel
def add_piece(gap_index: int, start: int, end: int, gaps: Any, pieces: Any, control: Any) -> None:
    """Some of a gap is missing, if it is any at all."""
    if start >= end:
        return
    if control[PIECES] == len(pieces):
        control[LOST_TRACK] += 1
        return
    piece = pieces[control[PIECES]]
    piece["gap"], piece["start"], piece["end"] = gap_index, start, end
    gaps[gap_index]["remaining"] += end - start
    control[PIECES] += 1


@allocating_kernel
def _drop_piece(index: int, gaps: Any, pieces: Any, control: Any) -> None:
    piece = pieces[index]
    gaps[piece["gap"]]["remaining"] -= piece["end"] - piece["start"]
    control[PIECES] -= 1
    last = pieces[control[PIECES]]
    piece["gap"], piece["start"], piece["end"] = last["gap"], last["start"], last["end"]


@allocating_kernel
def open_gap(
    flow: int, state: Any, start: int, end: int, time_ns: int, cause: int, order: int, gaps: Any,
    pieces: Any, control: Any,
) -> Any:  # fmt: skip
    """Open a gap all of which is missing; `order` is that of the frame that showed it."""
    index = control[GAPS]
    control[GAPS] += 1
    gap = gaps[index]
    gap["flow"], gap["start"], gap["end"], gap["remaining"] = flow, start, end, 0
    gap["cause"], gap["opened_ns"], gap["is_whole"] = cause, time_ns, 0
    gap["first_nak_ns"], gap["last_nak_ns"], gap["nak_count"] = 0, 0, 0
    gap["opened_at"] = state["places"]
    gap["filled_frames"], gap["filled_bytes"], gap["first_filled_ns"] = 0, 0, 0
    gap["filled_ns"], gap["passed_ns"], gap["filled_by"] = 0, 0, 0
    gap["filled_at"] = -COPY_FRAMES
    gap["order"], gap["seen"] = order, 0
    gap["filled_now"], gap["late_bytes"], gap["repaired_bytes"] = 0, 0, 0
    add_piece(index, start, end, gaps, pieces, control)
    return gap


@allocating_kernel
def give_up_pieces(position: int, flow: int, gaps: Any, pieces: Any, control: Any) -> None:
    """Drop the pieces of a flow that end at a position or before it."""
    index = 0
    while index < control[PIECES]:
        piece = pieces[index]
        if gaps[piece["gap"]]["flow"] == flow and piece["end"] <= position:
            _drop_piece(index, gaps, pieces, control)
        else:
            index += 1


@allocating_kernel
def fill(
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
        add_piece(gap_index, piece_start, start, gaps, pieces, control)
        add_piece(gap_index, end, piece_end, gaps, pieces, control)
        gap["filled_bytes"] += min(piece_end, end) - max(piece_start, start)
        gap["filled_ns"] = time_ns
        if gap["first_filled_ns"] == 0:
            gap["first_filled_ns"] = time_ns
        if gap["remaining"] == 0:
            gap["is_whole"] = 1
        if gap["filled_by"] != control[EVENTS]:
            gap["filled_by"], gap["filled_at"] = control[EVENTS], arrivals
            gap["filled_frames"] += 1
            gap["filled_now"] = 0
        gap["filled_now"] += min(piece_end, end) - max(piece_start, start)
        rank = 2 * (gap["nak_count"] > 0) + (gap["cause"] == BEFORE_CAPTURE)
        if rank > touched_rank or (rank == touched_rank and gap_index < touched):
            touched, touched_rank = gap_index, rank
    return int(touched)


@allocating_kernel
def is_all_here(flow: int, start: int, end: int, gaps: Any, pieces: Any, control: Any) -> bool:
    """Whether no open piece lies in a range: a NAK may have told of a hole before a frame did."""
    for index in range(control[PIECES]):
        piece = pieces[index]
        if gaps[piece["gap"]]["flow"] == flow and piece["start"] < end and piece["end"] > start:
            return False
    return True


@allocating_kernel
def first_hole(flow: int, state: Any, gaps: Any, pieces: Any, control: Any) -> int:
    """Where the first hole of a flow begins, or its high-water mark."""
    found = state["hwm"]
    for index in range(control[PIECES]):
        piece = pieces[index]
        if piece["start"] < found and gaps[piece["gap"]]["flow"] == flow:
            found = piece["start"]
    return int(found)


@allocating_kernel
def gap_at(flow: int, start: int, end: int, is_any: bool, gaps: Any, control: Any) -> int:
    """The gap of these bytes for which a receiver asked, or which it passed over; -1 if none is.

    With `is_any` also one that nobody asked for.
    """
    for index in range(max(0, control[GAPS] - RECENT), control[GAPS]):
        gap = gaps[index]
        is_here = gap["flow"] == flow and gap["start"] < end and gap["end"] > start
        if is_here and (is_any or gap["nak_count"] > 0 or was_passed(gap)):
            return int(index)
    return -1


@allocating_kernel
def was_passed(gap: Any) -> bool:
    """Whether the receiver went on without all of a gap."""
    return bool(gap["passed_ns"] > 0 and gap["is_whole"] == 0)


@allocating_kernel
def remember(gap: Any, order: int, packet: int, start: int, end: int) -> None:
    """A frame of a gap's bytes came by."""
    place = (gap["seen"] - 1) % SEEN_KEPT
    if gap["seen"] and gap["packets"][place] == packet:
        gap["starts"][place] = min(gap["starts"][place], start)
        gap["ends"][place] = max(gap["ends"][place], end)
        return
    place = gap["seen"] % SEEN_KEPT
    gap["orders"][place], gap["packets"][place] = order, packet
    gap["starts"][place], gap["ends"][place] = start, end
    gap["seen"] += 1


@allocating_kernel
def is_copy(gap: Any, order: int, packet: int, start: int) -> bool:
    """Whether the gap remembers another packet with the same order and these bytes."""
    for place in range(min(gap["seen"], SEEN_KEPT)):
        is_same = gap["orders"][place] == order and gap["packets"][place] != packet
        if is_same and gap["starts"][place] <= start < gap["ends"][place]:
            return True
    return False
