"""The fault rules at work: a datagram and its time of arrival in, datagrams out.

    datagram   | 1 | 2 | 3 | 4 | 5 |          2 dropped, 4 held, 5 duplicated
    leaves     | 1 |   | 3 |   | 5 | 5 |      each run of passing frames is one datagram
    later                              | 4 |

The unit of a decision is the frame: of a datagram only the chosen frames are touched, and one that
does not split cleanly into frames passes whole. Every datagram and every frame is accounted for:
in + added - dropped == out, once nothing waits any more. Pure: no clock, no socket, and what lies
around the frames is an opaque envelope.
"""

from typing import Any

from harness.artifact.decision import DROP, DUPLICATE, HOLD, NO_POSITION, SWAP
from harness.artifact.frame_class import DATA, PAD
from harness.dissect import layout
from harness.dissect.frames import aligned, class_of_first, class_of_next
from harness.kernel import kernel
from harness.middlebox import outbox as out
from harness.middlebox import waiting as wait
from harness.middlebox.encounter import Encounter, meet, splits_cleanly, wire_length
from harness.middlebox.rules import NO_RULE, class_index
from harness.middlebox.state import (
    DATAGRAMS_ADDED,
    DATAGRAMS_DROPPED,
    DATAGRAMS_IN,
    DATAGRAMS_OUT,
    DECISIONS,
    FRAMES_DROPPED,
    FRAMES_DUPLICATED,
    FRAMES_HELD,
    FRAMES_IN,
    FRAMES_OUT,
    FRAMES_SWAPPED,
    HOLD_OVERFLOWS,
    SWAP_BYTES,
    SWAPS,
    Engine,
)

_ALIGNMENT = layout.FRAME_ALIGNMENT
_PASS = 0
_NONE = -1


@kernel
def has_room(engine: Engine, envelope_length: int, length: int) -> bool:
    """Whether all that `offer` of such a datagram can cause surely fits outbox and decision log."""
    frames = 1 + length // _ALIGNMENT
    if engine.state[DECISIONS] + frames > len(engine.decisions):
        return False
    most = 2 * (length + frames * envelope_length) + engine.state[SWAP_BYTES]
    return out.has_room(engine.outbox, 2 * frames + engine.state[SWAPS], most)


@kernel
def offer(
    engine: Engine, buf: Any, at: int, envelope_length: int, length: int, link: int, now_ns: int
) -> None:
    """Take one datagram from a link direction; the owner has seen that it `has_room`.

    Shapes: buf uint8[n]: the envelope lies at `at`, then `length` bytes of frames
    Units:  now_ns is the time of arrival, from which delays count
    """
    engine.datagrams[link, DATAGRAMS_IN] += 1
    start = at + envelope_length
    end = start + length
    if splits_cleanly(buf, start, length):
        pieces = _take_frames(engine, buf, at, start, end, link, now_ns)
    else:
        _count_through(engine, buf, start, end, link)
        pieces = _send(engine, buf, at, start, start, end, link, now_ns)
    if pieces == 0:
        engine.datagrams[link, DATAGRAMS_DROPPED] += 1
    else:
        engine.datagrams[link, DATAGRAMS_ADDED] += pieces - 1


@kernel
def release(engine: Engine, now_ns: int) -> bool:
    """Send all that is due; False when the outbox is full and must be emptied first."""
    waiting = engine.waiting
    while wait.next_due_ns(waiting) <= now_ns:
        waiter = waiting.waiters[waiting.heap[0]]
        if not out.has_room(engine.outbox, 1, waiter["envelope_length"] + waiter["frame_length"]):
            return False
        slot = wait.pop(waiting)
        if not waiting.waiters[slot]["vacated"]:
            _unlink_swapped(engine, slot)
            _send_waiter(engine, slot)
        wait.give_back(waiting, slot)
    return True


@kernel
def _take_frames(
    engine: Engine, buf: Any, envelope: int, start: int, end: int, link: int, now_ns: int
) -> int:
    """Decide about each frame; returns the datagrams that this one becomes, now or later."""
    pieces = 0
    copies = 0
    run = at = start
    while at < end:
        frame = meet(engine, buf, at, end, link)
        at += frame.length
        action = _apply(engine, buf, envelope, start, link, now_ns, frame)
        if action in (_PASS, DUPLICATE):
            engine.frames[link, frame.kind, FRAMES_OUT] += 1
            if action == DUPLICATE:
                engine.copies[copies] = frame.at
                copies += 1
            if frame.session != _NONE and engine.sessions[frame.session]["swap_head"] != _NONE:
                pieces += _send_run(engine, buf, envelope, start, run, at, link, now_ns)
                run = at
                _send_swapped(engine, frame.session)
        else:
            pieces += _send_run(engine, buf, envelope, start, run, frame.at, link, now_ns)
            run = at
            if action != DROP:
                pieces += 1
    pieces += _send_run(engine, buf, envelope, start, run, end, link, now_ns)
    for index in range(copies):
        copy = engine.copies[index]
        code = class_of_first(buf, copy, end - copy)
        copy_end = copy + wire_length(buf, copy, end, code)
        engine.frames[link, class_index(code), FRAMES_OUT] += 1
        pieces += _send_run(engine, buf, envelope, start, copy, copy_end, link, now_ns)
    return pieces


@kernel
def _apply(
    engine: Engine,
    buf: Any,
    envelope: int,
    start: int,
    link: int,
    now_ns: int,
    frame: Encounter,
) -> int:
    """Carry out the rule that fired, if any; returns its action, or _PASS."""
    if frame.rule == NO_RULE:
        return _PASS
    rule = engine.rules[frame.rule]
    action = int(rule["action"])
    if action in (HOLD, SWAP) and not _keep_back(
        engine, buf, envelope, start, link, now_ns + rule["delay_ns"], frame, action
    ):
        engine.state[HOLD_OVERFLOWS] += 1
        return _PASS
    column = FRAMES_DROPPED
    if action == DUPLICATE:
        column = FRAMES_DUPLICATED
    elif action == HOLD:
        column = FRAMES_HELD
    elif action == SWAP:
        column = FRAMES_SWAPPED
    engine.frames[link, frame.kind, column] += 1
    _log(engine, link, now_ns, frame, action)
    return action


@kernel
def _log(engine: Engine, link: int, now_ns: int, frame: Encounter, action: int) -> None:
    assert engine.state[DECISIONS] < len(engine.decisions)
    row = engine.row[0]
    entry = engine.decisions[engine.state[DECISIONS]]
    entry["time_ns"] = now_ns
    entry["rule"] = frame.rule
    entry["action"] = action
    entry["link"] = link
    entry["frame_type"] = row["frame_type"]
    entry["flags"] = row["flags"]
    entry["timing_sensitive"] = 1 if frame.position == NO_POSITION else 0
    entry["session_id"] = row["session_id"]
    entry["stream_id"] = row["stream_id"]
    entry["term_id"] = row["term_id"]
    entry["term_offset"] = row["term_offset"]
    entry["frame_length"] = aligned(row["frame_length"])
    entry["position"] = frame.position
    entry["attempt"] = frame.attempt
    entry["delay_ns"] = engine.rules[frame.rule]["delay_ns"]
    engine.state[DECISIONS] += 1


@kernel
def _keep_back(
    engine: Engine,
    buf: Any,
    envelope: int,
    start: int,
    link: int,
    due_ns: int,
    frame: Encounter,
    action: int,
) -> bool:
    """Put a frame among the waiting; False when there is no room."""
    waiting = engine.waiting
    envelope_length = start - envelope
    if envelope_length + frame.length > waiting.buf.shape[1]:
        return False
    slot = wait.take(waiting, due_ns)
    if slot == wait.NONE:
        return False
    waiter = waiting.waiters[slot]
    waiter["link"] = link
    waiter["index"] = frame.kind
    waiter["envelope_length"] = envelope_length
    waiter["frame_length"] = frame.length
    kept = waiting.buf[slot]
    out.copy_bytes(kept, 0, buf, envelope, envelope_length)
    out.copy_bytes(kept, envelope_length, buf, frame.at, frame.length)
    if action == SWAP and frame.session != _NONE:
        _link_swapped(engine, slot, frame.session)
    return True


@kernel
def _link_swapped(engine: Engine, slot: int, index: int) -> None:
    waiters = engine.waiting.waiters
    session = engine.sessions[index]
    waiters[slot]["session"] = index
    if session["swap_head"] == _NONE:
        session["swap_head"] = slot
    else:
        waiters[session["swap_tail"]]["next"] = slot
    session["swap_tail"] = slot
    engine.state[SWAPS] += 1
    length = waiters[slot]["envelope_length"] + waiters[slot]["frame_length"]
    engine.state[SWAP_BYTES] += length


@kernel
def _unlink_swapped(engine: Engine, slot: int) -> None:
    """Take a frame out of its session's swap list, if it is on one."""
    waiters = engine.waiting.waiters
    if waiters[slot]["session"] == _NONE:
        return
    session = engine.sessions[waiters[slot]["session"]]
    before = _NONE
    at = session["swap_head"]
    while at != slot:
        before = at
        at = waiters[at]["next"]
    if before == _NONE:
        session["swap_head"] = waiters[slot]["next"]
    else:
        waiters[before]["next"] = waiters[slot]["next"]
    if session["swap_tail"] == slot:
        session["swap_tail"] = before
    engine.state[SWAPS] -= 1
    length = waiters[slot]["envelope_length"] + waiters[slot]["frame_length"]
    engine.state[SWAP_BYTES] -= length


@kernel
def _send_swapped(engine: Engine, index: int) -> None:
    """Send all swapped frames of a session, now that a neighbour has passed."""
    waiters = engine.waiting.waiters
    while engine.sessions[index]["swap_head"] != _NONE:
        slot = engine.sessions[index]["swap_head"]
        _unlink_swapped(engine, slot)
        _send_waiter(engine, slot)
        waiters[slot]["vacated"] = 1


@kernel
def _send_waiter(engine: Engine, slot: int) -> None:
    waiter = engine.waiting.waiters[slot]
    link = waiter["link"]
    middle = waiter["envelope_length"]
    out.put(
        engine.outbox, link, 0, engine.waiting.buf[slot], 0, middle, middle, waiter["frame_length"]
    )
    engine.datagrams[link, DATAGRAMS_OUT] += 1
    engine.frames[link, waiter["index"], FRAMES_OUT] += 1


@kernel
def _send_run(
    engine: Engine,
    buf: Any,
    envelope: int,
    start: int,
    run: int,
    run_end: int,
    link: int,
    now_ns: int,
) -> int:
    """Send neighbouring frames, if there are any, as one datagram; returns how many datagrams."""
    if run == run_end:
        return 0
    return _send(engine, buf, envelope, start, run, run_end, link, now_ns)


@kernel
def _send(
    engine: Engine,
    buf: Any,
    envelope: int,
    start: int,
    first: int,
    end: int,
    link: int,
    now_ns: int,
) -> int:
    out.put(engine.outbox, link, now_ns, buf, envelope, start - envelope, first, end - first)
    engine.datagrams[link, DATAGRAMS_OUT] += 1
    return 1


@kernel
def _count_through(engine: Engine, buf: Any, at: int, end: int, link: int) -> None:
    """Count the frames of a datagram that passes whole."""
    code = class_of_first(buf, at, end - at)
    walks = code in (DATA, PAD)
    while True:
        if walks:
            code = class_of_next(buf, at, end - at)
        engine.frames[link, class_index(code), FRAMES_IN] += 1
        engine.frames[link, class_index(code), FRAMES_OUT] += 1
        if code != DATA:
            return
        at += wire_length(buf, at, end, code)
