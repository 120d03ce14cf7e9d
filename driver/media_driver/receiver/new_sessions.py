"""Decides whether the SETUP of a session without an image is passed to the conductor.

While a stream is restricted, only *confirmed* sessions are accepted: those that sent another packet
before. A publisher repeats its SETUP every 100 ms until it receives a status message. A flood of
forged SETUPs with random session ids does not, so it keeps no publisher out.

    restricted   a SETUP is refused and remembered; its repetition after 50 to 500 ms is accepted
    refusing     every SETUP is refused

The conductor restricts a stream for a time when it creates no image (command IMAGE_FAILED). An
accepted repetition is remembered like a refused one, so a session that repeats its SETUP very often
is not passed on more than every 50 ms. A remembered session may be overwritten by another one.
"""

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import stream_map

REFUSED, UNCONFIRMED, CONFIRMED = 0, 1, 2
"""Results of `admit`."""

REFUSING, RESTRICTED = 0, 1
"""Kinds of restrictions. In the map, a kind takes the place of the session id."""

REPETITION_NS_MIN = 50 * NS_PER_MS
REPETITION_NS_MAX = 500 * NS_PER_MS
"""Limits of the time between two SETUPs of a session, so that the second one confirms the session.
They allow for late and for lost SETUPs."""


@kernel
def admit(state, endpoint, stream_id, session_id, now_ns):
    """Decide about a SETUP of a session that sent no other packet before.

    Returns: REFUSED, UNCONFIRMED or CONFIRMED
    """
    deadline_ns = stream_map.find(state.restrictions, endpoint, stream_id, RESTRICTED)
    if deadline_ns == stream_map.ABSENT or now_ns >= deadline_ns:
        return UNCONFIRMED
    at = stream_map.home(state.refused.size, endpoint, stream_id, session_id)
    entry = state.refused[at]
    known = entry.endpoint == endpoint and entry.stream_id == stream_id and entry.time_ns != 0
    elapsed_ns = now_ns - entry.time_ns
    if known and entry.session_id == session_id and elapsed_ns <= REPETITION_NS_MAX:
        if elapsed_ns < REPETITION_NS_MIN:
            return REFUSED
        is_accepted = not is_refused(state, endpoint, stream_id, now_ns)
        if is_accepted:
            entry.time_ns = now_ns
        return CONFIRMED if is_accepted else REFUSED
    entry.endpoint = endpoint
    entry.stream_id = stream_id
    entry.session_id = session_id
    entry.time_ns = now_ns
    return REFUSED


@kernel
def is_refused(state, endpoint, stream_id, now_ns):
    """Return whether the conductor has no image even for confirmed sessions of a stream."""
    deadline_ns = stream_map.find(state.restrictions, endpoint, stream_id, REFUSING)
    return deadline_ns != stream_map.ABSENT and now_ns < deadline_ns


@kernel
def restrict(state, endpoint, stream_id, now_ns, refusing_ns, restricted_ns):
    """Restrict a stream for two times, which may be 0, if there are still subscriptions."""
    if stream_map.find(state.interests, endpoint, stream_id, 0) == stream_map.ABSENT:
        return
    if refusing_ns > 0:
        stream_map.insert(state.restrictions, endpoint, stream_id, REFUSING, now_ns + refusing_ns)
    if restricted_ns > 0:
        deadline_ns = now_ns + restricted_ns
        stream_map.insert(state.restrictions, endpoint, stream_id, RESTRICTED, deadline_ns)


@kernel
def lift(state, endpoint, stream_id):
    """Remove the restrictions of a stream."""
    stream_map.remove(state.restrictions, endpoint, stream_id, REFUSING)
    stream_map.remove(state.restrictions, endpoint, stream_id, RESTRICTED)
