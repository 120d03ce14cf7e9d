"""Compiled kernel that measures flow control: windows, limits, and a sender's pauses.

    limit      ----------+        +-------------      consumption + window of a status message
    position   ..../-----|========|/...               a pause without room is a stall until the
                         ^ no room^ room again        limit admits the next frame

A pause while there is room is idle time: the sender had nothing to send. So is a pause that goes on
after there was room for longer than the sender usually takes to use it, see `FlowControlWalk`. A
stall is attributed to loss if a gap blocked the receiver for at least half of it, because a
receiver cannot consume beyond a gap. Any other stall is attributed to the receiver. A gap blocks
while it is near the consumption position and is not filled. In a capture near the receiver, its
bytes have not been captured. In a capture near the sender, where every byte is captured, NAKs
request it repeatedly, and the consumption position does not pass it.

A sender to several destinations goes on beyond the limit of one when its flow control no longer
waits for that receiver, as after its timeout. The first such pause is a stall, too.

The kernel reads the same events as `repair_kernel`, and the outcomes which that kernel wrote.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import FIRST
from windtunnel.reports.analysis.kernels.repair_kernel import FRAME, NAK, STATUS

BY_GAP, BY_RECEIVER, BY_TIMEOUT = range(3)
"""Causes of a stall: an open gap, a receiver that does not consume, or a receiver that does not and
for which the sender at last no longer waits.
"""

HISTORY = 64
"""Number of recent limit increases that are remembered."""

NAK_SILENCE_NS = 60_000_000
"""Time after its last NAK at which a gap no longer counts as open. If one and a half times the last
interval between a NAK and its repetition is longer, that time applies instead. Source: Aeron
repeats a NAK within 60 ms by default.
"""
NAK_INTERVAL_MAX_NS = 1_000_000_000
"""Maximum interval between a NAK and its repetition."""
REPORTS_A_WINDOW = 4
"""Number of status messages that a receiver sends per window. The receiver window divided by this
number, plus a frame, is the distance from the last reported position within which a gap blocks the
receiver.
"""

WINDOW = np.dtype(
    [
        ("limit", "<i8"),  # the furthest position that status messages allow
        ("joins", "<i8"),  # how often consumption was reported beyond what is accepted
        ("joined", "<i8"),  # the last such consumption position
        ("raises", "<i8"),  # how often the limit has increased
        ("raised_ns", "<i8", (HISTORY,)),
        ("raised_to", "<i8", (HISTORY,)),
        ("raised_blocked_ns", "<i8", (HISTORY,)),  # `blocked_ns` at that time
        ("consumed", "<i8"),  # the highest consumption position of a status message
        ("status_count", "<i8"),
        ("status_ns", "<i8"),  # of the last status message
        ("status_gap_max_ns", "<i8"),
        ("status_gap_sum_ns", "<i8"),
        ("window_min", "<i8"),
        ("window_max", "<i8"),
        ("new_ns", "<i8"),  # time of the last new frame
        ("new_end", "<i8"),
        ("new_blocked_ns", "<i8"),  # `blocked_ns` at that time
        ("event_ns", "<i8"),  # time of the last event
        ("blocked_ns", "<i8"),  # how long a gap has blocked the receiver, up to the last event
        ("missing_from", "<i8"),  # first byte that is missing at this point, or NONE_MISSING
        ("nak_from", "<i8"),  # first byte that the last NAK requested
        ("nak_ns", "<i8"),  # time of the last NAK; 0 if there was none
        ("nak_interval_ns", "<i8"),  # last interval between a NAK and its repetition
        ("answer_ns", "<i8"),  # shortest time from a limit to a frame that needed it; NO_ANSWER
        ("frame_max", "<i8"),  # length of the longest new frame
        ("over_runs", "<i8"),  # new frames that a receiver drops because they are too far ahead
        ("idle_count", "<i8"),  # number of pauses while there was room
        ("idle_ns", "<i8"),
    ]
)
NONE_MISSING = -1
NO_ANSWER = -1
"""There was no new frame that needed the last limit."""
STALL = np.dtype(
    [
        ("flow", "<i8"),
        ("start_ns", "<i8"),  # position of the last frame before the stall
        ("end_ns", "<i8"),  # position of the first frame after the stall
        ("opened_ns", "<i8"),  # when the limit admitted that frame
        ("position", "<i8"),
        ("needed_limit", "<i8"),  # the limit that the first frame after the stall needed
        ("opened_limit", "<i8"),  # the limit that admitted it, or the last one
        ("cause", "<i8"),
    ]
)


@kernel
def _on_status(state: Any, consumed: int, limit: int, time_ns: int, reach_bytes: int) -> None:
    window = limit - consumed
    if state["status_count"] == 0:
        state["window_min"] = window
    else:
        gap_ns = time_ns - state["status_ns"]
        state["status_gap_sum_ns"] += gap_ns
        state["status_gap_max_ns"] = max(state["status_gap_max_ns"], gap_ns)
        if consumed > max(state["limit"], state["consumed"] + reach_bytes):
            state["joins"] += 1
            state["joined"] = consumed
    state["status_count"] += 1
    state["status_ns"] = time_ns
    state["window_min"] = min(state["window_min"], window)
    state["window_max"] = max(state["window_max"], window)
    state["consumed"] = max(state["consumed"], consumed)
    if state["raises"] == 0 or limit > state["limit"]:
        slot = state["raises"] % HISTORY
        state["raised_ns"][slot], state["raised_to"][slot] = time_ns, limit
        state["raised_blocked_ns"][slot] = state["blocked_ns"]
        state["limit"] = limit
        state["raises"] += 1


@kernel
def _room_since(state: Any, end: int) -> int:
    """Return which entry of the limit history first allowed a frame that ends at position `end`.

    Returns -1 if this limit is not in the history.
    """
    found = -1
    for age in range(min(state["raises"], HISTORY)):
        slot = (state["raises"] - 1 - age) % HISTORY
        if state["raised_to"][slot] < end:
            return int(found)
        found = slot
    return -1 if state["raises"] > HISTORY else int(found)


@kernel
def _blocks(state: Any, position: int) -> bool:
    """Return whether a gap at `position` keeps the receiver from consuming more."""
    if state["status_count"] == 0:
        return True
    reach = (state["limit"] - state["consumed"]) // REPORTS_A_WINDOW + state["frame_max"]
    return bool(state["consumed"] <= position <= state["consumed"] + reach)


@kernel
def _account_blocked(state: Any, time_ns: int) -> None:
    """Add to `blocked_ns` how long a gap has blocked the receiver since the last event."""
    since_ns, until_ns = state["event_ns"], 0
    if state["nak_ns"] > 0 and _blocks(state, state["nak_from"]):
        silence_ns = max(NAK_SILENCE_NS, state["nak_interval_ns"] * 3 // 2)
        until_ns = min(time_ns, state["nak_ns"] + silence_ns)
    if state["missing_from"] != NONE_MISSING and _blocks(state, state["missing_from"]):
        until_ns = time_ns
    if since_ns > 0 and until_ns > since_ns:
        state["blocked_ns"] += until_ns - since_ns
    state["event_ns"] = max(since_ns, time_ns)


@kernel
def _on_nak(state: Any, start: int, time_ns: int) -> None:
    interval_ns = time_ns - state["nak_ns"]
    if start == state["nak_from"] and interval_ns <= NAK_INTERVAL_MAX_NS:
        state["nak_interval_ns"] = interval_ns
    state["nak_from"], state["nak_ns"] = start, time_ns


@kernel
def _is_by_gap(state: Any, slot: int, before_ns: int) -> bool:
    """Return whether a gap blocked the receiver for at least half of a stall."""
    blocked_ns = state["raised_blocked_ns"][slot] - state["new_blocked_ns"]
    return bool(2 * blocked_ns >= state["raised_ns"][slot] - before_ns)


@kernel
def _note_answer(state: Any, charged: int, time_ns: int) -> None:
    """Measure how long after the last limit a new frame that needed it was captured."""
    if state["raises"] < 2:
        return
    last, before = (state["raises"] - 1) % HISTORY, (state["raises"] - 2) % HISTORY
    if state["raised_to"][before] < charged <= state["raised_to"][last]:
        answer_ns = max(0, time_ns - state["raised_ns"][last])
        if state["answer_ns"] == NO_ANSWER or answer_ns < state["answer_ns"]:
            state["answer_ns"] = answer_ns


@kernel
def follow_windows(
    times_ns: Any, kinds: Any, flow_of: Any, starts: Any, ends: Any, charged: Any, outcomes: Any,
    pause_ns: int, reach_bytes: int, windows: Any, stalls: Any, count: int, is_over_run: Any,
) -> int:  # fmt: skip
    """Measure windows and stalls from a stream's events, in capture order.

    Shapes:  as in `repair_kernel.follow`, which wrote `outcomes`; charged int64[n]: the limit that
             a frame needs to be sent; windows WINDOW[f]; stalls STALL[s] with n free entries
             after `count`; windows and stalls persist between calls; is_over_run bool[n],
             written: whether the receiver drops the frame
    Units:   `pause_ns`: shorter pauses between new frames are ignored; `reach_bytes`: a receiver
             drops frames that end further than this beyond its consumption position
    Returns: the number of stalls
    """
    for index in range(len(kinds)):
        state = windows[flow_of[index]]
        time_ns, start, end = times_ns[index], starts[index], ends[index]
        outcome = outcomes[index]
        if state["event_ns"] == 0:
            state["missing_from"] = NONE_MISSING
            state["answer_ns"] = NO_ANSWER
        _account_blocked(state, time_ns)
        is_missing = outcome["rebuilt"] < outcome["high"]
        state["missing_from"] = outcome["rebuilt"] if is_missing else NONE_MISSING
        if kinds[index] == NAK:
            _on_nak(state, start, time_ns)
        elif kinds[index] == STATUS:
            _on_status(state, start, end, time_ns, reach_bytes)
        if kinds[index] != FRAME or outcome["outcome"] != FIRST:
            continue
        state["frame_max"] = max(state["frame_max"], end - start)
        if state["raises"] > 0 and end > state["consumed"] + reach_bytes:
            state["over_runs"] += 1
            is_over_run[index] = True
        _note_answer(state, charged[index], time_ns)
        before_ns = state["new_ns"]
        if before_ns > 0 and time_ns - before_ns >= pause_ns:
            has_room = charged[index] <= state["limit"]
            slot = _room_since(state, charged[index]) if has_room else -1
            opened_ns = state["raised_ns"][slot] if slot >= 0 else 0
            is_left = state["raises"] > 0 and state["new_end"] <= state["limit"] < charged[index]
            if is_left:
                opened_ns = time_ns
            if opened_ns - before_ns >= pause_ns:
                stall = stalls[count]
                count += 1
                stall["flow"], stall["position"] = flow_of[index], state["new_end"]
                stall["start_ns"], stall["opened_ns"] = before_ns, opened_ns
                stall["end_ns"], stall["needed_limit"] = time_ns, charged[index]
                if is_left:
                    stall["opened_limit"], stall["cause"] = state["limit"], BY_TIMEOUT
                else:
                    stall["opened_limit"] = state["raised_to"][slot]
                    stall["cause"] = BY_GAP if _is_by_gap(state, slot, before_ns) else BY_RECEIVER
            else:
                state["idle_count"] += 1
                state["idle_ns"] += time_ns - before_ns
        state["new_ns"], state["new_end"] = time_ns, end
        state["new_blocked_ns"] = state["blocked_ns"]
    return int(count)
