"""Compiled kernel that tracks a stream's gaps, and the pieces of each gap that are still missing.

    gap        [=============================]   missing bytes, and bytes that a NAK requested
    pieces     [=====]     [===]  [==========]   the parts that no frame has filled yet

A gap also keeps the last packets that carried its bytes. `frame_outcome_kernel` compares the next
packet with them to identify it as a copy, a late original or a retransmit.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel

BEFORE_CAPTURE, BEHIND_CAPTURE = range(2)
"""Where a gap's bytes were lost: before they reached the capture point, or behind it."""

PACKETS_KEPT = 8
"""Number of packets kept per gap: the last ones that carried bytes of the gap."""

GAP = np.dtype(
    [
        ("flow", "<i8"),
        ("start", "<i8"),
        ("end", "<i8"),
        ("remaining", "<i8"),  # missing bytes: the sum of its pieces
        ("is_whole", "<i8"),  # whether all of it has been filled at least once
        ("whole_ns", "<i8"),  # since when; 0 if it is not
        ("cause", "<i8"),
        ("opened_ns", "<i8"),
        ("opened_at", "<i8"),  # arrival number of the first frame after the gap
        ("first_nak_ns", "<i8"),  # 0 without a NAK
        ("last_nak_ns", "<i8"),
        ("nak_count", "<i8"),
        ("filled_frames", "<i8"),
        ("filled_by", "<i8"),  # number of the last event that filled a part of the gap
        ("filled_at", "<i8"),  # arrival number of that event's frame in the flow
        ("filled_bytes", "<i8"),
        ("first_filled_ns", "<i8"),  # 0 if no piece was filled
        ("filled_ns", "<i8"),  # when a piece was last filled; 0 if none was
        (
            "passed_ns",
            "<i8",
        ),  # when a status message passed the gap; 0 if none did
        ("order", "<i8"),  # sending order of the last original; UNKNOWN if undetermined
        ("filled_now", "<i8"),  # bytes filled by the last event
        ("late_bytes", "<i8"),  # bytes filled by late originals
        ("repaired_bytes", "<i8"),  # bytes filled by retransmits
        ("guessed_bytes", "<i8"),  # those of them that may have been filled by late originals
        ("seen", "<i8"),  # number of packets so far that carried bytes of the gap
        ("orders", "<i8", (PACKETS_KEPT,)),  # sending orders of the last of these packets
        ("packets", "<i8", (PACKETS_KEPT,)),
        ("starts", "<i8", (PACKETS_KEPT,)),  # range of the frames in each of these packets so far
        ("ends", "<i8", (PACKETS_KEPT,)),
    ]
)
PIECE = np.dtype([("gap", "<i8"), ("start", "<i8"), ("end", "<i8")])

GAPS, PIECES, PIECES_OVERFLOWED, EVENTS = range(4)
GAPS_OVERFLOWED, HIGHEST_END, LOWEST_END, BLOCKED = range(4, 8)
"""Indices in the control array: number of gaps, pieces, pieces that did not fit, events, and gaps
that did not fit; positions at or above and at or below the ends of all pieces; and the number, plus
one, of the flow whose first missing byte has been found since a piece was last dropped. The last
three save searches, because a stream may have tens of thousands of pieces.
"""
CONTROL_LENGTH = 8
RECENT_GAPS = 512
"""Number of most recent gaps that are searched for the range of a NAK or status message."""
DUPLICATE_DISTANCE_MAX = 4
"""Maximum distance of a copy from its original, in frames."""
PIECES_BEFORE_CLEANUP = 4_096
"""Number of pieces above which those that no receiver can still wait for are dropped."""


@kernel
def add_piece(gap_index: int, start: int, end: int, gaps: Any, pieces: Any, control: Any) -> None:
    """Add a missing piece to a gap, unless the piece has no bytes."""
    if start >= end:
        return
    if control[PIECES] == len(pieces):
        control[PIECES_OVERFLOWED] += 1
        return
    piece = pieces[control[PIECES]]
    piece["gap"], piece["start"], piece["end"] = gap_index, start, end
    gaps[gap_index]["remaining"] += end - start
    control[HIGHEST_END] = max(control[HIGHEST_END], end)
    control[LOWEST_END] = end if control[PIECES] == 0 else min(control[LOWEST_END], end)
    control[PIECES] += 1


@kernel
def _drop_piece(index: int, gaps: Any, pieces: Any, control: Any) -> None:
    piece = pieces[index]
    gaps[piece["gap"]]["remaining"] -= piece["end"] - piece["start"]
    control[PIECES] -= 1
    control[BLOCKED] = 0
    last = pieces[control[PIECES]]
    piece["gap"], piece["start"], piece["end"] = last["gap"], last["start"], last["end"]


@kernel
def open_gap(
    flow: int, state: Any, start: int, end: int, time_ns: int, cause: int, order: int, gaps: Any,
    pieces: Any, control: Any,
) -> Any:  # fmt: skip
    """Add a gap with all bytes missing. `order` is the sending order of the frame that revealed the
    gap. If there is no room, the gap is only counted, and the last record, which is free, returned.
    """
    index = control[GAPS]
    is_kept = index < len(gaps) - 1
    control[GAPS if is_kept else GAPS_OVERFLOWED] += 1
    gap = gaps[index]
    gap["flow"], gap["start"], gap["end"], gap["remaining"] = flow, start, end, 0
    gap["cause"], gap["opened_ns"], gap["is_whole"], gap["whole_ns"] = cause, time_ns, 0, 0
    gap["first_nak_ns"], gap["last_nak_ns"], gap["nak_count"] = 0, 0, 0
    gap["opened_at"] = state["places"]
    gap["filled_frames"], gap["filled_bytes"], gap["first_filled_ns"] = 0, 0, 0
    gap["filled_ns"], gap["passed_ns"], gap["filled_by"] = 0, 0, 0
    gap["filled_at"] = -DUPLICATE_DISTANCE_MAX
    gap["order"], gap["seen"] = order, 0
    gap["filled_now"], gap["late_bytes"] = 0, 0
    gap["repaired_bytes"], gap["guessed_bytes"] = 0, 0
    if is_kept:
        add_piece(index, start, end, gaps, pieces, control)
    return gap


@kernel
def drop_pieces(position: int, flow: int, gaps: Any, pieces: Any, control: Any) -> None:
    """Stop tracking a flow's missing pieces that end at or before a position."""
    if control[PIECES] == 0 or control[LOWEST_END] > position:
        return
    index = 0
    lowest = control[HIGHEST_END]
    while index < control[PIECES]:
        piece = pieces[index]
        if piece["end"] <= position and gaps[piece["gap"]]["flow"] == flow:
            _drop_piece(index, gaps, pieces, control)
        else:
            lowest = min(lowest, piece["end"])
            index += 1
    control[LOWEST_END] = lowest


@kernel
def is_captured_whole(gap: Any) -> bool:
    """Return whether all bytes of a gap that was lost before the capture point have been captured.

    A NAK may still request the bytes: it crossed the retransmit, or was sent before the receiver
    read the retransmit.
    """
    return bool(gap["cause"] == BEFORE_CAPTURE and gap["is_whole"] == 1)


@kernel
def fill(
    flow: int, arrivals: int, start: int, end: int, time_ns: int, gaps: Any, pieces: Any,
    control: Any,
) -> int:  # fmt: skip
    """Mark a range of positions as received. Return the index of the gap whose missing bytes the
    range fills.

    Returns -1 if nothing was missing. If there are several gaps, gaps with a NAK take precedence,
    then gaps lost before the capture point, then the oldest gap.
    """
    best, best_rank = -1, -1
    if control[HIGHEST_END] <= start:
        return best
    index = 0
    while index < control[PIECES]:
        piece = pieces[index]
        piece_start, piece_end = piece["start"], piece["end"]
        if piece_start >= end or piece_end <= start or gaps[piece["gap"]]["flow"] != flow:
            index += 1
            continue
        gap_index = piece["gap"]
        gap = gaps[gap_index]
        _drop_piece(index, gaps, pieces, control)
        add_piece(gap_index, piece_start, start, gaps, pieces, control)
        add_piece(gap_index, end, piece_end, gaps, pieces, control)
        gap["filled_bytes"] += min(piece_end, end) - max(piece_start, start)
        if not is_captured_whole(gap):
            gap["filled_ns"] = time_ns
        if gap["first_filled_ns"] == 0:
            gap["first_filled_ns"] = time_ns
        if gap["remaining"] == 0 and gap["is_whole"] == 0:
            gap["is_whole"], gap["whole_ns"] = 1, time_ns
        if gap["filled_by"] != control[EVENTS]:
            gap["filled_by"], gap["filled_at"] = control[EVENTS], arrivals
            gap["filled_frames"] += 1
            gap["filled_now"] = 0
        gap["filled_now"] += min(piece_end, end) - max(piece_start, start)
        rank = 2 * (gap["nak_count"] > 0) + (gap["cause"] == BEFORE_CAPTURE)
        if rank > best_rank or (rank == best_rank and gap_index < best):
            best, best_rank = gap_index, rank
    return int(best)


@kernel
def is_complete(flow: int, start: int, end: int, gaps: Any, pieces: Any, control: Any) -> bool:
    """Return True if no gap has missing bytes in a range of positions."""
    if control[HIGHEST_END] <= start:
        return True
    for index in range(control[PIECES]):
        piece = pieces[index]
        if piece["start"] < end and piece["end"] > start and gaps[piece["gap"]]["flow"] == flow:
            return False
    return True


@kernel
def first_missing(flow: int, state: Any, gaps: Any, pieces: Any, control: Any) -> int:
    """Return the start of a flow's first gap, or its high-water mark if there is none."""
    found = state["hwm"]
    for index in range(control[PIECES]):
        piece = pieces[index]
        gap = gaps[piece["gap"]]
        if piece["start"] < found and gap["flow"] == flow and not is_captured_whole(gap):
            found = piece["start"]
    return int(found)


@kernel
def gap_at(flow: int, start: int, end: int, is_any: bool, gaps: Any, control: Any) -> int:
    """Return a recent gap in this range that a NAK requested or a receiver skipped.

    With `is_any`, return any recent gap in the range. Returns -1 if there is none.
    """
    for index in range(max(0, control[GAPS] - RECENT_GAPS), control[GAPS]):
        gap = gaps[index]
        is_here = gap["flow"] == flow and gap["start"] < end and gap["end"] > start
        if is_here and (is_any or gap["nak_count"] > 0 or was_skipped(gap)):
            return int(index)
    return -1


@kernel
def was_skipped(gap: Any) -> bool:
    """Return whether the receiver skipped a gap before it was filled completely."""
    return bool(gap["passed_ns"] > 0 and gap["is_whole"] == 0)


@kernel
def remember_packet(gap: Any, order: int, packet: int, start: int, end: int) -> None:
    """Record in a gap that a packet carried some of its bytes."""
    place = (gap["seen"] - 1) % PACKETS_KEPT
    if gap["seen"] and gap["packets"][place] == packet:
        gap["starts"][place] = min(gap["starts"][place], start)
        gap["ends"][place] = max(gap["ends"][place], end)
        return
    place = gap["seen"] % PACKETS_KEPT
    gap["orders"][place], gap["packets"][place] = order, packet
    gap["starts"][place], gap["ends"][place] = start, end
    gap["seen"] += 1


@kernel
def is_duplicate(gap: Any, order: int, packet: int, start: int) -> bool:
    """Return whether another packet with the same sending order carried the same bytes."""
    for place in range(min(gap["seen"], PACKETS_KEPT)):
        is_same = gap["orders"][place] == order and gap["packets"][place] != packet
        if is_same and gap["starts"][place] <= start < gap["ends"][place]:
            return True
    return False
