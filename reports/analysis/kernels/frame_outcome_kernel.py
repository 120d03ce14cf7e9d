"""What became of a frame that is not the first of its bytes, or that comes late.

Where the order of sending is known it decides: what was sent before the frame that showed a gap, or
together with it, is the original, and late; what was sent behind it was sent again; a packet that
comes once more is a copy. Where it is not known, what was asked for was sent again.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.reports.analysis.kernels.gap_kernel import (
    BEFORE_CAPTURE,
    COPY_FRAMES,
    SEEN_KEPT,
    gap_at,
    is_copy,
    remember,
    was_passed,
)
from windtunnel.reports.analysis.streams.sending_order import UNKNOWN

FIRST, RESENT, REORDERED, DUPLICATE, EARLIER, LATE = range(6)
"""Fates of a frame: never seen before; sent again, as a NAK asks; late, in a hole; a copy, seen
before; before the first that this capture holds; late, and its place was filled before it came, or
the receiver had gone on without it."""
FATES = 6
RECENT_FRAMES = 64
"""By which it is told how many frames overtook one that is new all the same."""
NO_FATE = 255

TOLD = np.dtype(
    [
        ("fate", "u1"),
        ("is_new", "u1"),  # the frame's bytes came by here for the first time
        ("extent", "<i4"),  # reordered: frames but copies since the first one from behind it
        (
            "late_ns",
            "<i8",
        ),  # reordered: time since it was overtaken; else since its hole was noticed
        ("rebuilt", "<i8"),  # up to where all had come when the event was over
        ("high", "<i8"),  # `hwm` then
    ]
)
"""What is told of each event. `extent` and `late_ns` are RFC 4737's, sections 4.2.1 and 4.3."""

FLOW = np.dtype(
    [
        ("low", "<i8"),  # position of the first byte seen
        ("hwm", "<i8"),  # behind the highest byte seen or told of by a heartbeat
        ("is_known", "<i8"),  # whether those are
        ("rebuilt", "<i8"),  # up to where all came, or was passed over
        ("arrivals", "<i8"),  # frames so far
        ("places", "<i8"),  # and without copies, which have none in RFC 4737's order
        ("frames", "<i8", (FATES,)),  # by fate
        ("bytes", "<i8", (FATES,)),  # by fate, of the stream, headers and padding included
        ("naks", "<i8"),
        ("nak_bytes", "<i8"),
        ("status_messages", "<i8"),
        ("reordered_ns_max", "<i8"),  # the longest that a reordered frame came behind its hole
        ("extent_max", "<i8"),  # of reordered frames
        ("extent_sum", "<i8"),
        ("alone_bytes", "<i8"),  # sent again, of no gap: the one who asked is not heard here
        ("order", "<i8"),  # of the packet that was sent last so far
        ("packet", "<i8"),  # that one
        ("recent_orders", "<i8", (RECENT_FRAMES,)),  # of the last frames, by number of arrival
        ("recent_ns", "<i8", (RECENT_FRAMES,)),
    ]
)


@allocating_kernel
def _is_newest(state: Any, order: int, packet: int) -> bool:
    """Whether nothing that was sent later has come by."""
    if state["order"] == UNKNOWN:
        return False
    return bool(order > state["order"] or packet == state["packet"])


@allocating_kernel
def _is_late(flow: int, state: Any, start: int, end: int, gaps: Any, control: Any) -> bool:
    """Whether a frame whose bytes are here came late, and is no copy.

    A frame right behind the one that filled its place is a copy if this flow is known to have any.
    """
    index = gap_at(flow, start, end, False, gaps, control)
    if index < 0:
        return False
    is_behind = state["arrivals"] - gaps[index]["filled_at"] <= COPY_FRAMES
    return not (is_behind and state["frames"][DUPLICATE] > 0)


@allocating_kernel
def _fate_by_order(
    state: Any, gap: Any, has_filled: bool, order: int, packet: int, start: int
) -> int:
    """Fate of a frame of a gap, where it is known when it was sent."""
    if is_copy(gap, order, packet, start):
        return DUPLICATE
    if order > gap["order"]:
        # What was sent again twice may come in any order; of many packets the first are forgotten.
        is_told = has_filled or gap["seen"] <= SEEN_KEPT or _is_newest(state, order, packet)
        return RESENT if is_told else DUPLICATE
    if gap["cause"] != BEFORE_CAPTURE:
        return DUPLICATE
    if has_filled:
        return REORDERED
    return LATE if gap["repaired_bytes"] or was_passed(gap) else DUPLICATE


@allocating_kernel
def _note_disorder(state: Any, told: Any, extent: int) -> None:
    told["extent"] = extent
    state["reordered_ns_max"] = max(state["reordered_ns_max"], told["late_ns"])
    state["extent_max"] = max(state["extent_max"], extent)
    state["extent_sum"] += extent


@allocating_kernel
def _first_ahead(state: Any, order: int) -> int:
    """How many places ago the first came that was sent later, of those remembered; 0 if none."""
    for behind in range(min(state["places"], RECENT_FRAMES), 0, -1):
        if state["recent_orders"][(state["places"] - behind) % RECENT_FRAMES] > order:
            return behind
    return 0


@allocating_kernel
def _came_ns(state: Any, behind: int) -> int:
    """When the frame came that is so many places back."""
    return int(state["recent_ns"][(state["places"] - behind) % RECENT_FRAMES])


@allocating_kernel
def new_bytes(state: Any, time_ns: int, order: int, is_believed: bool, told: Any) -> int:
    """Fate of a frame behind `hwm`: what was sent again may have overtaken it."""
    if not is_believed or order >= state["order"]:
        return FIRST
    behind = _first_ahead(state, order)
    if behind == 0:
        return FIRST
    told["late_ns"] = time_ns - _came_ns(state, behind)
    _note_disorder(state, told, behind)
    return REORDERED


@allocating_kernel
def note_frame(state: Any, fate: int, time_ns: int, order: int) -> None:
    """A frame came by, and its fate is known."""
    if fate != DUPLICATE:
        place = state["places"] % RECENT_FRAMES
        state["recent_orders"][place], state["recent_ns"][place] = order, time_ns
        state["places"] += 1


@allocating_kernel
def _fill_by(
    fate: int, state: Any, gap: Any, time_ns: int, order: int, is_order_known: bool, told: Any
) -> bool:
    """A frame filled some of a gap; returns whether its bytes came by here for the first time.

    What was sent again may have overtaken it before the frame that showed the gap.
    """
    # What was asked for again after it had come is not new.
    is_missing = gap["nak_count"] == 0 or gap["filled_bytes"] <= gap["end"] - gap["start"]
    if is_missing and fate == RESENT:
        gap["repaired_bytes"] += gap["filled_now"]
    elif is_missing:
        gap["late_bytes"] += gap["filled_now"]
    told["late_ns"] = time_ns - gap["opened_ns"]
    if fate == REORDERED:
        extent = state["places"] - gap["opened_at"]
        behind = _first_ahead(state, order) if is_order_known else 0
        if behind > extent:
            extent = behind
            told["late_ns"] = time_ns - _came_ns(state, behind)
        _note_disorder(state, told, extent)
    return bool(gap["cause"] == BEFORE_CAPTURE and is_missing)


@allocating_kernel
def place(
    flow: int, state: Any, start: int, end: int, time_ns: int, order: int, is_believed: bool,
    packet: int, filled: int, told: Any, gaps: Any, control: Any,
) -> tuple[int, bool]:  # fmt: skip
    """Fate of a frame below `hwm`, and whether its bytes came by here for the first time.

    `filled` is the gap in which it did fill something, or -1; the rest as of `follow`.
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
        fate = _fate_by_order(state, gaps[at], filled >= 0, order, packet, start)
    elif filled < 0:
        fate = LATE if _is_late(flow, state, start, end, gaps, control) else DUPLICATE
    else:
        fate = RESENT if gaps[filled]["nak_count"] else REORDERED
    if at >= 0 and order != UNKNOWN:
        remember(gaps[at], order, packet, start, end)
    if filled < 0 or fate == DUPLICATE:
        return fate, False
    is_new = _fill_by(fate, state, gaps[filled], time_ns, order, is_order_known, told)
    return fate, is_new
