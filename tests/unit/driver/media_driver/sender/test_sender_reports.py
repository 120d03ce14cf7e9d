"""Events from the sender to the conductor: errors, responses, connection status."""

import pytest

from tests.naive import wire
from tests.sim.stream_pair import MS, SESSION_ID, SLOT, SND_LMT, SND_POS, STREAM_ID
from tests.unit.driver.media_driver.sending_rig import PEER, RECEIVER_ID, SendingRig, kinds
from windtunnel.driver.channel.socket_address import SocketAddress, read_name
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.media import send_endpoint
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import (
    destination_tracker,
    error_frames,
    flow_control,
    network_publication,
)
from windtunnel.driver.media_driver.sender import sender_state as state_of

TEXT = b"not wanted"
TAG = 77
OTHER = SocketAddress("10.0.0.2", 40_000)
RESPONSE_ID, RESPONSE_SESSION = 4242, -7


@pytest.fixture
def rig(tmp_path):
    return SendingRig(tmp_path)


def refusal(receiver_id=RECEIVER_ID, text=TEXT, stream_id=STREAM_ID, trailer=b""):
    head = wire.pack(
        "error", 40 + len(text), 0, 0x08, wire.ERR, SESSION_ID, stream_id, receiver_id, TAG, 13,
        len(text),
    )  # fmt: skip
    return head + text + trailer


def deliver(rig, *datagrams, source=PEER):
    for datagram in datagrams:
        rig.deliver(datagram, source)
    rig.turn()
    rig.turn()


def errors_of(rig):
    return [event for event in rig.events(5) if event[0] == state_of.PUBLICATION_ERROR]


def disconnect(rig):
    """Disconnect the publication, as the conductor does when its last reader leaves."""
    descriptor.put_is_connected_release(rig.pair.log.log, rig.pair.log.meta_at, 0)


def is_alive(rig):
    return bool(network_publication.has_receivers_acquire(rig.state.words, SLOT))


def test_an_error_frame_removes_the_receiver_and_is_reported_with_its_source(rig):
    rig.start()
    deliver(rig, refusal(trailer=bytes(1000)))
    ((_, slot, destination_id, place, name_length),) = errors_of(rig)
    assert (slot, destination_id) == (SLOT, -1)
    ring = rig.state.error_frames
    start = error_frames.slot_at(place)
    assert read_name(ring[start : start + 28], name_length) == PEER
    frame = ring[start + error_frames.FRAME :][: 40 + len(TEXT)].tobytes()
    assert frame == refusal()
    rig.turn()
    assert not is_alive(rig)
    assert not rig.is_connected()


def test_an_error_frame_is_reported_once_and_only_for_known_receivers(rig):
    rig.start()
    deliver(rig, refusal(receiver_id=5), refusal(stream_id=5))
    assert errors_of(rig) == []
    assert is_alive(rig)
    deliver(rig, refusal(), refusal())
    assert len(errors_of(rig)) == 1
    assert rig.value(system_counters.ERROR_FRAMES_RECEIVED) == 4


def test_an_error_frame_of_a_destination_is_reported_with_its_id(rig):
    rig.serve_destinations(destination_tracker.MANUAL, OTHER)
    rig.deliver_status(0, 32_768, source=OTHER)
    deliver(rig, refusal(), source=OTHER)
    assert [event[2] for event in errors_of(rig)] == [100]


def test_an_error_frame_without_a_free_slot_is_reported_when_repeated(rig):
    rig.start()
    for receiver in range(error_frames.SLOTS + 1):
        rig.deliver_status(0, 32_768, receiver_id=receiver)
        deliver(rig, refusal(receiver))
    assert len(errors_of(rig)) == error_frames.SLOTS
    assert is_alive(rig)
    for _ in range(error_frames.SLOTS):
        error_frames.release(rig.state.error_frames)
    deliver(rig, refusal(error_frames.SLOTS))
    (event,) = errors_of(rig)
    assert event[3] == 0


def test_a_group_does_not_wait_for_a_receiver_that_sent_an_error(rig):
    rig.state.flows[SLOT].strategy = flow_control.MIN
    rig.state.flows[SLOT].receiver_timeout_ns = 5_000 * MS
    rig.start(window=4096)
    rig.deliver_status(0, 2048, receiver_id=5)
    deliver(rig)
    assert rig.value(SND_LMT) == 2048
    deliver(rig, refusal(receiver_id=5))
    rig.turn()
    assert rig.value(SND_LMT) == 4096


@pytest.mark.parametrize("has_correlation", [True, False])
def test_a_response_setup_is_reported_if_a_response_was_requested(rig, has_correlation):
    rig.record.has_response_correlation = int(has_correlation)
    rig.record.response_correlation_id = RESPONSE_ID
    rig.begin()
    deliver(
        rig,
        wire.pack("response_setup", 20, 0, 0, 11, SESSION_ID, STREAM_ID, RESPONSE_SESSION),
        wire.pack("response_setup", 20, 0, 0, 11, SESSION_ID, 5, RESPONSE_SESSION),
        wire.pack("response_setup", 20, 0, 0, 11, SESSION_ID, STREAM_ID, RESPONSE_SESSION)[:19],
    )
    expected = [(state_of.RESPONSE_SETUP, SLOT, RESPONSE_ID, RESPONSE_SESSION)]
    assert rig.events(4) == (expected if has_correlation else [])
    assert rig.value(system_counters.INVALID_PACKETS) == 1


def test_the_first_receiver_of_a_response_stream_is_reported_each_time(rig):
    rig.record.has_response_correlation = 1
    rig.record.response_correlation_id = RESPONSE_ID
    expected = [(state_of.RESPONSE_CONNECTED, SLOT, RESPONSE_ID)]
    rig.start()
    rig.deliver_status(0, 32_768)
    rig.deliver_status(0, 32_768, receiver_id=5)
    deliver(rig)
    assert rig.events(3) == expected
    rig.turn(5_000 * MS)
    rig.deliver_status(0, 32_768)
    deliver(rig)
    assert rig.events(3) == expected


def test_a_stream_without_a_response_reports_no_connection(rig):
    rig.start()
    assert rig.events() == []


def test_a_group_is_connected_only_with_its_minimum_of_receivers(rig):
    flow = rig.state.flows[SLOT]
    flow.strategy, flow.group_min_size, flow.receiver_timeout_ns = 1, 2, 5_000 * MS
    words = rig.state.words
    rig.start()
    assert is_alive(rig)
    assert not network_publication.has_required_receivers_acquire(words, SLOT)
    assert not rig.is_connected()
    rig.deliver_status(0, 32_768, receiver_id=5)
    deliver(rig)
    assert network_publication.has_required_receivers_acquire(words, SLOT)
    assert rig.is_connected()
    rig.deliver_status(0, 0, flags=0x40, receiver_id=5)
    deliver(rig)
    rig.turn()
    assert not network_publication.has_required_receivers_acquire(words, SLOT)
    assert not rig.is_connected()


def test_members_are_identified_by_the_tag_in_their_status_messages(rig):
    flow = rig.state.flows[SLOT]
    flow.strategy, flow.group_tag, flow.receiver_timeout_ns = 2, TAG, 5_000 * MS
    rig.begin()
    rig.deliver_status(0, 4096, receiver_id=1, tag=TAG.to_bytes(8, "little"))
    rig.deliver_status(0, 32_768, receiver_id=2, tag=(5).to_bytes(8, "little"))
    rig.deliver_status(0, 32_768, receiver_id=3)
    deliver(rig)
    assert rig.value(SND_LMT) == 4096
    assert rig.events() == []
    rig.deliver_status(0, 32_768, receiver_id=4, tag=TAG.to_bytes(4, "little"))
    deliver(rig)
    assert rig.value(SND_LMT) == 4096
    assert rig.events() == [(state_of.GROUP_TAG_MALFORMED, 0)]


def test_a_receiver_that_elicits_a_setup_holds_the_limit_until_it_joins(rig):
    flow = rig.state.flows[SLOT]
    flow.strategy, flow.receiver_timeout_ns = flow_control.MIN, 5_000 * MS
    rig.start(window=4096)
    rig.deliver_setup_request(receiver_id=5)
    deliver(rig)
    assert kinds(rig.turn(100 * MS))[0] == "setup"
    rig.deliver_status(0, 8192)
    deliver(rig)
    assert rig.value(SND_LMT) == 4096
    rig.deliver_status(0, 8192, receiver_id=5)
    deliver(rig)
    assert rig.value(SND_LMT) == 8192


@pytest.mark.parametrize(("simulates", "moves"), [(1, True), (0, False)])
def test_spies_alone_advance_a_stream_that_simulates_connections(rig, simulates, moves):
    rig.record.spies_simulate_connection = simulates
    rig.begin()
    rig.offer(1000)
    network_publication.set_spies_release(rig.state.words, SLOT, 1, 1056)
    rig.turn()
    assert rig.is_connected() == moves
    assert rig.positions == ((1056, 1056) if moves else (0, 0))
    network_publication.set_spies_release(rig.state.words, SLOT, 0, 1056)
    rig.turn()
    assert not rig.is_connected()


def test_spies_do_not_advance_a_stream_with_receivers(rig):
    rig.record.spies_simulate_connection = 1
    rig.start(window=0)
    rig.offer(1000)
    network_publication.set_spies_release(rig.state.words, SLOT, 1, 1056)
    rig.turn()
    assert rig.positions == (0, 0)


def test_a_revoked_stream_is_never_connected_again(rig):
    rig.start()
    rig.command(state_of.END_PUBLICATION, SLOT, 1)
    rig.turn()
    disconnect(rig)
    rig.deliver_status(0, 32_768)
    deliver(rig)
    assert not rig.is_connected()


def test_the_connection_status_is_also_written_in_idle_cycles(rig):
    rig.start()
    disconnect(rig)
    rig.turn()
    assert rig.is_connected()


def test_the_time_of_the_last_status_message_is_published(rig):
    rig.begin()
    rig.deliver_status(0, 4096)
    rig.turn()
    heard_ns = rig.now_ns
    rig.turn(50 * MS)
    assert send_endpoint.last_status_acquire(rig.state.endpoint_words, 0) == heard_ns
    assert rig.value(SND_POS) == 0
