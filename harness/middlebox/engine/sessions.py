"""Computes a frame's stream position, and counts its transmissions on a link.

    SETUP  ->  SESSION: initial term id, term length, a region of the attempts table
    DATA   ->  position = (term id - initial term id) * term length + term offset
               attempts[region + term count mod 4][offset / 32] = | term count + 1 | attempt |

Each slot of the table records the term count for which it was last used, so the table never needs
clearing: a slot with an older term count is unused. Four terms are kept, one more than in a log
buffer.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.dissect.frames.bytes_at import i32_le

SESSION = np.dtype(
    [
        ("session_id", "<i8"),
        ("stream_id", "<i8"),
        ("link", "<i8"),  # link direction of its DATA frames
        ("initial_term_id", "<i8"),
        ("term_length", "<i8"),
        ("region", "<i8"),  # first slot in the attempts table
        ("number", "<i8"),  # number among the sessions of its stream between two hosts, from 1
        ("held_head", "<i8"),  # first held frame that waits for an event, a slot of `held`
        ("held_tail", "<i8"),  # last held frame that waits; both are NONE if none waits
    ]
)

NONE = -1
TERMS_KEPT = 4
TERM_LENGTH_MIN = 1 << 16
TERM_LENGTH_MAX = 1 << 30

_ALIGNMENT = layout.FRAME_ALIGNMENT
_ATTEMPT_BITS = 32
_SETUP_SESSION = layout.SETUP.field("session_id").offset
_SETUP_STREAM = layout.SETUP.field("stream_id").offset
_SETUP_INITIAL = layout.SETUP.field("initial_term_id").offset
_SETUP_LENGTH = layout.SETUP.field("term_length").offset


@kernel
def region_slots(term_length: int) -> int:
    """Return the number of slots in the table of transmission counts that one session needs."""
    return TERMS_KEPT * (term_length // _ALIGNMENT)


@kernel
def find(sessions: Any, count: int, link: int, session_id: int, stream_id: int) -> int:
    """Return the index of the session with this link, session id and stream id, or NONE."""
    for index in range(count):
        if (
            sessions[index]["session_id"] == session_id
            and sessions[index]["stream_id"] == stream_id
            and sessions[index]["link"] == link
        ):
            return index
    return NONE


@kernel
def learn(
    sessions: Any, count: int, slots_used: int, slots: int, buf: Any, at: int, link: int
) -> tuple[int, int, bool]:
    """Record a session's parameters from a SETUP frame. If they differ from the recorded ones,
    restart the session's transmission counts.

    Shapes:  buf uint8[n], a whole SETUP at `at`
    Returns: the numbers of sessions and slots now used, and False if there was no room for a new
             session
    """
    term_length = i32_le(buf, at + _SETUP_LENGTH)
    well_formed = TERM_LENGTH_MIN <= term_length <= TERM_LENGTH_MAX
    if not well_formed or term_length & (term_length - 1):
        return count, slots_used, True
    session_id = i32_le(buf, at + _SETUP_SESSION)
    stream_id = i32_le(buf, at + _SETUP_STREAM)
    initial_term_id = i32_le(buf, at + _SETUP_INITIAL)
    known = find(sessions, count, link, session_id, stream_id)
    if (
        known != NONE
        and sessions[known]["initial_term_id"] == initial_term_id
        and sessions[known]["term_length"] == term_length
    ):
        return count, slots_used, True
    slots_needed = region_slots(term_length)
    if (known == NONE and count == len(sessions)) or slots_used + slots_needed > slots:
        return count, slots_used, False
    if known == NONE:
        known = count
        sessions[known]["session_id"] = session_id
        sessions[known]["stream_id"] = stream_id
        sessions[known]["link"] = link
        sessions[known]["number"] = 1 + _sessions_of(sessions, count, stream_id, link)
        sessions[known]["held_head"] = NONE
        sessions[known]["held_tail"] = NONE
    sessions[known]["initial_term_id"] = initial_term_id
    sessions[known]["term_length"] = term_length
    sessions[known]["region"] = slots_used
    return max(count, known + 1), slots_used + slots_needed, True


@kernel
def _sessions_of(sessions: Any, count: int, stream_id: int, link: int) -> int:
    found = 0
    for index in range(count):
        known = sessions[index]
        if known["stream_id"] == stream_id and known["link"] >> 1 == link >> 1:
            found += 1
    return found


@kernel
def term_count(session: Any, term_id: int) -> int:
    """Return the number of terms since a session's initial term. For a term before the initial
    term, the result is at least 2^31.
    """
    return int(term_id - session["initial_term_id"]) & 0xFFFFFFFF


@kernel
def has_place(session: Any, term_id: int, term_offset: int) -> bool:
    """Return whether a term id and offset from a frame are a valid position in the session's
    stream.
    """
    if term_offset < 0 or term_offset >= session["term_length"] or term_offset % _ALIGNMENT:
        return False
    return term_count(session, term_id) < 1 << 31


@kernel
def position(session: Any, term_id: int, term_offset: int) -> int:
    """Return the stream position of a term id and offset."""
    return int(term_count(session, term_id) * session["term_length"]) + term_offset


@kernel
def next_attempt(attempts: Any, session: Any, term_id: int, term_offset: int) -> int:
    """Count one more transmission of the frame at a position. Returns the transmission's number,
    starting at 1.
    """
    count = term_count(session, term_id)
    term_slots = session["term_length"] // _ALIGNMENT
    slot = session["region"] + count % TERMS_KEPT * term_slots + term_offset // _ALIGNMENT
    tag = (count + 1) << _ATTEMPT_BITS
    attempt = 1
    if attempts[slot] >> _ATTEMPT_BITS == count + 1:
        attempt = (attempts[slot] & 0xFFFFFFFF) + 1
    attempts[slot] = tag | attempt
    return attempt
