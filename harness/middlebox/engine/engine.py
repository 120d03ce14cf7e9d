"""Applies the fault rules to each frame of an arriving datagram, and emits the resulting datagrams.

    datagram   | 1 | 2 | 3 | 4 | 5 |          2 dropped, 4 held, 5 duplicated
    leaves     | 1 |   | 3 |   | 5 | 5 |      each run of passing frames is one datagram
    later                              | 4 |

Decisions are made per frame: only the matched frames of a datagram are affected. A datagram that
does not split cleanly into frames is forwarded whole. Every datagram and every frame is accounted
for: in + added - dropped == out, once no frame is held any more. The engine has no clock and no
socket, and treats the bytes around the frames as an opaque envelope.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.decision import (
    CORRUPT,
    DISPLACE,
    DROP,
    DUPLICATE,
    HOLD,
    INJECT,
    NO_POSITION,
    READDRESS,
    SWAP,
    TRUNCATE,
)
from windtunnel.harness.artifact.middlebox.frame_class import SM
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.dissect.frames.frames import aligned, class_of_first
from windtunnel.harness.middlebox.engine import holding
from windtunnel.harness.middlebox.engine import outbox as out
from windtunnel.harness.middlebox.engine.frame_match import (
    FrameMatch,
    match_frame,
    splits_cleanly,
    wire_length,
)
from windtunnel.harness.middlebox.engine.held_frames import ORDER
from windtunnel.harness.middlebox.engine.mutation import (
    count_frames,
    mutation_detail,
    send_forged,
    send_mutated,
)
from windtunnel.harness.middlebox.engine.state import (
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
    HELD_BYTES,
    HELD_COUNT,
    HOLD_OVERFLOWS,
    Engine,
    spread,
)
from windtunnel.harness.middlebox.rules import NO_RULE, class_index

_ALIGNMENT = layout.FRAME_ALIGNMENT
_PASS = 0
_NONE = -1


@kernel
def has_room(engine: Engine, envelope_length: int, length: int) -> bool:
    """Return whether the outbox and the decision log have room for the worst case of a call of
    `offer`.
    """
    frames = 1 + length // _ALIGNMENT
    if engine.state[DECISIONS] + frames > len(engine.decisions):
        return False
    datagrams, most = spread(engine.state, frames, length, envelope_length)
    return out.has_room(
        engine.outbox, datagrams + engine.state[HELD_COUNT], most + engine.state[HELD_BYTES]
    )


@kernel
def offer(
    engine: Engine, buf: Any, at: int, envelope_length: int, length: int, link: int, now_ns: int
) -> None:
    """Process one datagram of a link direction: apply the fault rules to its frames, and add the
    results to the outbox. The caller must have checked `has_room`.

    Shapes: buf uint8[n]: the envelope lies at `at`, then `length` bytes of frames
    Units:  `now_ns` is the time of arrival, from which delays are measured
    """
    engine.datagrams[link, DATAGRAMS_IN] += 1
    start = at + envelope_length
    end = start + length
    if splits_cleanly(buf, start, length):
        pieces = _take_frames(engine, buf, at, start, end, link, now_ns)
    else:
        count_frames(engine, buf, start, end, link, FRAMES_IN)
        pieces = _send(engine, buf, at, start, start, end, link, now_ns)
    if pieces == 0:
        engine.datagrams[link, DATAGRAMS_DROPPED] += 1
    else:
        engine.datagrams[link, DATAGRAMS_ADDED] += pieces - 1


@kernel
def release(engine: Engine, now_ns: int) -> bool:
    """Send all held frames that are due. Returns False if the outbox must be emptied before the
    rest can be sent.
    """
    return holding.release(engine, now_ns)


@kernel
def _take_frames(
    engine: Engine, buf: Any, envelope: int, start: int, end: int, link: int, now_ns: int
) -> int:
    """Apply the fault rules to each frame of a datagram. Returns the number of resulting datagrams,
    including those of held frames.
    """
    pieces = 0
    copied = 0
    run = at = start
    while at < end:
        frame = match_frame(engine, buf, at, end, link, now_ns)
        at += frame.length
        order = engine.held.counts[ORDER]
        action, kept = _apply_rule(engine, buf, envelope, start, link, now_ns, frame)
        pieces += kept
        if action == DUPLICATE and kept == 0:
            engine.copies[copied, 0] = frame.at
            engine.copies[copied, 1] = engine.rules[frame.rule]["copies"]
            copied += 1
        is_freeing = _notify_held(engine, frame, action, order)
        if action in (_PASS, DUPLICATE, INJECT):
            engine.frames[link, frame.kind, FRAMES_OUT] += 1
            if action == INJECT or is_freeing:
                pieces += _send_run(engine, buf, envelope, start, run, at, link, now_ns)
                run = at
            if action == INJECT:
                pieces += send_forged(engine, buf, envelope, start, link, frame)
        else:
            pieces += _send_run(engine, buf, envelope, start, run, frame.at, link, now_ns)
            run = at
            if action in (CORRUPT, TRUNCATE, READDRESS):
                detail = mutation_detail(engine, buf, link, frame)
                send_mutated(engine, buf, envelope, start, link, now_ns, frame, detail)
                pieces += 1
        if is_freeing:
            holding.send_released(engine, frame.session)
    pieces += _send_run(engine, buf, envelope, start, run, end, link, now_ns)
    return pieces + _send_copies(engine, buf, envelope, start, end, copied, link, now_ns)


@kernel
def _notify_held(engine: Engine, frame: FrameMatch, action: int, order: int) -> bool:
    """Update the held frames whose release depends on the current frame. Returns whether it
    releases any of them.

    `order` is the order of the first frame that was held because of this frame, if there is one.
    """
    if frame.session == _NONE or engine.sessions[frame.session]["held_head"] == _NONE:
        return False
    if frame.attempt != 0:
        is_absent = action in (DROP, HOLD, SWAP, DISPLACE)
        return not is_absent and holding.note_transmission(engine, frame, order)
    if engine.row[0]["frame_type"] == SM and frame.place != NO_POSITION:
        return holding.note_consumption(engine, frame.session, frame.place)
    return False


@kernel
def _apply_rule(
    engine: Engine,
    buf: Any,
    envelope: int,
    start: int,
    link: int,
    now_ns: int,
    frame: FrameMatch,
) -> tuple[int, int]:
    """Perform the part of a matching rule's action that holds frames and updates the counts, and
    record the decision.

    Returns: the rule's action or _PASS, and the number of frames added to the held frames
    """
    if frame.rule == NO_RULE:
        return _PASS, 0
    rule = engine.rules[frame.rule]
    action = int(rule["action"])
    kept = 0
    if action in (HOLD, SWAP, DISPLACE):
        kept = 1
    elif action == DUPLICATE and rule["delay_ns"] > 0:
        kept = int(rule["copies"])
    if kept > 0 and not holding.has_room(engine, start - envelope, frame.length, kept):
        engine.state[HOLD_OVERFLOWS] += 1
        return _PASS, 0
    for _ in range(kept):
        holding.hold(engine, buf, envelope, start, link, now_ns, frame)
    if action == DROP:
        engine.frames[link, frame.kind, FRAMES_DROPPED] += 1
    elif action == DUPLICATE:
        engine.frames[link, frame.kind, FRAMES_DUPLICATED] += rule["copies"]
    elif action == HOLD:
        engine.frames[link, frame.kind, FRAMES_HELD] += 1
    elif action in (SWAP, DISPLACE):
        engine.frames[link, frame.kind, FRAMES_SWAPPED] += 1
    _log(engine, buf, link, now_ns, frame, action)
    return action, kept


@kernel
def _log(engine: Engine, buf: Any, link: int, now_ns: int, frame: FrameMatch, action: int) -> None:
    assert engine.state[DECISIONS] < len(engine.decisions)
    row = engine.row[0]
    rule = engine.rules[frame.rule]
    is_timely = frame.position == NO_POSITION or rule["is_timed"] != 0
    entry = engine.decisions[engine.state[DECISIONS]]
    entry["time_ns"] = now_ns
    entry["rule"] = frame.rule
    entry["action"] = action
    entry["link"] = link
    entry["frame_type"] = row["frame_type"]
    entry["flags"] = row["flags"]
    entry["timing_sensitive"] = 1 if is_timely else 0
    entry["session_id"] = row["session_id"]
    entry["stream_id"] = row["stream_id"]
    entry["term_id"] = row["term_id"]
    entry["term_offset"] = row["term_offset"]
    entry["frame_length"] = aligned(row["frame_length"])
    entry["position"] = frame.position
    entry["attempt"] = frame.attempt
    entry["delay_ns"] = rule["delay_ns"]
    entry["detail"] = mutation_detail(engine, buf, link, frame)
    entry["order"] = frame.order
    entry["session"] = engine.sessions[frame.session]["number"] if frame.attempt != 0 else 0
    engine.state[DECISIONS] += 1


@kernel
def _send_copies(
    engine: Engine,
    buf: Any,
    envelope: int,
    start: int,
    end: int,
    copied: int,
    link: int,
    now_ns: int,
) -> int:
    """Send the copies of frames that a rule duplicates without delay. Returns the number of
    datagrams.
    """
    pieces = 0
    for index in range(copied):
        copy = engine.copies[index, 0]
        code = class_of_first(buf, copy, end - copy)
        copy_end = copy + wire_length(buf, copy, end, code)
        for _ in range(engine.copies[index, 1]):
            engine.frames[link, class_index(code), FRAMES_OUT] += 1
            pieces += _send(engine, buf, envelope, start, copy, copy_end, link, now_ns)
    return pieces


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
    """Send adjacent frames, if there are any, as one datagram. Returns the number of datagrams."""
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
    out.put(engine.outbox, link, now_ns, buf, envelope, start - envelope, buf, first, end - first)
    engine.datagrams[link, DATAGRAMS_OUT] += 1
    return 1
