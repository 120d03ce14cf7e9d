"""Frames that leave late: put among the waiting, and set free by time or by an event.

    session -> kept_head -> slot -> slot -> ... kept_tail        those that wait for an event

    frames       so many others of the session have passed
    advance      the session has come by so far
    repetition   the same position has passed again
    consumption  the receiver has said that it needs no more of what lies before

Whatever they wait for, time sets them free at last.
"""

from typing import Any

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.harness.middlebox.engine import held_frames as wait
from windtunnel.harness.middlebox.engine import outbox as out
from windtunnel.harness.middlebox.engine.frame_match import Encounter
from windtunnel.harness.middlebox.engine.state import (
    DATAGRAMS_OUT,
    FRAMES_OUT,
    KEPT,
    KEPT_BYTES,
    Engine,
)
from windtunnel.harness.middlebox.rules import (
    BY_ADVANCE,
    BY_CONSUMPTION,
    BY_FRAMES,
    BY_REPETITION,
    BY_TIME,
)

_NONE = -1


@allocating_kernel
def has_room(engine: Engine, envelope_length: int, length: int, count: int) -> bool:
    """Whether a frame of this length can wait so many times over."""
    waiting = engine.waiting
    is_fitting = envelope_length + length <= waiting.buf.shape[1]
    return bool(is_fitting and waiting.counts[wait.FREE] >= count)


@allocating_kernel
def keep(
    engine: Engine, buf: Any, envelope: int, start: int, link: int, now_ns: int, frame: Encounter
) -> None:
    """Put a frame, or a copy of it, among the waiting, where it `has_room`."""
    waiting = engine.waiting
    rule = engine.rules[frame.rule]
    envelope_length = start - envelope
    slot = wait.take(waiting, now_ns + rule["delay_ns"])
    assert slot != wait.NONE
    waiter = waiting.waiters[slot]
    waiter["link"] = link
    waiter["index"] = frame.kind
    waiter["envelope_length"] = envelope_length
    waiter["frame_length"] = frame.length
    kept = waiting.buf[slot]
    out.copy_bytes(kept, 0, buf, envelope, envelope_length)
    out.copy_bytes(kept, envelope_length, buf, frame.at, frame.length)
    if rule["ending"] != BY_TIME and frame.session != _NONE:
        waiter["ending"] = rule["ending"]
        waiter["value"] = _value(rule, frame)
        _link(engine, slot, frame.session)


@allocating_kernel
def _value(rule: Any, frame: Encounter) -> int:
    """What the event that ends a hold is measured by."""
    ending = rule["ending"]
    if ending == BY_FRAMES:
        return int(rule["ending_value"])
    if ending == BY_ADVANCE:
        return int(frame.place + rule["ending_value"])
    return frame.place + frame.extent if ending == BY_CONSUMPTION else frame.place


@allocating_kernel
def note_passage(engine: Engine, frame: Encounter, order: int) -> bool:
    """Tell those that wait that a frame of their session passes; whether it frees any.

    Only those that were there before it: of an `order` below the one that was the next then. Its
    own copies wait for what comes behind it.
    """
    waiters = engine.waiting.waiters
    is_any_free = False
    slot = engine.sessions[frame.session]["kept_head"]
    while slot != _NONE:
        waiter = waiters[slot]
        ending = waiter["ending"]
        if waiter["order"] >= order:
            break
        if ending == BY_FRAMES:
            waiter["value"] -= 1
            waiter["is_freed"] = 1 if waiter["value"] <= 0 else 0
        elif ending == BY_ADVANCE:
            waiter["is_freed"] = 1 if frame.place + frame.extent >= waiter["value"] else 0
        elif ending == BY_REPETITION:
            waiter["is_freed"] = 1 if frame.place == waiter["value"] else 0
        is_any_free |= waiter["is_freed"] != 0
        slot = waiter["next"]
    return bool(is_any_free)


@allocating_kernel
def note_consumption(engine: Engine, session: int, position: int) -> bool:
    """Tell those that wait how far a receiver has consumed their session; whether it frees any."""
    waiters = engine.waiting.waiters
    is_any_free = False
    slot = engine.sessions[session]["kept_head"]
    while slot != _NONE:
        waiter = waiters[slot]
        if waiter["ending"] == BY_CONSUMPTION and position >= waiter["value"]:
            waiter["is_freed"] = 1
            is_any_free = True
        slot = waiter["next"]
    return is_any_free


@allocating_kernel
def send_freed(engine: Engine, session: int) -> None:
    """Send all frames of a session whose event has come, in the order in which they came."""
    waiters = engine.waiting.waiters
    slot = engine.sessions[session]["kept_head"]
    while slot != _NONE:
        following = waiters[slot]["next"]
        if waiters[slot]["is_freed"] != 0:
            _unlink(engine, slot)
            _send(engine, slot)
            wait.remove(engine.waiting, slot)
            wait.give_back(engine.waiting, slot)
        slot = following


@allocating_kernel
def release(engine: Engine, now_ns: int) -> bool:
    """Send all that is due; False when the outbox is full and must be emptied first."""
    waiting = engine.waiting
    while wait.next_due_ns(waiting) <= now_ns:
        waiter = waiting.waiters[waiting.heap[0]]
        if not out.has_room(engine.outbox, 1, waiter["envelope_length"] + waiter["frame_length"]):
            return False
        slot = wait.pop(waiting)
        _unlink(engine, slot)
        _send(engine, slot)
        wait.give_back(waiting, slot)
    return True


@allocating_kernel
def _link(engine: Engine, slot: int, index: int) -> None:
    waiters = engine.waiting.waiters
    session = engine.sessions[index]
    waiters[slot]["session"] = index
    if session["kept_head"] == _NONE:
        session["kept_head"] = slot
    else:
        waiters[session["kept_tail"]]["next"] = slot
    session["kept_tail"] = slot
    engine.state[KEPT] += 1
    length = waiters[slot]["envelope_length"] + waiters[slot]["frame_length"]
    engine.state[KEPT_BYTES] += length


@allocating_kernel
def _unlink(engine: Engine, slot: int) -> None:
    """Take a frame out of its session's list, if it is on one."""
    waiters = engine.waiting.waiters
    if waiters[slot]["session"] == _NONE:
        return
    session = engine.sessions[waiters[slot]["session"]]
    before = _NONE
    at = session["kept_head"]
    while at != slot:
        before = at
        at = waiters[at]["next"]
    if before == _NONE:
        session["kept_head"] = waiters[slot]["next"]
    else:
        waiters[before]["next"] = waiters[slot]["next"]
    if session["kept_tail"] == slot:
        session["kept_tail"] = before
    engine.state[KEPT] -= 1
    length = waiters[slot]["envelope_length"] + waiters[slot]["frame_length"]
    engine.state[KEPT_BYTES] -= length


@allocating_kernel
def _send(engine: Engine, slot: int) -> None:
    waiter = engine.waiting.waiters[slot]
    link = waiter["link"]
    middle = waiter["envelope_length"]
    kept = engine.waiting.buf[slot]
    out.put(engine.outbox, link, 0, kept, 0, middle, kept, middle, waiter["frame_length"])
    engine.datagrams[link, DATAGRAMS_OUT] += 1
    engine.frames[link, waiter["index"], FRAMES_OUT] += 1
