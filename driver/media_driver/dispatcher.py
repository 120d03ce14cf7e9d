"""Which image a packet belongs to: subscriptions' interest, and the state of each session on each
endpoint.

    unknown --data--> PENDING_SETUP --SETUP--> INIT_IN_PROGRESS --image added--> image slot
       |                                            ^                              |
       +--SETUP------------------------------------+        removed, not at EOS --> COOL_DOWN
       +--nobody wants it--> NO_INTEREST

A state is kept per (endpoint, stream, session); PENDING_SETUP asks the sender for a SETUP and gives
up after a second, so that the next packet asks again. Source: spec 3.1, Aeron 1.53.
"""

from driver.base import handoff
from driver.base.atomics import get_i32
from driver.base.jit import kernel
from driver.base.system import NS_PER_SECOND
from driver.cnc import counters
from driver.media import stream_map, transport
from driver.media_driver import image_receiver, system_counters
from driver.media_driver.receiver_state import CREATE_IMAGE
from driver.wire import data, frame_type, header, setup, status_message

PENDING_SETUP = -2
INIT_IN_PROGRESS = -3
COOL_DOWN = -4
NO_INTEREST = -5

ALL_SESSIONS = 1
SOME_SESSIONS = 0

PENDING_SETUP_TIMEOUT_NS = NS_PER_SECOND
"""How long a SETUP that was asked for may take. Source: Aeron 1.53, not configurable."""

# Words of a CREATE_IMAGE event, after the operation.
ENDPOINT, STREAM_ID, SESSION_ID, INITIAL_TERM_ID, ACTIVE_TERM_ID = 1, 2, 3, 4, 5
TERM_OFFSET, TERM_LENGTH, MTU_LENGTH, SETUP_FLAGS, TTL = 6, 7, 8, 9, 10
SOURCE_LENGTH, SOURCE, SOURCE_WORDS = 11, 12, 7  # a sockaddr of 28 bytes, four to a word


@kernel
def _is_wanted(state, endpoint, stream_id, session_id):
    interest = stream_map.find(state.interests, endpoint, stream_id, 0)
    if interest == ALL_SESSIONS:
        return True
    return stream_map.find(state.wanted, endpoint, stream_id, session_id) > 0


@kernel
def on_data(state, endpoint, at, length, inbox_index, now_ns):
    """A DATA or PAD datagram that passed the common check."""
    packet = state.inbox.slots
    stream_id, session_id = data.stream_id(packet, at), data.session_id(packet, at)
    if stream_map.find(state.interests, endpoint, stream_id, 0) == stream_map.ABSENT:
        return
    session = stream_map.find(state.sessions, endpoint, stream_id, session_id)
    if session >= 0:
        image_receiver.insert_packet(state, session, 0, at, length, inbox_index, now_ns)
        return
    is_ending = header.flags(packet, at) & frame_type.EOS != 0
    if session != stream_map.ABSENT or is_ending:
        return
    if not _is_wanted(state, endpoint, stream_id, session_id):
        _note_no_interest(state, endpoint, stream_id, session_id)
        return
    if _add_pending(state, endpoint, stream_id, session_id, now_ns):
        stream_map.insert(state.sessions, endpoint, stream_id, session_id, PENDING_SETUP)
        _elicit_setup(state, endpoint, stream_id, session_id, inbox_index)


@kernel
def _note_no_interest(state, endpoint, stream_id, session_id):
    """Make later packets cheap to ignore, unless wanted sessions would lack room."""
    if stream_map.count(state.sessions) < state.sessions.size // 2:
        stream_map.insert(state.sessions, endpoint, stream_id, session_id, NO_INTEREST)


@kernel
def _add_pending(state, endpoint, stream_id, session_id, now_ns):
    count = state.agent[0].pending_count
    if count == state.pending.size:
        return False
    rec = state.pending[count]
    rec.endpoint = endpoint
    rec.stream_id = stream_id
    rec.session_id = session_id
    rec.deadline_ns = now_ns + PENDING_SETUP_TIMEOUT_NS
    rec.is_periodic = 0
    state.agent[0].pending_count = count + 1
    return True


@kernel
def _elicit_setup(state, endpoint, stream_id, session_id, inbox_index):
    """Ask the source of a packet for a SETUP, with a status message that says nothing else."""
    channel = state.endpoints[endpoint]
    length = status_message.write(
        state.scratch,
        0,
        frame_type.SEND_SETUP,
        session_id,
        stream_id,
        0,
        0,
        0,
        channel.receiver_id,
        channel.has_group_tag,
        channel.group_tag,
    )
    if channel.has_control:
        image_receiver.send_to(state, endpoint, length, channel.control, channel.control_length)
    else:
        source = transport.source_name(state.inbox, inbox_index)
        source_length = transport.source_length(state.inbox, inbox_index)
        image_receiver.send_to(state, endpoint, length, source, source_length)


@kernel
def on_setup(state, endpoint, at, length, inbox_index, now_ns):
    """A SETUP frame that passed the common check."""
    packet = state.inbox.slots
    if setup.check(packet, at, length) < 0:
        counters.add_atomic(state.counters, system_counters.INVALID_PACKETS, 1)
        return
    stream_id, session_id = setup.stream_id(packet, at), setup.session_id(packet, at)
    if stream_map.find(state.interests, endpoint, stream_id, 0) == stream_map.ABSENT:
        return
    session = stream_map.find(state.sessions, endpoint, stream_id, session_id)
    if session >= 0:
        image_receiver.track_connection(state, session, 0, inbox_index, False, now_ns)
    elif session == PENDING_SETUP:
        channel = state.endpoints[endpoint]
        if channel.is_multicast and channel.ttl < setup.ttl(packet, at):
            counters.increment(state.counters, system_counters.POSSIBLE_TTL_ASYMMETRY)
        _drop_pending(state, endpoint, stream_id, session_id)
        _create_image(state, endpoint, at, inbox_index)
    elif session == stream_map.ABSENT:
        if _is_wanted(state, endpoint, stream_id, session_id):
            _create_image(state, endpoint, at, inbox_index)
        else:
            _note_no_interest(state, endpoint, stream_id, session_id)


@kernel
def _images_of(state, endpoint, stream_id):
    images = 0
    for index in range(state.agent[0].image_count):
        rec = state.images[state.active[index]]
        images += int(rec.endpoint == endpoint and rec.stream_id == stream_id)
    return images


@kernel
def _create_image(state, endpoint, at, inbox_index):
    """Ask the conductor for an image; until it is there, packets of the session are ignored."""
    packet = state.inbox.slots
    record = state.record
    stream_id, session_id = setup.stream_id(packet, at), setup.session_id(packet, at)
    if _images_of(state, endpoint, stream_id) >= state.agent[0].session_limit:
        return
    record[0] = CREATE_IMAGE
    record[ENDPOINT] = endpoint
    record[STREAM_ID] = stream_id
    record[SESSION_ID] = session_id
    record[INITIAL_TERM_ID] = setup.initial_term_id(packet, at)
    record[ACTIVE_TERM_ID] = setup.active_term_id(packet, at)
    record[TERM_OFFSET] = setup.term_offset(packet, at)
    record[TERM_LENGTH] = setup.term_length(packet, at)
    record[MTU_LENGTH] = setup.mtu_length(packet, at)
    record[SETUP_FLAGS] = header.flags(packet, at)
    record[TTL] = setup.ttl(packet, at)
    source = transport.source_name(state.inbox, inbox_index)
    record[SOURCE_LENGTH] = transport.source_length(state.inbox, inbox_index)
    for word in range(SOURCE_WORDS):
        record[SOURCE + word] = get_i32(source, 4 * word)
    # Sessions come from the network in any number; an answer about every slot must still fit.
    answers_max = state.images.size + state.endpoints.size
    if handoff.room(state.events) > answers_max and handoff.put(state.events, record):
        stream_map.insert(state.sessions, endpoint, stream_id, session_id, INIT_IN_PROGRESS)
    else:
        counters.increment(state.counters, system_counters.CONDUCTOR_PROXY_FAILS)


@kernel
def _drop_pending(state, endpoint, stream_id, session_id):
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
        if now_ns - rec.deadline_ns < 0:
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
def _forget_all(state, endpoint, stream_id, only_state):
    """Drop all sessions of a stream that are in `only_state`."""
    index = 0
    while index < state.sessions.size:
        entry = state.sessions[index]
        same = entry.used and entry.endpoint == endpoint and entry.stream_id == stream_id
        if same and entry.value == only_state:
            # A removal may move another entry here, so the same index is looked at again.
            stream_map.remove(state.sessions, endpoint, stream_id, entry.session_id)
        else:
            index += 1


@kernel
def add_interest(state, endpoint, stream_id, has_session, session_id):
    """A subscription arrived, to all sessions of a stream or to one."""
    interest = stream_map.find(state.interests, endpoint, stream_id, 0)
    if has_session:
        wanted = max(0, stream_map.find(state.wanted, endpoint, stream_id, session_id))
        stream_map.insert(state.wanted, endpoint, stream_id, session_id, wanted + 1)
        if interest == stream_map.ABSENT:
            stream_map.insert(state.interests, endpoint, stream_id, 0, SOME_SESSIONS)
        forget(state, endpoint, stream_id, session_id, NO_INTEREST)
    else:
        stream_map.insert(state.interests, endpoint, stream_id, 0, ALL_SESSIONS)
        # Those that nobody wanted get another chance.
        _forget_all(state, endpoint, stream_id, NO_INTEREST)


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
    if has_session:
        wanted = stream_map.find(state.wanted, endpoint, stream_id, session_id)
        if wanted > 1:
            stream_map.insert(state.wanted, endpoint, stream_id, session_id, wanted - 1)
            return
        stream_map.remove(state.wanted, endpoint, stream_id, session_id)
        if stream_map.find(state.interests, endpoint, stream_id, 0) == ALL_SESSIONS:
            return
    if _wants_some_session(state, endpoint, stream_id):
        stream_map.insert(state.interests, endpoint, stream_id, 0, SOME_SESSIONS)
    else:
        stream_map.remove(state.interests, endpoint, stream_id, 0)
        _forget_all(state, endpoint, stream_id, NO_INTEREST)
        _forget_all(state, endpoint, stream_id, COOL_DOWN)
