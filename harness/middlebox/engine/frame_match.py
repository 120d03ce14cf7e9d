"""Classifies a frame, finds its stream position, and finds the first rule that matches it.

    DATA, PAD of a known session   keyed by position and attempt
    any other of a known stream    keyed by order of appearance, so sensitive to timing
    SM of no stream                the same: a receiver solicits a SETUP from any sender
    of no stream of the case       never matched

A replay searches the table of recorded decisions instead of the rules.

Matching a frame counts it, so a frame must be matched exactly once.
"""

from typing import Any, NamedTuple

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.decision import NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import (
    DATA,
    HEARTBEAT,
    MALFORMED,
    NAK,
    PAD,
    SETUP,
    SM,
)
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.dissect.frames.bytes_at import i32_le
from windtunnel.harness.dissect.frames.frames import aligned, class_of_first, class_of_next, fill
from windtunnel.harness.middlebox.engine import replayed_decisions
from windtunnel.harness.middlebox.engine import sessions as known
from windtunnel.harness.middlebox.engine.prf import subject
from windtunnel.harness.middlebox.engine.rule_draw import matches
from windtunnel.harness.middlebox.engine.selection import FrameProperties, selects
from windtunnel.harness.middlebox.engine.state import (
    FIRST_DATA_NS,
    FRAMES_IN,
    FRAMES_OTHER_STREAMS,
    IS_REPLAY,
    MATCHED,
    SEED,
    SESSION_OVERFLOWS,
    SESSIONS,
    SLOTS,
    TRIED,
    Engine,
)
from windtunnel.harness.middlebox.rules import NO_RULE, class_index, draw_link

_DATA_HEADER = layout.DATA_HEADER_LENGTH
_NONE = known.NONE


class FrameMatch(NamedTuple):
    """A frame and the rule that matches it. The frame's header fields are in the engine's `row`."""

    at: int
    length: int  # in the datagram
    kind: int  # class index
    session: int  # index of its session, or -1
    position: int  # stream position, or NO_POSITION
    attempt: int  # number of the transmission, 0 without a position
    order: int  # order of appearance, 0 with a position
    place: int  # first stream byte that it refers to (also SM, NAK), or NO_POSITION
    extent: int  # length of that range, at least 1
    rule: int  # index of the matching rule, or NO_RULE
    replayed_index: int  # index of the recorded decision in a replay, or -1


@kernel
def splits_cleanly(buf: Any, at: int, length: int) -> bool:
    """Return whether a datagram consists of whole frames only."""
    end = at + length
    code = class_of_first(buf, at, length)
    while code in (DATA, PAD) and at < end:
        code = class_of_next(buf, at, end - at)
        if code != MALFORMED:
            at += wire_length(buf, at, end, code)
    return code != MALFORMED


@kernel
def wire_length(buf: Any, at: int, end: int, code: int) -> int:
    """Return the number of bytes that a frame occupies in its datagram. A PAD frame is sent as a
    header only.
    """
    if code == DATA:
        return aligned(i32_le(buf, at))
    return _DATA_HEADER if code == PAD else end - at


@kernel
def match_frame(engine: Engine, buf: Any, at: int, end: int, link: int, now_ns: int) -> FrameMatch:
    """Count one frame of a well-formed datagram, determine its stream position, and find the rule
    that matches it.
    """
    code = class_of_first(buf, at, end - at)
    kind = class_index(code)
    length = wire_length(buf, at, end, code)
    engine.frames[link, kind, FRAMES_IN] += 1
    row = engine.row[0]
    _read(row, buf, at, length, code)
    ordinal = _stream_ordinal(engine.streams, row, code)
    if ordinal == _NONE:
        engine.frames[link, kind, FRAMES_OTHER_STREAMS] += 1
        return FrameMatch(
            at, length, kind, _NONE, NO_POSITION, 0, 0, NO_POSITION, 1, NO_RULE, _NONE
        )
    if code == SETUP:
        _learn_session(engine, buf, at, link)
    session = _session(engine, link, code)
    place = _place(engine, session, code)
    extent = _extent(row, code)
    attempt, order = 0, 0
    if code in (DATA, PAD) and place != NO_POSITION:
        attempt = known.next_attempt(
            engine.attempts, engine.sessions[session], row["term_id"], row["term_offset"]
        )
        if engine.state[FIRST_DATA_NS] == 0:
            engine.state[FIRST_DATA_NS] = now_ns
    else:
        engine.orders[link, kind, ordinal] += 1
        order = int(engine.orders[link, kind, ordinal])
    flags = int(row["flags"])
    properties = FrameProperties(
        link, kind, ordinal, session, flags, length, place, extent, attempt, order, now_ns
    )
    rule, replayed_index = NO_RULE, _NONE
    if engine.state[IS_REPLAY] != 0:
        replayed_index = _replayed_decision(engine, properties)
        if replayed_index != _NONE:
            rule = int(engine.replayed[replayed_index]["rule"])
    else:
        rule = _first_match(engine, properties)
    position = NO_POSITION
    if attempt != 0:
        position = place
        _note_progress(engine, ordinal, place + extent, now_ns)
    return FrameMatch(
        at, length, kind, session, position, attempt, order, place, extent, rule, replayed_index
    )


@kernel
def _read(row: Any, buf: Any, at: int, length: int, code: int) -> None:
    row["flags"] = 0
    row["frame_length"] = 0
    row["session_id"] = 0
    row["stream_id"] = 0
    row["term_id"] = 0
    row["term_offset"] = 0
    row["receiver_id"] = 0
    fill(row, buf, at, length, code)


@kernel
def _note_progress(engine: Engine, ordinal: int, position: int, now_ns: int) -> None:
    """Record a stream's progress, and activate the rules that wait for the position that the stream
    has reached.
    """
    # A stream has reached nothing before its first frame, not even its initial position.
    if position <= engine.reached[ordinal]:
        return
    engine.reached[ordinal] = position
    for rule in range(len(engine.rules)):
        record = engine.rules[rule]
        if (
            record["reached_ordinal"] == ordinal
            and record["reached_position"] <= position
            and engine.active_since_ns[rule] == 0
        ):
            engine.active_since_ns[rule] = now_ns


@kernel
def _learn_session(engine: Engine, buf: Any, at: int, link: int) -> None:
    state = engine.state
    sessions, slots, had_room = known.learn(
        engine.sessions, state[SESSIONS], state[SLOTS], len(engine.attempts), buf, at, link
    )
    state[SESSIONS] = sessions
    state[SLOTS] = slots
    if not had_room:
        state[SESSION_OVERFLOWS] += 1


@kernel
def _session(engine: Engine, link: int, code: int) -> int:
    """Return the index of the session that the frame in `row` belongs to or replies to, or -1 if
    the session is unknown.
    """
    row = engine.row[0]
    count = engine.state[SESSIONS]
    found = known.find(engine.sessions, count, link, row["session_id"], row["stream_id"])
    if found == _NONE and code not in (DATA, PAD, HEARTBEAT, SETUP):
        found = known.find(engine.sessions, count, link ^ 1, row["session_id"], row["stream_id"])
    return found


@kernel
def _place(engine: Engine, session: int, code: int) -> int:
    """Return the stream position that the frame in `row` refers to, or NO_POSITION if unknown."""
    if session == _NONE or code not in (DATA, PAD, HEARTBEAT, SETUP, SM, NAK):
        return NO_POSITION
    row = engine.row[0]
    term_id, term_offset = int(row["term_id"]), int(row["term_offset"])
    if not known.has_place(engine.sessions[session], term_id, term_offset):
        return NO_POSITION
    return known.position(engine.sessions[session], term_id, term_offset)


@kernel
def _extent(row: Any, code: int) -> int:
    """Return the number of stream bytes that the frame in `row` refers to."""
    if code in (DATA, PAD):
        return aligned(row["frame_length"])
    return max(1, int(row["nak_length"])) if code == NAK else 1


@kernel
def _first_match(engine: Engine, properties: FrameProperties) -> int:
    seed = engine.state[SEED]
    by_order = 1 if properties.attempt == 0 else 0
    place = properties.order - 1 if by_order else properties.place
    chain = properties.session
    if by_order:
        streams = engine.orders.shape[2]
        chain = (
            len(engine.sessions)
            + (properties.link * engine.frames.shape[1] + properties.kind) * streams
        )
        chain += properties.ordinal
    for rule in range(len(engine.rules)):
        if selects(engine, rule, properties):
            engine.tallies[rule, TRIED] += 1
            link = draw_link(engine.rules[rule]["shared_link"], properties.link)
            what = subject(link, properties.kind, properties.ordinal, by_order)
            if matches(
                engine.rules, engine.chains, rule, chain, seed, what, place, properties.attempt
            ):
                engine.tallies[rule, MATCHED] += 1
                return rule
    return NO_RULE


@kernel
def _replayed_decision(engine: Engine, properties: FrameProperties) -> int:
    """Return the index of the recorded decision that the replay applies to a frame, or -1 if there
    is none.
    """
    number, place = 0, properties.order
    if properties.attempt != 0:
        number, place = int(engine.sessions[properties.session]["number"]), properties.place
    what = replayed_decisions.kind_of_frame(
        properties.link, properties.kind, properties.ordinal, number
    )
    found = replayed_decisions.find(engine.replayed, what, place, properties.attempt)
    if found != _NONE:
        replayed_index = engine.replayed[found]
        replayed_index["is_used"] = 1
        engine.tallies[replayed_index["rule"], TRIED] += 1
        engine.tallies[replayed_index["rule"], MATCHED] += 1
    return found


@kernel
def _stream_ordinal(streams: Any, row: Any, code: int) -> int:
    """Return the index (ordinal) of the frame's stream in the case (resolved scenario), or -1 if
    the case has no such stream.

    An SM to any sender names no stream and has the ordinal after the last stream.
    """
    for ordinal in range(len(streams)):
        if streams[ordinal] == row["stream_id"]:
            return ordinal
    is_to_anyone = code == SM and row["stream_id"] == 0 and row["session_id"] == 0
    return len(streams) if is_to_anyone else _NONE
