"""What held a sender back: windows, limits, and the pauses between new frames.

    limit      ----------+        +-------------      consumption + window of a status message
    position   ..../-----|========|/...               a pause with no room: a stall, until the
                         ^ no room^ room again        limit lets the next frame pass

A pause with room is the sender's own: it had nothing to send. A stall with a hole open at its start
is the loss's: a receiver cannot consume beyond it. Any other is the receiver's.

Follows the same events as `repair_kernel`, and what that tells of each.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import FIRST
from windtunnel.reports.analysis.kernels.repair_kernel import FRAME, STATUS

BY_HOLE, BY_RECEIVER = range(2)
"""Who caused a stall."""

HISTORY = 64
"""Raises of the limit that are remembered."""

WINDOW = np.dtype(
    [
        ("limit", "<i8"),  # the furthest position that status messages allow
        ("raises", "<i8"),  # of the limit, so far
        ("raised_ns", "<i8", (HISTORY,)),
        ("raised_to", "<i8", (HISTORY,)),
        ("consumed", "<i8"),  # the furthest position told as consumed
        ("status_count", "<i8"),
        ("status_ns", "<i8"),  # of the last status message
        ("status_gap_max_ns", "<i8"),
        ("status_gap_sum_ns", "<i8"),
        ("window_min", "<i8"),
        ("window_max", "<i8"),
        ("new_ns", "<i8"),  # of the last frame that was new
        ("new_end", "<i8"),
        ("had_hole", "<i8"),  # whether a hole was open then, or has opened since
        ("over_runs", "<i8"),  # new frames that reach further than a receiver takes them
        ("idle_count", "<i8"),  # pauses with room
        ("idle_ns", "<i8"),
        ("stall_count", "<i8"),
        ("stall_ns", "<i8"),
    ]
)
STALL = np.dtype(
    [
        ("flow", "<i8"),
        ("start_ns", "<i8"),  # of the last frame before it
        ("end_ns", "<i8"),  # of the first frame behind it
        ("opened_ns", "<i8"),  # when the limit let that frame pass
        ("position", "<i8"),
        ("limit", "<i8"),
        ("cause", "<i8"),
    ]
)


@allocating_kernel
def _on_status(state: Any, consumed: int, limit: int, time_ns: int) -> None:
    window = limit - consumed
    if state["status_count"] == 0:
        state["window_min"] = window
    else:
        gap_ns = time_ns - state["status_ns"]
        state["status_gap_sum_ns"] += gap_ns
        state["status_gap_max_ns"] = max(state["status_gap_max_ns"], gap_ns)
    state["status_count"] += 1
    state["status_ns"] = time_ns
    state["window_min"] = min(state["window_min"], window)
    state["window_max"] = max(state["window_max"], window)
    state["consumed"] = max(state["consumed"], consumed)
    if state["raises"] == 0 or limit > state["limit"]:
        slot = state["raises"] % HISTORY
        state["raised_ns"][slot], state["raised_to"][slot] = time_ns, limit
        state["limit"] = limit
        state["raises"] += 1


@allocating_kernel
def _room_since(state: Any, end: int) -> int:
    """When the limit first allowed a frame that ends there; 0 if that was too long ago to tell."""
    found = 0
    for age in range(min(state["raises"], HISTORY)):
        slot = (state["raises"] - 1 - age) % HISTORY
        if state["raised_to"][slot] < end:
            return int(found)
        found = state["raised_ns"][slot]
    return 0 if state["raises"] > HISTORY else int(found)


@allocating_kernel
def follow_windows(
    times_ns: Any, kinds: Any, flow_of: Any, starts: Any, ends: Any, charged: Any, told: Any,
    pause_ns: int, reach_bytes: int, windows: Any, stalls: Any, count: int,
) -> int:  # fmt: skip
    """Follow a stream's events in the order of capture.

    Shapes:  as of `repair_kernel.follow`, and told as it wrote it; charged int64[n]: up to where
             the limit must be for a frame to pass; windows WINDOW[f]; stalls STALL[s] with n free
             behind `count`; windows and stalls are kept from call to call
    Units:   `pause_ns`: shorter pauses between new frames are none; `reach_bytes`: a receiver drops
             what ends further behind what it has consumed
    Returns: how many stalls there are now
    """
    for index in range(len(kinds)):
        state = windows[flow_of[index]]
        time_ns, start, end = times_ns[index], starts[index], ends[index]
        if told[index]["fate"] != FIRST and told[index]["rebuilt"] < told[index]["high"]:
            state["had_hole"] = 1
        if kinds[index] == STATUS:
            _on_status(state, start, end, time_ns)
            continue
        if kinds[index] != FRAME or told[index]["fate"] != FIRST:
            continue
        if state["raises"] > 0 and end > state["consumed"] + reach_bytes:
            state["over_runs"] += 1
        before_ns = state["new_ns"]
        if before_ns > 0 and time_ns - before_ns >= pause_ns:
            has_room = charged[index] <= state["limit"]
            opened_ns = _room_since(state, charged[index]) if has_room else 0
            if opened_ns - before_ns >= pause_ns:
                stall = stalls[count]
                count += 1
                stall["flow"], stall["position"] = flow_of[index], state["new_end"]
                stall["start_ns"], stall["opened_ns"] = before_ns, opened_ns
                stall["end_ns"], stall["limit"] = time_ns, state["limit"]
                stall["cause"] = BY_HOLE if state["had_hole"] else BY_RECEIVER
                state["stall_count"] += 1
                state["stall_ns"] += opened_ns - before_ns
            else:
                state["idle_count"] += 1
                state["idle_ns"] += time_ns - before_ns
        state["new_ns"], state["new_end"] = time_ns, end
        state["had_hole"] = told[index]["rebuilt"] < told[index]["high"]
    return int(count)
