"""Session states on one endpoint: elicited, created, ignored or removed."""

import numpy as np
import pytest

from tests.naive import wire
from tests.sim.stream_pair import MS, SESSION_ID, STREAM_ID
from tests.unit.driver.media_driver.receiving_rig import (
    ReceivingRig,
    data,
    heartbeat,
    setup,
    status_of,
)
from windtunnel.driver.base import handoff
from windtunnel.driver.media import stream_map
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.receiver import dispatcher, receiver_state, session_state

OTHER_STREAM = 5
ELICIT = {
    "session_id": SESSION_ID,
    "stream_id": STREAM_ID,
    "term_id": 0,
    "offset": 0,
    "window": 0,
    "flags": 0x80,
    "kind": wire.SM,
    "length": 36,
}


@pytest.fixture
def rig(tmp_path):
    return ReceivingRig(tmp_path)


def state_of(rig, session_id=SESSION_ID, stream_id=STREAM_ID):
    return stream_map.find(rig.state.sessions, 0, stream_id, session_id)


def status_messages(rig):
    """Return the status messages of the next duty cycle."""
    return [status_of(item) for item in rig.turn()]


def created(rig):
    """Return the sessions for which the receiver requested an image."""
    return [
        event[dispatcher.SESSION_ID]
        for event in rig.events()
        if event[0] == receiver_state.CREATE_IMAGE
    ]


def test_data_of_an_unknown_session_elicits_a_setup_from_its_source(rig):
    rig.deliver(data(0, 100))
    assert status_messages(rig) == [ELICIT]
    assert state_of(rig) == session_state.PENDING_SETUP
    assert created(rig) == []


def test_a_setup_is_elicited_once_a_second(rig):
    for after_ns, expected in ((0, 1), (0, 0), (999 * MS, 0), (1 * MS, 0), (1, 0), (0, 1)):
        rig.now_ns += after_ns
        rig.deliver(data(0, 100))
        assert len(status_messages(rig)) == expected


def test_no_setup_is_elicited_while_too_many_are_awaited(rig):
    pending = np.zeros(2, dtype=receiver_state.PENDING_SETUP).view(np.recarray)
    rig.state = rig.state._replace(pending=pending)
    rig.deliver(*(data(0, 100, session_id=session_id) for session_id in (7, 8, 9)))
    assert [each["session_id"] for each in status_messages(rig)] == [7, 8]
    assert state_of(rig, 9) == stream_map.ABSENT
    rig.now_ns += session_state.PENDING_SETUP_TIMEOUT_NS + 1
    assert status_messages(rig) == []
    rig.deliver(data(0, 100, session_id=9))
    assert [each["session_id"] for each in status_messages(rig)] == [9]


def test_sessions_wait_for_less_time_while_too_many_are_awaited(rig):
    pending = np.zeros(2, dtype=receiver_state.PENDING_SETUP).view(np.recarray)
    rig.state = rig.state._replace(pending=pending)
    rig.deliver(*(data(0, 100, session_id=session_id) for session_id in (7, 8)))
    rig.turn()
    rig.now_ns += session_state.CROWDED_SETUP_TIMEOUT_NS
    rig.deliver(data(0, 100, session_id=9))
    assert status_messages(rig) == []
    rig.now_ns += 1
    rig.turn()
    rig.deliver(data(0, 100, session_id=9))
    assert [each["session_id"] for each in status_messages(rig)] == [9]
    rig.now_ns += session_state.PENDING_SETUP_TIMEOUT_NS
    rig.turn()
    assert state_of(rig, 9) == session_state.PENDING_SETUP


def test_a_setup_creates_an_image_and_packets_are_ignored_meanwhile(rig):
    rig.deliver(data(0, 100))
    rig.turn()
    rig.deliver(setup(96), setup(96), data(0, 100))
    assert rig.turn() == []
    (event,) = rig.events()
    assert event[: dispatcher.SOURCE_LENGTH + 1] == [
        receiver_state.CREATE_IMAGE,
        0,
        STREAM_ID,
        SESSION_ID,
        7,
        7,
        96,
        65_536,
        1408,
        0,
        0,
        16,
    ]
    name = np.array(event[dispatcher.SOURCE :][: dispatcher.SOURCE_WORDS], np.int64)
    assert name.astype(np.int32).tobytes() == rig.pair.names[0].tobytes()
    assert state_of(rig) == session_state.INIT_IN_PROGRESS
    assert rig.state.agent[0].pending_count == 0


def test_a_setup_that_was_not_elicited_creates_an_image(rig):
    rig.deliver(setup())
    rig.turn()
    assert created(rig) == [SESSION_ID]


def test_the_creation_of_an_image_is_retried_after_a_failure(rig):
    rig.deliver(setup())
    rig.turn()
    rig.command(receiver_state.IMAGE_FAILED, 0, STREAM_ID, SESSION_ID)
    rig.deliver(setup())
    rig.turn()
    assert created(rig) == [SESSION_ID, SESSION_ID]


@pytest.mark.parametrize("flags", [0xE0, 0xF0])
def test_the_setup_of_an_ended_stream_is_not_elicited(rig, flags):
    rig.deliver(heartbeat(0, flags))
    assert status_messages(rig) == []
    assert state_of(rig) == stream_map.ABSENT


def test_a_stream_without_subscriptions_leaves_no_state(rig):
    rig.deliver(data(0, 100, stream_id=OTHER_STREAM), setup(stream_id=OTHER_STREAM))
    assert status_messages(rig) == []
    assert rig.state.sessions.used.sum() == 0
    assert rig.value(system_counters.INVALID_PACKETS) == 0


@pytest.mark.parametrize(
    "frame", [data(0, 100, stream_id=OTHER_STREAM), setup(stream_id=OTHER_STREAM)]
)
def test_a_session_without_a_subscription_is_recorded_as_ignored(rig, frame):
    rig.interest(OTHER_STREAM, 1234)
    rig.deliver(frame)
    assert status_messages(rig) == []
    assert created(rig) == []
    assert state_of(rig, stream_id=OTHER_STREAM) == session_state.NO_INTEREST


@pytest.mark.parametrize("session", [None, SESSION_ID])
def test_a_new_subscription_clears_ignored_sessions(rig, session):
    rig.interest(OTHER_STREAM, 1234)
    rig.deliver(
        data(0, 100, stream_id=OTHER_STREAM), data(0, 9, stream_id=OTHER_STREAM, session_id=8)
    )
    rig.turn()
    rig.interest(OTHER_STREAM, session)
    rig.deliver(data(0, 100, stream_id=OTHER_STREAM))
    assert status_messages(rig) == [ELICIT | {"stream_id": OTHER_STREAM}]
    forgotten = state_of(rig, 8, OTHER_STREAM) == stream_map.ABSENT
    assert forgotten == (session is None)


def test_interest_ends_with_the_last_subscription(rig):
    rig.interest(OTHER_STREAM, 1234)
    rig.interest(OTHER_STREAM, 1234)
    rig.interest(OTHER_STREAM)
    for session, is_wanted in ((None, True), (1234, True), (1234, False)):
        rig.interest(OTHER_STREAM, session, gone=True)
        rig.deliver(data(0, 100, stream_id=OTHER_STREAM, session_id=1234))
        assert bool(status_messages(rig)) == is_wanted
        rig.turn(1_001 * MS)


def test_removing_the_last_subscription_clears_the_state_of_sessions(rig):
    rig.interest(OTHER_STREAM, 1234)
    rig.deliver(data(0, 100, stream_id=OTHER_STREAM))
    rig.turn()
    stream_map.insert(rig.state.sessions, 0, OTHER_STREAM, 1234, session_state.COOL_DOWN)
    stream_map.insert(rig.state.sessions, 0, STREAM_ID, 1234, session_state.COOL_DOWN)
    rig.interest(OTHER_STREAM, 1234, gone=True)
    assert state_of(rig, SESSION_ID, OTHER_STREAM) == stream_map.ABSENT
    assert state_of(rig, 1234, OTHER_STREAM) == stream_map.ABSENT
    assert state_of(rig, 1234, STREAM_ID) == session_state.COOL_DOWN


def test_a_session_that_cools_down_is_ignored_until_the_cool_down_ends(rig):
    stream_map.insert(rig.state.sessions, 0, STREAM_ID, SESSION_ID, session_state.COOL_DOWN)
    rig.deliver(data(0, 100), setup())
    assert status_messages(rig) == []
    assert created(rig) == []
    rig.command(receiver_state.END_COOL_DOWN, 0, STREAM_ID, SESSION_ID)
    rig.deliver(setup())
    rig.turn()
    assert created(rig) == [SESSION_ID]


@pytest.mark.parametrize(
    ("cool_down", "is_over", "state"),
    [
        (0, 0, stream_map.ABSENT),
        (1, 0, session_state.COOL_DOWN),
        (1, 1, stream_map.ABSENT),
    ],
)
def test_a_removed_image_leaves_its_session_free_or_cooling_down(rig, cool_down, is_over, state):
    rig.start()
    assert state_of(rig) == 0
    rig.state.images[0].is_end_of_stream = is_over
    rig.command(receiver_state.REMOVE_IMAGE, 0, cool_down)
    assert state_of(rig) == state
    assert [receiver_state.IMAGE_RELEASED, 0] in [event[:2] for event in rig.events()]
    assert rig.state.agent[0].image_count == 0


def test_a_newer_image_replaces_an_older_one_of_its_session(rig):
    rig.start()
    for field in rig.state.images.dtype.names:
        rig.state.images[1][field] = rig.state.images[0][field]
    rig.command(receiver_state.ADD_IMAGE, 1)
    assert state_of(rig) == 1
    assert rig.state.images[0].is_status_silent == 1
    rig.command(receiver_state.REMOVE_IMAGE, 0, 1)
    assert state_of(rig) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"term_length": 65_535},
        {"term_length": 32_768},
        {"term_length": 1 << 31 - 1, "mtu": 16},
        {"mtu": 1400},
        {"mtu": 65_536},
    ],
)
def test_a_setup_with_impossible_values_is_invalid(rig, fields):
    rig.deliver(setup(**fields))
    rig.turn()
    assert created(rig) == []
    assert rig.value(system_counters.INVALID_PACKETS) == 1
    assert state_of(rig) == stream_map.ABSENT


def test_images_of_one_stream_are_limited(rig):
    rig.state.agent[0].session_limit = 1
    rig.start()
    rig.deliver(setup(session_id=8))
    rig.turn()
    assert created(rig) == []
    assert state_of(rig, 8) == stream_map.ABSENT


@pytest.mark.parametrize("is_multicast", [0, 1])
def test_a_setup_is_elicited_from_the_source_or_the_control_group(rig, is_multicast):
    """An explicit control address gets no elicitation for a session of another source."""
    endpoint = rig.state.endpoints[0]
    endpoint.has_control, endpoint.control_length = 1, 16
    endpoint.is_multicast = is_multicast
    endpoint.control[:] = rig.pair.names[1]
    rig.deliver(data(0, 100))
    rig.turn()
    assert rig.destinations == [rig.pair.names[is_multicast][:16].tobytes()]


def test_sessions_without_subscriptions_do_not_displace_others(rig):
    rig.state = rig.state._replace(sessions=stream_map.make_stream_map(16))
    rig.interest(OTHER_STREAM, 1_234_567)
    rig.deliver(*(data(0, 0, session_id=i, stream_id=OTHER_STREAM) for i in range(60)))
    rig.turn()
    assert stream_map.count(rig.state.sessions) == 16
    rig.deliver(setup(session_id=1_234_567, stream_id=OTHER_STREAM))
    rig.turn()
    assert created(rig) == [1_234_567]
    assert state_of(rig, 1_234_567, OTHER_STREAM) == session_state.INIT_IN_PROGRESS


def cool_down(rig, *sessions):
    """Create and time out an image of each session."""
    image = rig.state.images[0]
    if image.log_address == 0:
        rig.start()
        rig.command(receiver_state.REMOVE_IMAGE, 0, 0)
    for session in sessions:
        image.session_id = session
        rig.command(receiver_state.ADD_IMAGE, 0)
        assert state_of(rig, session) == 0
        rig.command(receiver_state.REMOVE_IMAGE, 0, 1)
        rig.events()


def test_sessions_that_cool_down_do_not_displace_new_ones(rig):
    """Without rejoin, a silent session cools down while its subscription exists."""
    images = 4
    rig.state = rig.state._replace(
        sessions=stream_map.make_stream_map(4 * images),
        cooling=receiver_state.make_cooling(images),
    )
    cool_down(rig, *range(1000, 1040))
    states = [state_of(rig, session) for session in range(1000, 1040)]
    assert states == [stream_map.ABSENT] * 36 + [session_state.COOL_DOWN] * 4
    rig.deliver(setup(session_id=5000), setup(session_id=1039))
    rig.turn()
    assert created(rig) == [5000]


def test_a_session_that_returned_is_not_removed_for_an_older_cool_down(rig):
    """The session with the oldest entry may have an image again, or wait for another SETUP."""
    rig.state = rig.state._replace(cooling=receiver_state.make_cooling(2))
    cool_down(rig, 8, 9)
    rig.command(receiver_state.END_COOL_DOWN, 0, STREAM_ID, 8)
    rig.deliver(data(0, 100, session_id=8))
    rig.turn()
    cool_down(rig, 10)
    assert state_of(rig, 8) == session_state.PENDING_SETUP
    assert [state_of(rig, each) for each in (9, 10)] == [session_state.COOL_DOWN] * 2


def test_a_stream_with_id_zero_is_not_removed_for_an_empty_entry(rig):
    rig.state = rig.state._replace(cooling=receiver_state.make_cooling(4))
    stream_map.insert(rig.state.sessions, 0, 0, 0, session_state.COOL_DOWN)
    cool_down(rig, 8)
    assert state_of(rig, 0, 0) == session_state.COOL_DOWN


def test_a_flood_of_setups_leaves_space_in_the_queue_for_other_events(rig):
    """Any number of sessions may arrive; the response to a removal must still be queued."""
    slots = rig.state.images.size + rig.state.endpoints.size
    rig.state = rig.state._replace(events=handoff.make_queue(slots + 20))
    rig.deliver(*(setup(session_id=session) for session in range(40)))
    rig.turn()
    assert handoff.free_record_count(rig.state.events) == slots
    rig.command(receiver_state.REMOVE_ENDPOINT, 0)
    events = [event[:2] for event in rig.events()]
    assert events[-1] == [receiver_state.ENDPOINT_RELEASED, 0]
    assert rig.value(system_counters.CONDUCTOR_PROXY_FAILS) > 0
    assert len(events) == 21


def test_a_setup_that_found_the_queue_full_is_accepted_later(rig):
    while handoff.put(rig.state.events, handoff.make_record()):
        pass
    rig.deliver(setup())
    rig.turn()
    assert state_of(rig) == stream_map.ABSENT
    rig.events()
    rig.deliver(setup())
    rig.turn()
    assert created(rig) == [SESSION_ID]


def test_a_session_without_a_free_entry_gets_no_image(rig):
    """Otherwise each SETUP would create another image, until no slot is left."""
    sessions = rig.state.sessions
    for session in range(sessions.size - 1):
        assert stream_map.insert(sessions, 9, STREAM_ID, session, session_state.NO_INTEREST)
    rig.deliver(setup(), setup())
    rig.turn()
    assert created(rig) == []
    assert rig.value(system_counters.CONDUCTOR_PROXY_FAILS) == 2
    assert stream_map.remove(sessions, 9, STREAM_ID, 1)
    rig.deliver(setup(), setup())
    rig.turn()
    assert created(rig) == [SESSION_ID]


def test_a_closed_endpoint_has_no_sessions_and_no_interest(rig):
    rig.deliver(data(0, 100))
    rig.turn()
    rig.interest(OTHER_STREAM, 1234)
    rig.command(receiver_state.REMOVE_ENDPOINT, 0)
    for table in (rig.state.sessions, rig.state.interests, rig.state.session_interests):
        assert table.used.sum() == 0
    assert rig.state.agent[0].pending_count == rig.state.agent[0].endpoint_count == 0
    rig.deliver(data(0, 100))
    assert rig.turn() == []


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"\0" * 8,
        data(0, 100)[:31],
        data(0, 100) + b"\0",
        b"\0\0\0\0\1\xc0\1\0" + bytes(24),
        setup()[:39],
        wire.pack("nak", 28, 0, 0, wire.NAK, SESSION_ID, STREAM_ID, 7, 0, 32)[:27],
    ],
)
def test_a_malformed_datagram_is_only_counted_as_invalid(rig, datagram):
    rig.deliver(datagram)
    assert rig.turn() == []
    assert rig.value(system_counters.INVALID_PACKETS) == 1
    assert rig.value(system_counters.BYTES_RECEIVED) == len(datagram)


def test_a_frame_for_a_sender_is_ignored(rig):
    rig.deliver(wire.pack("nak", 28, 0, 0, wire.NAK, SESSION_ID, STREAM_ID, 7, 0, 32))
    assert rig.turn() == []
    assert rig.value(system_counters.INVALID_PACKETS) == 0
