"""Holds frames until they are due, or until an event releases them earlier.

    session -> held_head -> slot -> slot -> ... held_tail        those that wait for an event

    frames       this many other frames of the session have passed
    advance      the session has advanced this far
    repetition   the same position was transmitted again
    consumption  the receiver has consumed everything before the end of the frame

A frame that waits for an event is released at its due time at the latest.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.middlebox.engine import held_frames
from windtunnel.harness.middlebox.engine import outbox as out
from windtunnel.harness.middlebox.engine.frame_match import FrameMatch
from windtunnel.harness.middlebox.engine.state import (
    DATAGRAMS_OUT,
    FRAMES_OUT,
    HELD_BYTES,
    HELD_COUNT,
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


@kernel
def has_room(engine: Engine, envelope_length: int, length: int, count: int) -> bool:
    """Return whether the pool of held frames has room for `count` more frames of this length."""
    held = engine.held
    is_fitting = envelope_length + length <= held.buf.shape[1]
    return bool(is_fitting and held.counts[held_frames.FREE] >= count)


@kernel
def hold(
    engine: Engine, buf: Any, envelope: int, start: int, link: int, now_ns: int, frame: FrameMatch
) -> None:
    """Hold a frame, or a copy of it, until it is due or released. The caller must have checked
    `has_room`.
    """
    held = engine.held
    rule = engine.rules[frame.rule]
    envelope_length = start - envelope
    slot = held_frames.allocate(held, now_ns + rule["delay_ns"])
    assert slot != held_frames.NONE
    record = held.records[slot]
    record["link"] = link
    record["index"] = frame.kind
    record["envelope_length"] = envelope_length
    record["frame_length"] = frame.length
    kept = held.buf[slot]
    out.copy_bytes(kept, 0, buf, envelope, envelope_length)
    out.copy_bytes(kept, envelope_length, buf, frame.at, frame.length)
    if rule["ending"] != BY_TIME and frame.session != _NONE:
        record["ending"] = rule["ending"]
        record["value"] = _value(rule, frame)
        _link(engine, slot, frame.session)


@kernel
def _value(rule: Any, frame: FrameMatch) -> int:
    """Return the value at which an event releases a held frame: a number of frames or a stream
    position, depending on the kind of event.
    """
    ending = rule["ending"]
    if ending == BY_FRAMES:
        return int(rule["ending_value"])
    if ending == BY_ADVANCE:
        return int(frame.place + rule["ending_value"])
    return frame.place + frame.extent if ending == BY_CONSUMPTION else frame.place


@kernel
def note_transmission(engine: Engine, frame: FrameMatch, order: int) -> bool:
    """Update the held frames of a session after another of its frames has passed. Returns whether
    this releases any of them.

    This affects only frames that were held before the passing frame, whose order is below `order`.
    Copies of the passing frame itself wait for the frames after it.
    """
    records = engine.held.records
    is_any_free = False
    slot = engine.sessions[frame.session]["held_head"]
    while slot != _NONE:
        record = records[slot]
        ending = record["ending"]
        if record["order"] >= order:
            break
        if ending == BY_FRAMES:
            record["value"] -= 1
            record["is_released"] = 1 if record["value"] <= 0 else 0
        elif ending == BY_ADVANCE:
            record["is_released"] = 1 if frame.place + frame.extent >= record["value"] else 0
        elif ending == BY_REPETITION:
            record["is_released"] = 1 if frame.place == record["value"] else 0
        is_any_free |= record["is_released"] != 0
        slot = record["next"]
    return bool(is_any_free)


@kernel
def note_consumption(engine: Engine, session: int, position: int) -> bool:
    """Update the held frames of a session after a receiver has consumed its stream up to
    `position`.

    Returns whether any held frame is released.
    """
    records = engine.held.records
    is_any_free = False
    slot = engine.sessions[session]["held_head"]
    while slot != _NONE:
        record = records[slot]
        if record["ending"] == BY_CONSUMPTION and position >= record["value"]:
            record["is_released"] = 1
            is_any_free = True
        slot = record["next"]
    return is_any_free


@kernel
def send_released(engine: Engine, session: int) -> None:
    """Send all released frames of a session, in order of arrival."""
    records = engine.held.records
    slot = engine.sessions[session]["held_head"]
    while slot != _NONE:
        following = records[slot]["next"]
        if records[slot]["is_released"] != 0:
            _unlink(engine, slot)
            _send(engine, slot)
            held_frames.remove(engine.held, slot)
            held_frames.free_slot(engine.held, slot)
        slot = following


@kernel
def release(engine: Engine, now_ns: int) -> bool:
    """Send all held frames that are due. Returns False if the outbox must be emptied before the
    rest can be sent.
    """
    held = engine.held
    while held_frames.next_due_ns(held) <= now_ns:
        record = held.records[held.heap[0]]
        if not out.has_room(engine.outbox, 1, record["envelope_length"] + record["frame_length"]):
            return False
        slot = held_frames.pop(held)
        _unlink(engine, slot)
        _send(engine, slot)
        held_frames.free_slot(held, slot)
    return True


@kernel
def _link(engine: Engine, slot: int, index: int) -> None:
    records = engine.held.records
    session = engine.sessions[index]
    records[slot]["session"] = index
    if session["held_head"] == _NONE:
        session["held_head"] = slot
    else:
        records[session["held_tail"]]["next"] = slot
    session["held_tail"] = slot
    engine.state[HELD_COUNT] += 1
    length = records[slot]["envelope_length"] + records[slot]["frame_length"]
    engine.state[HELD_BYTES] += length


@kernel
def _unlink(engine: Engine, slot: int) -> None:
    """Remove a held frame from its session's list of held frames, if it is listed there."""
    records = engine.held.records
    if records[slot]["session"] == _NONE:
        return
    session = engine.sessions[records[slot]["session"]]
    before = _NONE
    at = session["held_head"]
    while at != slot:
        before = at
        at = records[at]["next"]
    if before == _NONE:
        session["held_head"] = records[slot]["next"]
    else:
        records[before]["next"] = records[slot]["next"]
    if session["held_tail"] == slot:
        session["held_tail"] = before
    engine.state[HELD_COUNT] -= 1
    length = records[slot]["envelope_length"] + records[slot]["frame_length"]
    engine.state[HELD_BYTES] -= length


@kernel
def _send(engine: Engine, slot: int) -> None:
    record = engine.held.records[slot]
    link = record["link"]
    middle = record["envelope_length"]
    kept = engine.held.buf[slot]
    out.put(engine.outbox, link, 0, kept, 0, middle, kept, middle, record["frame_length"])
    engine.datagrams[link, DATAGRAMS_OUT] += 1
    engine.frames[link, record["index"], FRAMES_OUT] += 1
