"""One frame met on a link: what it is, where it lies in its stream, and which rule fires for it.

    DATA, PAD of a known session   keyed by position and attempt
    any other of a known stream    keyed by order of appearance, so sensitive to timing
    of no stream of the case       never chosen

Meeting a frame counts it, so a frame must be met exactly once. Refuses to know what actions do.
"""

from typing import Any, NamedTuple

from harness.artifact.decision import NO_POSITION
from harness.artifact.frame_class import DATA, MALFORMED, PAD, SETUP
from harness.dissect import layout
from harness.dissect.bytes_at import i32_le
from harness.dissect.frames import aligned, class_of_first, class_of_next, fill
from harness.kernel import kernel
from harness.middlebox import sessions as known
from harness.middlebox.prf import subject
from harness.middlebox.rules import NO_RULE, class_index, first_that_fires
from harness.middlebox.state import FRAMES_IN, SEED, SESSION_OVERFLOWS, SESSIONS, SLOTS, Engine

_DATA_HEADER = layout.DATA_HEADER_LENGTH
_NONE = known.NONE


class Encounter(NamedTuple):
    """A frame and its fate; what the frame says of itself is in the engine's `row`."""

    at: int
    length: int  # in the datagram
    kind: int  # class index
    session: int  # index of its session, or -1
    position: int  # or NO_POSITION
    attempt: int  # 0 without a position
    rule: int  # that fired, or NO_RULE


@kernel
def splits_cleanly(buf: Any, at: int, length: int) -> bool:
    """Whether a datagram is whole frames and nothing else."""
    end = at + length
    code = class_of_first(buf, at, length)
    while code in (DATA, PAD) and at < end:
        code = class_of_next(buf, at, end - at)
        if code != MALFORMED:
            at += wire_length(buf, at, end, code)
    return code != MALFORMED


@kernel
def wire_length(buf: Any, at: int, end: int, code: int) -> int:
    """The bytes of a frame in its datagram; a PAD occupies more than that in its term."""
    if code == DATA:
        return aligned(i32_le(buf, at))
    return _DATA_HEADER if code == PAD else end - at


@kernel
def meet(engine: Engine, buf: Any, at: int, end: int, link: int) -> Encounter:
    """Count a frame of a clean datagram in, place it, and see which rule fires."""
    code = class_of_first(buf, at, end - at)
    index = class_index(code)
    length = wire_length(buf, at, end, code)
    engine.frames[link, index, FRAMES_IN] += 1
    _read(engine.row[0], buf, at, length, code)
    ordinal = _stream_ordinal(engine.streams, engine.row[0]["stream_id"])
    if code == SETUP and ordinal != _NONE:
        _learn(engine, buf, at, link)
    session, position, attempt = _NONE, NO_POSITION, 0
    if code in (DATA, PAD):
        session, position, attempt = _place(engine, link)
    rule = _rule(engine, link, index, ordinal, position, attempt)
    return Encounter(at, length, index, session, position, attempt, rule)


@kernel
def _read(row: Any, buf: Any, at: int, length: int, code: int) -> None:
    row["flags"] = 0
    row["frame_length"] = 0
    row["session_id"] = 0
    row["stream_id"] = 0
    row["term_id"] = 0
    row["term_offset"] = 0
    fill(row, buf, at, length, code)


@kernel
def _learn(engine: Engine, buf: Any, at: int, link: int) -> None:
    state = engine.state
    sessions, slots, had_room = known.learn(
        engine.sessions, state[SESSIONS], state[SLOTS], len(engine.attempts), buf, at, link
    )
    state[SESSIONS] = sessions
    state[SLOTS] = slots
    if not had_room:
        state[SESSION_OVERFLOWS] += 1


@kernel
def _place(engine: Engine, link: int) -> tuple[int, int, int]:
    """Session, position and attempt of the DATA or PAD frame in `row`."""
    row = engine.row[0]
    term_id = int(row["term_id"])
    term_offset = int(row["term_offset"])
    count = engine.state[SESSIONS]
    index = known.find(engine.sessions, count, link, row["session_id"], row["stream_id"])
    if index == _NONE:
        return _NONE, NO_POSITION, 0
    session = engine.sessions[index]
    if not known.has_place(session, term_id, term_offset):
        return _NONE, NO_POSITION, 0
    attempt = known.next_attempt(engine.attempts, session, term_id, term_offset)
    return index, known.position(session, term_id, term_offset), attempt


@kernel
def _rule(engine: Engine, link: int, index: int, ordinal: int, position: int, attempt: int) -> int:
    if ordinal == _NONE:
        return NO_RULE
    seed = engine.state[SEED]
    if position != NO_POSITION:
        what = subject(link, index, ordinal, 0)
        return first_that_fires(engine.rules, seed, link, index, what, position, attempt)
    order = engine.orders[link, index, ordinal]
    engine.orders[link, index, ordinal] += 1
    what = subject(link, index, ordinal, 1)
    return first_that_fires(engine.rules, seed, link, index, what, order, 0)


@kernel
def _stream_ordinal(streams: Any, stream_id: int) -> int:
    for ordinal in range(len(streams)):
        if streams[ordinal] == stream_id:
            return ordinal
    return _NONE
