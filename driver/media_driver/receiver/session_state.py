"""What is known of each session of a stream on an endpoint, and which streams are wanted there.

    interests   stream -> ALL_SESSIONS or SOME_SESSIONS       wanted     session -> subscriptions
    sessions    session -> image slot, or one of the states below
    pending     sessions in PENDING_SETUP, and until when

A subscription that leaves takes its sessions along: their images get no more packets, and whoever
subscribes later has new ones made. Source: spec 3.1, Aeron 1.53 (the C driver where the two
differ).
"""

from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import stream_map
from windtunnel.driver.media_driver.receiver import receive_transport

PENDING_SETUP = -2
INIT_IN_PROGRESS = -3
COOL_DOWN = -4
NO_INTEREST = -5

ALL_SESSIONS = 1
SOME_SESSIONS = 0

PENDING_SETUP_TIMEOUT_NS = NS_PER_SECOND
"""How long a SETUP that was asked for may take. Source: Aeron 1.53, not configurable."""


@kernel
def is_wanted(state, endpoint, stream_id, session_id):
    """Whether a subscription takes this session."""
    interest = stream_map.find(state.interests, endpoint, stream_id, 0)
    if interest == ALL_SESSIONS:
        return True
    return stream_map.find(state.wanted, endpoint, stream_id, session_id) > 0


@kernel
def note_no_interest(state, endpoint, stream_id, session_id):
    """Make later packets cheap to ignore, unless wanted sessions would lack room."""
    if stream_map.count(state.sessions) < state.sessions.size // 2:
        stream_map.insert(state.sessions, endpoint, stream_id, session_id, NO_INTEREST)


@kernel
def add_pending(state, endpoint, stream_id, session_id, now_ns):
    """A session waits for its SETUP from now on. Returns False when too many do."""
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
def drop_pending(state, endpoint, stream_id, session_id):
    """The SETUP of a session has come."""
    kept = 0
    for index in range(state.agent[0].pending_count):
        rec = state.pending[index]
        same = rec.endpoint == endpoint and rec.stream_id == stream_id
        if not (same and rec.session_id == session_id):
            state.pending[kept] = rec
            kept += 1
    state.agent[0].pending_count = kept


@kernel
def expire_pending(state, now_ns):
    """Forget SETUPs that did not come. Returns how many."""
    kept = 0
    count = state.agent[0].pending_count
    for index in range(count):
        rec = state.pending[index]
        if now_ns - rec.deadline_ns <= 0:
            state.pending[kept] = rec
            kept += 1
        else:
            forget(state, rec.endpoint, rec.stream_id, rec.session_id, PENDING_SETUP)
    state.agent[0].pending_count = kept
    return count - kept


@kernel
def forget(state, endpoint, stream_id, session_id, only_state):
    """Drop a session's state when it is `only_state`."""
    if stream_map.find(state.sessions, endpoint, stream_id, session_id) == only_state:
        stream_map.remove(state.sessions, endpoint, stream_id, session_id)


@kernel
def _forget_no_interest(state, endpoint, stream_id):
    index = 0
    while index < state.sessions.size:
        entry = state.sessions[index]
        same = entry.used and entry.endpoint == endpoint and entry.stream_id == stream_id
        if same and entry.value == NO_INTEREST:
            # A removal may move another entry here, so the same index is looked at again.
            stream_map.remove(state.sessions, endpoint, stream_id, entry.session_id)
        else:
            index += 1


@kernel
def _forget_unwanted(state, endpoint, stream_id):
    """Drop all sessions of a stream that no subscription asks for by their ids."""
    index = 0
    while index < state.sessions.size:
        entry = state.sessions[index]
        same = entry.used and entry.endpoint == endpoint and entry.stream_id == stream_id
        if same and stream_map.find(state.wanted, endpoint, stream_id, entry.session_id) <= 0:
            stream_map.remove(state.sessions, endpoint, stream_id, entry.session_id)
        else:
            index += 1


@kernel
def add_interest(state, endpoint, stream_id, has_session, session_id):
    """A subscription arrived, to all sessions of a stream or to one."""
    interest = stream_map.find(state.interests, endpoint, stream_id, 0)
    if not has_session:
        stream_map.insert(state.interests, endpoint, stream_id, 0, ALL_SESSIONS)
        # Those that nobody wanted get another chance.
        _forget_no_interest(state, endpoint, stream_id)
        return
    wanted = max(0, stream_map.find(state.wanted, endpoint, stream_id, session_id))
    stream_map.insert(state.wanted, endpoint, stream_id, session_id, wanted + 1)
    if interest == stream_map.ABSENT:
        stream_map.insert(state.interests, endpoint, stream_id, 0, SOME_SESSIONS)
    forget(state, endpoint, stream_id, session_id, NO_INTEREST)
    if wanted == 0:
        receive_transport.ask_every_control(state, endpoint, stream_id, session_id)


@kernel
def _wants_some_session(state, endpoint, stream_id):
    for index in range(state.wanted.size):
        entry = state.wanted[index]
        if entry.used and entry.endpoint == endpoint and entry.stream_id == stream_id:
            return True
    return False


@kernel
def remove_interest(state, endpoint, stream_id, has_session, session_id):
    """The last subscription to all sessions of a stream left, or one to a single session."""
    takes_all = stream_map.find(state.interests, endpoint, stream_id, 0) == ALL_SESSIONS
    if has_session:
        wanted = stream_map.find(state.wanted, endpoint, stream_id, session_id)
        if wanted > 1:
            stream_map.insert(state.wanted, endpoint, stream_id, session_id, wanted - 1)
            return
        stream_map.remove(state.wanted, endpoint, stream_id, session_id)
        if takes_all:
            return
    _forget_unwanted(state, endpoint, stream_id)
    if _wants_some_session(state, endpoint, stream_id):
        stream_map.insert(state.interests, endpoint, stream_id, 0, SOME_SESSIONS)
    else:
        stream_map.remove(state.interests, endpoint, stream_id, 0)


@kernel
def forget_endpoint(state, endpoint):
    """An endpoint is gone, with all that was known on it."""
    kept = 0
    for index in range(state.agent[0].pending_count):
        if state.pending[index].endpoint != endpoint:
            state.pending[kept] = state.pending[index]
            kept += 1
    state.agent[0].pending_count = kept
    _forget_streams(state.sessions, endpoint)
    _forget_streams(state.interests, endpoint)
    _forget_streams(state.wanted, endpoint)


@kernel
def _forget_streams(table, endpoint):
    index = 0
    while index < table.size:
        entry = table[index]
        if entry.used and entry.endpoint == endpoint:
            stream_map.remove(table, endpoint, entry.stream_id, entry.session_id)
        else:
            index += 1
