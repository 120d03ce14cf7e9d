"""Receiver sockets: several that serve one endpoint, and those that elicit SETUPs."""

import itertools

import numpy as np
import pytest

from tests.naive import wire
from tests.sim.stream_pair import MS, STREAM_ID, fill
from tests.unit.driver.media_driver.receiving_rig import (
    ReceivingRig,
    data,
    heartbeat,
    setup,
    status_of,
)
from windtunnel.driver.base import handoff
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.media import link, receive_endpoint
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.media_driver.receiver import receiver_state

SECOND = 1_000 * MS
REQUESTED = {"session_id": 0, "stream_id": 0, "flags": 0x80, "term_id": 0, "offset": 0, "window": 0}


@pytest.fixture
def rig(tmp_path):
    return ReceivingRig(tmp_path, more_mailboxes=2)


def statuses(datagrams):
    return [status_of(item) for item in datagrams if item[6] == wire.SM]


def setup_requests(datagrams):
    return [
        {name: item[name] for name in REQUESTED}
        for item in statuses(datagrams)
        if item["flags"] == 128
    ]


def control_of(rig, mailbox):
    """Fields of a socket whose explicit control address is a mailbox's."""
    return {
        "has_control": 1,
        "solicits_setup": 1,
        "control_length": 16,
        "control": rig.pair.names[mailbox],
    }


def test_frames_of_any_socket_are_inserted_into_the_endpoints_image(rig):
    rig.start()
    rig.add_transport(2, connection=1)
    rig.deliver(data(0, 992))
    rig.deliver(data(1024, 992), at=2)
    rig.turn()
    rig.turn()
    assert rig.positions == (2048, 2048)
    rig.deliver(data(0, 992), data(1024, 992), at=2)
    rig.turn()
    assert rig.positions == (2048, 2048)


def test_a_setup_on_any_socket_creates_the_endpoints_image(rig):
    rig.add_transport(2, connection=1)
    rig.deliver(setup(), at=2)
    rig.turn()
    (event,) = rig.events()
    assert event[:2] == [receiver_state.CREATE_IMAGE, 0]
    assert event[19] == 2


def test_every_active_connection_gets_feedback_from_its_own_socket(rig):
    rig.start()
    rig.add_transport(2, connection=1)
    rig.deliver(heartbeat(0))
    assert rig.turn(201 * MS) != []
    assert [mailbox for mailbox, _ in rig.sent] == [1]
    rig.deliver(data(1024, 0), at=2)
    rig.turn()
    rig.turn()
    rig.turn(201 * MS)
    sent = [(mailbox, item[6]) for mailbox, item in rig.sent]
    assert sorted(sent) == [(1, wire.NAK), (1, wire.SM), (2, wire.NAK), (2, wire.SM)]
    assert rig.value(system_counters.NAKS_SENT) == 2
    receiver_ids = {item[28:36] for _, item in rig.sent if item[6] == wire.SM}
    assert receiver_ids == {(99).to_bytes(8, "little")}


def test_a_silent_connection_gets_no_feedback_while_another_is_active(rig):
    rig.start()
    rig.add_transport(2, connection=1)
    rig.deliver(data(0, 0), at=2)
    rig.turn()
    for _ in range(6):
        rig.deliver(heartbeat(32))
        rig.turn(1 * SECOND)
    rig.turn(201 * MS)
    assert {mailbox for mailbox, _ in rig.sent} == {1}


def test_active_transports_are_counted_in_the_log_metadata(rig):
    log, at = rig.pair.image_log.log, rig.pair.image_log.meta_at + descriptor.ACTIVE_TRANSPORT_COUNT
    rig.start()
    rig.add_transport(2, connection=1)
    rig.turn(201 * MS)
    assert log[at] == 1
    rig.deliver(data(0, 0), at=2)
    rig.turn()
    rig.turn(201 * MS)
    assert log[at] == 2
    rig.command(receiver_state.REMOVE_ENDPOINT, 2)
    assert log[at] == 1


def test_a_stream_ends_when_it_has_ended_on_every_connection(rig):
    rig.start()
    rig.add_transport(2, connection=1)
    rig.deliver(heartbeat(64, 0xE0))
    rig.turn()
    assert image.shared_acquire(rig.state.words, 0, image.IS_END_OF_STREAM) == 0
    rig.deliver(heartbeat(96, 0xE0), at=2)
    rig.turn()
    assert image.shared_acquire(rig.state.words, 0, image.IS_END_OF_STREAM) == 1
    log, meta_at = rig.pair.image_log.log, rig.pair.image_log.meta_at
    assert descriptor.end_of_stream_position_acquire(log, meta_at) == 96


def test_a_removed_destination_does_not_delay_the_end_and_gets_no_feedback(rig):
    rig.start()
    rig.add_transport(2, connection=1)
    rig.deliver(data(0, 0), at=2)
    rig.turn()
    rig.command(receiver_state.REMOVE_ENDPOINT, 2)
    assert [receiver_state.ENDPOINT_RELEASED, 2] in [event[:2] for event in rig.events()]
    rig.deliver(heartbeat(32, 0xE0))
    rig.turn(201 * MS)
    assert image.shared_acquire(rig.state.words, 0, image.IS_END_OF_STREAM) == 1
    assert {mailbox for mailbox, _ in rig.sent} <= {1}
    assert rig.state.agent[0].endpoint_count == 1


def test_an_endpoint_keeps_its_streams_when_a_destination_is_removed(rig):
    rig.add_transport(2, connection=1)
    rig.command(receiver_state.REMOVE_ENDPOINT, 2)
    rig.deliver(setup())
    rig.turn()
    assert [event[0] for event in rig.events()] == [
        receiver_state.ENDPOINT_RELEASED,
        receiver_state.CREATE_IMAGE,
    ]


def test_an_explicit_control_address_gets_elicitations_at_once_and_every_second(rig):
    sent = rig.add_transport(2, serves=2, **control_of(rig, 0))
    assert setup_requests(sent) == [REQUESTED]
    assert rig.destinations[-1] == rig.pair.names[0][:16].tobytes()
    assert setup_requests(rig.turn(2 * SECOND)) == []
    rig.command(receiver_state.ADD_INTEREST, 2, STREAM_ID, 0, 0)
    assert setup_requests(rig.turn(1)) == []
    times = []
    for _ in range(35):
        times += [rig.now_ns // (100 * MS)] * len(setup_requests(rig.turn(100 * MS)))
    assert [later - sooner for sooner, later in itertools.pairwise(times)] == [11, 11]
    rig.command(receiver_state.REMOVE_INTEREST, 2, STREAM_ID, 0, 0)
    assert setup_requests(rig.turn(5 * SECOND)) == []


def test_a_setup_that_waits_at_a_new_socket_finds_its_subscription(rig):
    rig.deliver(setup(), at=2)
    endpoint, record = rig.state.endpoints[2], handoff.make_record()
    fill(endpoint, fd=link.FIRST_FD - 2, serves=2)
    for words in ((receiver_state.ADD_ENDPOINT, 2), (receiver_state.ADD_INTEREST, 2, STREAM_ID)):
        record[: len(words)] = words
        assert handoff.put(rig.state.commands, record)
    rig.turn()
    (event,) = rig.events()
    assert event[:2] == [receiver_state.CREATE_IMAGE, 2]


def test_a_removed_socket_sends_no_elicitations(rig):
    rig.add_transport(2, serves=2, **control_of(rig, 0))
    rig.command(receiver_state.ADD_INTEREST, 2, STREAM_ID, 0, 0)
    rig.command(receiver_state.REMOVE_ENDPOINT, 2)
    assert rig.turn(5 * SECOND) == []
    assert rig.state.agent[0].eliciting_count == 0


def test_an_elicitation_for_a_subscribed_session_has_its_session_id(rig):
    rig.add_transport(2, serves=2, **control_of(rig, 0))
    wanted = REQUESTED | {"session_id": 77, "stream_id": 5}
    assert setup_requests(rig.command(receiver_state.ADD_INTEREST, 2, 5, 1, 77)) == [wanted]
    assert setup_requests(rig.command(receiver_state.ADD_INTEREST, 0, 5, 1, 78)) == []
    assert setup_requests(rig.command(receiver_state.REQUEST_SETUP, 2, 5, 77)) == [wanted]


def test_feedback_goes_to_a_changed_control_address(rig):
    rig.start()
    rig.add_transport(2, connection=1, **control_of(rig, 0))
    rig.deliver(data(0, 0), at=2)
    rig.turn()
    words = [int(word) for word in rig.pair.names[3].view(np.int32)]
    rig.command(receiver_state.CHANGE_CONTROL_ADDRESS, 2, 16, *words)
    rig.destinations.clear()
    rig.turn(1_100 * MS)
    new = rig.pair.names[3][:16].tobytes()
    where = {(left[0], to) for left, to in zip(rig.sent, rig.destinations, strict=True)}
    assert where == {(1, rig.pair.names[0][:16].tobytes()), (2, new)}
    assert {left[1][5] for left in rig.sent if left[0] == 2} == {0, 0x80}
    assert rig.value(system_counters.RESOLUTION_CHANGES) == 1
    rig.command(receiver_state.CHANGE_CONTROL_ADDRESS, 0, 16, *words)
    assert rig.value(system_counters.RESOLUTION_CHANGES) == 1


def test_the_time_of_the_last_frame_of_a_socket_is_reported(rig):
    activity = rig.state.endpoint_words
    rig.add_transport(2, connection=1)
    before_ns = rig.now_ns
    assert receive_endpoint.last_activity_acquire(activity, 2) == before_ns
    rig.now_ns += SECOND
    rig.deliver(data(0, 100))
    rig.turn()
    assert receive_endpoint.last_activity_acquire(activity, 0) == rig.now_ns
    assert receive_endpoint.last_activity_acquire(activity, 2) == before_ns
    rig.deliver(b"\0" * 40, at=2)
    rig.turn()
    assert receive_endpoint.last_activity_acquire(activity, 2) == before_ns
    rig.deliver(setup(stream_id=9), at=2)
    rig.turn()
    assert receive_endpoint.last_activity_acquire(activity, 2) == rig.now_ns


def test_a_socket_error_is_reported_when_no_other_event_is_pending(rig):
    rig.start()
    fill(rig.state.endpoints[0], fd=1_000_000)
    rig.turn(201 * MS)
    rig.turn()
    assert [event[:2] for event in rig.events()] == [[receiver_state.SEND_FAILED, 0]]


@pytest.mark.parametrize("limit", [1, 2])
def test_a_stream_with_the_maximum_number_of_images_is_reported(rig, limit):
    rig.state.agent[0].session_limit = limit
    rig.start()
    rig.deliver(setup(session_id=8), setup(session_id=9))
    rig.turn()
    kinds = [event[:3] for event in rig.events()]
    if limit == 1:
        assert kinds == [[receiver_state.SESSION_LIMIT, 0, STREAM_ID]]
    else:
        assert [kind[0] for kind in kinds] == 2 * [receiver_state.CREATE_IMAGE]


def test_an_image_created_too_late_gets_no_packets(rig):
    rig.deliver(setup())
    rig.turn()
    rig.interest(STREAM_ID, gone=True)
    rig.pair._on_events()
    rig.turn()
    rig.deliver(data(0, 100))
    rig.turn()
    assert rig.positions == (0, 0)
    assert rig.events() == []
