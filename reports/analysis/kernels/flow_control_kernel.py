"""Flow control kernel: windows, limits, and a sender's pauses between new frames.

    limit      ----------+        +-------------      consumption + window of a status message
    position   ..../-----|========|/...               a pause without room is a stall until the
                         ^ no room^ room again        limit admits the next frame

A pause with room is idle time: the sender had nothing to send. A stall is attributed to loss if a
gap was open when it began, because a receiver cannot consume beyond a gap. Any other stall is
attributed to the receiver.

The kernel reads the same events as `repair_kernel`, and the outcome that kernel wrote for each.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import FIRST
from windtunnel.reports.analysis.kernels.repair_kernel import FRAME, STATUS

BY_GAP, BY_RECEIVER = range(2)
"""Causes of a stall: an open gap, or a receiver that did not consume."""

HISTORY = 64
"""How many of the last limit increases are kept."""

WINDOW = np.dtype(
    [
        ("limit", "<i8"),  # the furthest position that status messages allow
        ("raises", "<i8"),  # how often the limit has increased
        ("raised_ns", "<i8", (HISTORY,)),
        ("raised_to", "<i8", (HISTORY,)),
        ("consumed", "<i8"),  # the highest consumption position of a status message
        ("status_count", "<i8"),
        ("status_ns", "<i8"),  # of the last status message
        ("status_gap_max_ns", "<i8"),
        ("status_gap_sum_ns", "<i8"),
        ("window_min", "<i8"),
        ("window_max", "<i8"),
        ("new_ns", "<i8"),  # time of the last new frame
        ("new_end", "<i8"),
        ("had_gap", "<i8"),  # whether a gap was open at that time or has opened since
        ("over_runs", "<i8"),  # new frames that a receiver drops because they are too far ahead
        ("idle_count", "<i8"),  # pauses although there was room
        ("idle_ns", "<i8"),
        ("stall_count", "<i8"),
        ("stall_ns", "<i8"),
    ]
)
STALL = np.dtype(
    [
        ("flow", "<i8"),
        ("start_ns", "<i8"),  # position of the last frame before the stall
        ("end_ns", "<i8"),  # position of the first frame after the stall
        ("opened_ns", "<i8"),  # when the limit admitted that frame
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
    """Return when the limit first admitted a frame with this end, or 0 if unknown."""
    found = 0
    for age in range(min(state["raises"], HISTORY)):
        slot = (state["raises"] - 1 - age) % HISTORY
        if state["raised_to"][slot] < end:
            return int(found)
        found = state["raised_ns"][slot]
    return 0 if state["raises"] > HISTORY else int(found)


@allocating_kernel
def follow_windows(
    times_ns: Any, kinds: Any, flow_of: Any, starts: Any, ends: Any, charged: Any, outcomes: Any,
    pause_ns: int, reach_bytes: int, windows: Any, stalls: Any, count: int,
) -> int:  # fmt: skip
    """Measure windows and stalls from a stream's events, in capture order.

    Shapes:  as in `repair_kernel.follow`, which wrote `outcomes`; charged int64[n]: the limit that
             a frame needs to be sent; windows WINDOW[f]; stalls STALL[s] with n free entries
             after `count`; windows and stalls persist between calls
    Units:   `pause_ns`: shorter pauses between new frames are ignored; `reach_bytes`: a receiver
             drops frames that end further than this beyond its consumption position
    Returns: the number of stalls
    """
    for index in range(len(kinds)):
        state = windows[flow_of[index]]
        time_ns, start, end = times_ns[index], starts[index], ends[index]
        if (
            outcomes[index]["outcome"] != FIRST
            and outcomes[index]["rebuilt"] < outcomes[index]["high"]
        ):
            state["had_gap"] = 1
        if kinds[index] == STATUS:
            _on_status(state, start, end, time_ns)
            continue
        if kinds[index] != FRAME or outcomes[index]["outcome"] != FIRST:
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
                stall["cause"] = BY_GAP if state["had_gap"] else BY_RECEIVER
                state["stall_count"] += 1
                state["stall_ns"] += opened_ns - before_ns
            else:
                state["idle_count"] += 1
                state["idle_ns"] += time_ns - before_ns
        state["new_ns"], state["new_end"] = time_ns, end
        state["had_gap"] = outcomes[index]["rebuilt"] < outcomes[index]["high"]
    return int(count)
