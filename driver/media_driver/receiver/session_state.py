"""Tracks, for each endpoint, the subscriptions to streams and the state of their sessions.

    interests          stream  -> ALL_SESSIONS or SOME_SESSIONS
    session_interests  session -> number of subscriptions to this session
    sessions           session -> image slot, or one of the states below
    pending            sessions in PENDING_SETUP with their deadlines

When a subscription is removed, its sessions are removed too. Their images receive no more packets,
and a later subscription gets new images. Source: spec 3.1, Aeron 1.53 (the C driver where the two
differ).
"""

from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import stream_map
from windtunnel.driver.media_driver.receiver import new_sessions, receive_transport

PENDING_SETUP = -2
INIT_IN_PROGRESS = -3
COOL_DOWN = -4
NO_INTEREST = -5

ALL_SESSIONS = 1
SOME_SESSIONS = 0

PENDING_SETUP_TIMEOUT_NS = NS_PER_SECOND
"""Time to wait for an elicited SETUP. Source: Aeron 1.53, not configurable."""
CROWDED_SETUP_TIMEOUT_NS = NS_PER_SECOND // 5
"""The same while the maximum number of sessions is waiting. Among 10,000 forged sessions per
second, one with ten heartbeats per second finds a free place within 3 s. With the longer time, one
in 25 does not."""


@kernel
def is_subscribed(state, endpoint, stream_id, session_id):
    """Return whether any subscription accepts the given session."""
    interest = stream_map.find(state.interests, endpoint, stream_id, 0)
    if interest == ALL_SESSIONS:
        return True
    return stream_map.find(state.session_interests, endpoint, stream_id, session_id) > 0


@kernel
def record_no_interest(state, endpoint, stream_id, session_id):
    """Mark a session as unsubscribed, so that its packets are dropped early. Does nothing if the
    session table is at least half full.
    """
    if stream_map.count(state.sessions) < state.sessions.size // 2:
        stream_map.insert(state.sessions, endpoint, stream_id, session_id, NO_INTEREST)


@kernel
def add_pending(state, endpoint, stream_id, session_id, now_ns):
    """Add a session that waits for its SETUP. Returns False if too many sessions are waiting."""
    count = state.agent[0].pending_count
    if count == state.pending.size:
        return False
    rec = state.pending[count]
    rec.endpoint = endpoint
    rec.stream_id = stream_id
    rec.session_id = session_id
    rec.deadline_ns = now_ns + PENDING_SETUP_TIMEOUT_NS
    state.agent[0].pending_count = count + 1
    stream_map.insert(state.sessions, endpoint, stream_id, session_id, PENDING_SETUP)
    return True


@kernel
def remove_pending(state, endpoint, stream_id, session_id):
    """Remove a session from the pending list after its SETUP was received."""
    remaining = 0
    for index in range(state.agent[0].pending_count):
        rec = state.pending[index]
        same = rec.endpoint == endpoint and rec.stream_id == stream_id
        if not (same and rec.session_id == session_id):
            state.pending[remaining] = rec
            remaining += 1
    state.agent[0].pending_count = remaining


@kernel
def expire_pending(state, now_ns):
    """Remove pending sessions whose SETUP did not arrive in time. The time is shorter while too
    many sessions are waiting. Returns the number of removed sessions.
    """
    remaining = 0
    count = state.agent[0].pending_count
    early_ns = 0
    if count == state.pending.size:
        early_ns = PENDING_SETUP_TIMEOUT_NS - CROWDED_SETUP_TIMEOUT_NS
    for index in range(count):
        rec = state.pending[index]
        if now_ns - rec.deadline_ns + early_ns <= 0:
            state.pending[remaining] = rec
            remaining += 1
        else:
            remove_in_state(state, rec.endpoint, rec.stream_id, rec.session_id, PENDING_SETUP)
    state.agent[0].pending_count = remaining
    return count - remaining


@kernel
def remove_in_state(state, endpoint, stream_id, session_id, only_state):
    """Remove a session's state if it equals `only_state`."""
    if stream_map.find(state.sessions, endpoint, stream_id, session_id) == only_state:
        stream_map.remove(state.sessions, endpoint, stream_id, session_id)


@kernel
def _remove_no_interest(state, endpoint, stream_id):
    if stream_map.count(state.sessions) == 0:
        return
    index = 0
    while index < state.sessions.size:
        entry = state.sessions[index]
        same = entry.used and entry.endpoint == endpoint and entry.stream_id == stream_id
        if same and entry.value == NO_INTEREST:
            # A removal may move another entry to this index, so check it again.
            stream_map.remove(state.sessions, endpoint, stream_id, entry.session_id)
        else:
            index += 1


@kernel
def _remove_unsubscribed(state, endpoint, stream_id):
    """Remove the sessions of a stream that have no session-specific subscription."""
    index = 0
    while index < state.sessions.size:
        entry = state.sessions[index]
        same = entry.used and entry.endpoint == endpoint and entry.stream_id == stream_id
        if (
            same
            and stream_map.find(state.session_interests, endpoint, stream_id, entry.session_id) <= 0
        ):
            stream_map.remove(state.sessions, endpoint, stream_id, entry.session_id)
        else:
            index += 1


@kernel
def add_interest(state, endpoint, stream_id, has_session, session_id):
    """Record a subscription to all sessions of a stream, or to one session."""
    interest = stream_map.find(state.interests, endpoint, stream_id, 0)
    if not has_session:
        stream_map.insert(state.interests, endpoint, stream_id, 0, ALL_SESSIONS)
        # Sessions that were ignored until now are accepted.
        _remove_no_interest(state, endpoint, stream_id)
        return
    subscription_count = max(
        0, stream_map.find(state.session_interests, endpoint, stream_id, session_id)
    )
    stream_map.insert(
        state.session_interests, endpoint, stream_id, session_id, subscription_count + 1
    )
    if interest == stream_map.ABSENT:
        stream_map.insert(state.interests, endpoint, stream_id, 0, SOME_SESSIONS)
    remove_in_state(state, endpoint, stream_id, session_id, NO_INTEREST)
    if subscription_count == 0:
        receive_transport.elicit_setup_at_all_controls(state, endpoint, stream_id, session_id)


@kernel
def _has_session_interest(state, endpoint, stream_id):
    for index in range(state.session_interests.size):
        entry = state.session_interests[index]
        if entry.used and entry.endpoint == endpoint and entry.stream_id == stream_id:
            return True
    return False


@kernel
def remove_interest(state, endpoint, stream_id, has_session, session_id):
    """Remove a subscription to one session if `has_session`. Otherwise, remove the subscription to
    all sessions of a stream.
    """
    takes_all = stream_map.find(state.interests, endpoint, stream_id, 0) == ALL_SESSIONS
    if has_session:
        subscription_count = stream_map.find(
            state.session_interests, endpoint, stream_id, session_id
        )
        if subscription_count > 1:
            stream_map.insert(
                state.session_interests, endpoint, stream_id, session_id, subscription_count - 1
            )
            return
        stream_map.remove(state.session_interests, endpoint, stream_id, session_id)
        if takes_all:
            return
    _remove_unsubscribed(state, endpoint, stream_id)
    if _has_session_interest(state, endpoint, stream_id):
        stream_map.insert(state.interests, endpoint, stream_id, 0, SOME_SESSIONS)
    else:
        stream_map.remove(state.interests, endpoint, stream_id, 0)
        new_sessions.lift(state, endpoint, stream_id)


@kernel
def remove_endpoint(state, endpoint):
    """Remove all session state of an endpoint."""
    remaining = 0
    for index in range(state.agent[0].pending_count):
        if state.pending[index].endpoint != endpoint:
            state.pending[remaining] = state.pending[index]
            remaining += 1
    state.agent[0].pending_count = remaining
    _remove_streams(state.sessions, endpoint)
    _remove_streams(state.interests, endpoint)
    _remove_streams(state.session_interests, endpoint)
    _remove_streams(state.restrictions, endpoint)


@kernel
def _remove_streams(table, endpoint):
    index = 0
    while index < table.size:
        entry = table[index]
        if entry.used and entry.endpoint == endpoint:
            stream_map.remove(table, endpoint, entry.stream_id, entry.session_id)
        else:
            index += 1
