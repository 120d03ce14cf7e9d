"""Decides whether the SETUP of a session without an image is passed to the conductor.

A publisher repeats its SETUP every 100 ms until it receives a status message. Floods of forged
SETUPs do not, or not for long. The longer a session has repeated its SETUP, the higher its level:

    FIRST        until 50 ms after its first SETUP
    REPEATED     later, or if it answers an elicitation
    PERSISTENT   from 1 s after its first SETUP

The conductor restricts a stream for a time when it creates no image (command IMAGE_FAILED): SETUPs
up to a level are refused and remembered. PERSISTENT sessions are never refused here: a forged one
without an image would keep out all others. A session that pauses for more than 500 ms, or whose
SETUP was accepted, starts again, so it is PERSISTENT once per second. So does a session that was
overwritten by another one, because the table has one entry for several sessions.
"""

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import stream_map

REFUSED = -1
FIRST, REPEATED, PERSISTENT = 0, 1, 2
RESTRICTED_LEVELS = 2
"""FIRST and REPEATED can be restricted. In the map, the level takes the place of the session id."""

REPEATED_NS = 50 * NS_PER_MS
PERSISTENT_NS = 1_000 * NS_PER_MS
PAUSE_NS_MAX = 500 * NS_PER_MS
"""Maximum time between two SETUPs of a session. It allows for the loss of several SETUPs."""


@kernel
def admit(state, endpoint, stream_id, session_id, is_answer, now_ns):
    """Decide about a SETUP. It `is_answer` if it answers an elicitation.

    Returns: the session's level if the SETUP is accepted, otherwise REFUSED
    """
    if not _is_restricted(state, endpoint, stream_id, FIRST, now_ns):
        return REPEATED if is_answer else FIRST
    entry = state.refused[stream_map.home(state.refused.size, endpoint, stream_id, session_id)]
    same = entry.endpoint == endpoint and entry.stream_id == stream_id
    if not (same and entry.session_id == session_id and now_ns - entry.last_ns <= PAUSE_NS_MAX):
        entry.endpoint = endpoint
        entry.stream_id = stream_id
        entry.session_id = session_id
        entry.first_ns = now_ns
    entry.last_ns = now_ns
    level = _level(now_ns - entry.first_ns, is_answer)
    if level < PERSISTENT and _is_restricted(state, endpoint, stream_id, level, now_ns):
        return REFUSED
    entry.first_ns = now_ns
    return level


@kernel
def _level(repeated_ns, is_answer):
    if repeated_ns >= PERSISTENT_NS:
        return PERSISTENT
    return REPEATED if is_answer or repeated_ns >= REPEATED_NS else FIRST


@kernel
def _is_restricted(state, endpoint, stream_id, level, now_ns):
    deadline_ns = stream_map.find(state.restrictions, endpoint, stream_id, level)
    return deadline_ns != stream_map.ABSENT and now_ns < deadline_ns


@kernel
def restrict(state, endpoint, stream_id, level, deadline_ns):
    """Refuse SETUPs of a stream up to a level until a time. Does nothing if the stream has no
    subscriptions, or if the level is REFUSED.
    """
    if stream_map.find(state.interests, endpoint, stream_id, 0) == stream_map.ABSENT:
        return
    for each in range(min(level + 1, RESTRICTED_LEVELS)):
        stream_map.insert(state.restrictions, endpoint, stream_id, each, deadline_ns)


@kernel
def lift(state, endpoint, stream_id):
    """Remove the restrictions of a stream."""
    for level in range(RESTRICTED_LEVELS):
        stream_map.remove(state.restrictions, endpoint, stream_id, level)
