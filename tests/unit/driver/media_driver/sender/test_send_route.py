"""The route of a publication's frames: all destinations, the requester, or none."""

import itertools

import pytest

from tests.naive import wire
from tests.sim.stream_pair import MS, SESSION_ID, SLOT, SND_POS, STREAM_ID
from tests.unit.driver.media_driver.sending_rig import SendingRig, kinds
from windtunnel.driver.base import handoff
from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media import link
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import destination_tracker, network_publication, sender
from windtunnel.driver.media_driver.sender import sender_state as state_of

FIRST, SECOND, THIRD = (SocketAddress("10.0.0.2", 40_000 + number) for number in range(3))
DESTINATIONS_ID = 70
BAD_FD = 1 << 20


@pytest.fixture
def rig(tmp_path):
    return SendingRig(tmp_path)


@pytest.fixture
def manual(rig):
    rig.state.endpoints[0].destinations_id = DESTINATIONS_ID
    rig.serve_destinations(destination_tracker.MANUAL, FIRST, SECOND, THIRD)
    return rig


def connect(rig, window=32_768, source=FIRST):
    rig.deliver_status(0, window, source=source)
    rig.turn()
    rig.turn()


def to(addressed):
    return [address for address, _ in addressed]


def all_destinations():
    return {str(FIRST), str(SECOND), str(THIRD)}


def test_every_kind_of_frame_goes_to_all_destinations(manual):
    rig = manual
    setups = rig.turn_addressed(100 * MS)
    assert kinds([item for _, item in setups]) == ["setup"] * 3
    assert set(to(setups)) == all_destinations()
    rig.deliver_status(0, 32_768, source=FIRST)
    rig.turn()
    heartbeats = rig.turn_addressed()
    assert kinds([item for _, item in heartbeats]) == ["heartbeat"] * 3
    rig.offer(1000, 1000)
    sent = rig.turn_addressed()
    assert sorted(sent) == sorted(
        (address, rig.bytes_of(at, 1056)) for address in all_destinations() for at in (0, 1056)
    )
    rig.deliver_nak(0, 1056)
    again = [*rig.turn_addressed(), *rig.turn_addressed()]
    assert {(address, item) for address, item in again} == {
        (address, rig.bytes_of(0, 1056)) for address in all_destinations()
    }
    rig.deliver(
        wire.pack("rtt_measurement", 40, 0, 0x80, wire.RTTM, SESSION_ID, STREAM_ID, 1, 0, 9)
    )
    replies = [*rig.turn_addressed(), *rig.turn_addressed()]
    assert kinds([item for _, item in replies]) == ["rttm"] * 3
    assert set(to(replies)) == all_destinations()


def test_bytes_are_counted_once_for_all_destinations(manual):
    rig = manual
    connect(rig)
    before = rig.value(system_counters.BYTES_SENT)
    rig.offer(1000, 1000)
    rig.turn()
    assert rig.value(system_counters.BYTES_SENT) - before == 2112
    assert rig.value(SND_POS) == 2112


def test_each_send_starts_with_another_destination(manual):
    rig = manual
    connect(rig)
    leaders = []
    for _ in range(6):
        rig.offer(100)
        leaders.append(to(rig.turn_addressed())[0])
    assert len(set(leaders[:3])) == 3
    assert leaders[:3] == leaders[3:]
    turns = itertools.cycle([str(FIRST), str(SECOND), str(THIRD)])
    assert leaders[0] in itertools.islice(turns, 3)


def test_destinations_are_added_and_removed_by_command(manual):
    rig = manual
    assert rig.value(DESTINATIONS_ID) == 3
    connect(rig)
    rig.command_address(state_of.REMOVE_DESTINATION, 0, SECOND)
    rig.turn()
    assert rig.value(DESTINATIONS_ID) == 2
    rig.offer(100)
    assert set(to(rig.turn_addressed())) == {str(FIRST), str(THIRD)}
    rig.command(state_of.REMOVE_DESTINATION_BY_ID, 0, 102)
    rig.turn()
    rig.offer(100)
    assert set(to(rig.turn_addressed())) == {str(FIRST)}
    rig.command_address(state_of.CHANGE_DESTINATION_ADDRESS, 100, THIRD)
    rig.turn()
    rig.offer(100)
    assert set(to(rig.turn_addressed())) == {str(THIRD)}
    assert rig.value(DESTINATIONS_ID) == 1
    assert rig.value(system_counters.RESOLUTION_CHANGES) == 1


def test_without_destinations_the_position_advances(rig):
    rig.serve_destinations(destination_tracker.MANUAL)
    connect(rig)
    rig.offer(1000)
    assert rig.turn() == []
    assert rig.value(SND_POS) == 1056
    assert rig.value(system_counters.SHORT_SENDS) == 0


def test_a_destination_without_an_address_is_skipped(rig):
    rig.serve_destinations(destination_tracker.MANUAL, FIRST)
    rig.command_address(state_of.ADD_DESTINATION, 7, None)
    rig.turn()
    connect(rig)
    # What is sent without a name would go to the peer.
    rig.pair.links.mailboxes[0].peer_length = 16
    rig.offer(1000)
    assert to(rig.turn_addressed()) == [str(FIRST)]
    assert rig.value(SND_POS) == 1056
    assert to(rig.turn_addressed(100 * MS)) == [str(FIRST)]


def test_a_destination_with_a_full_socket_does_not_delay_others(manual):
    rig = manual
    connect(rig)
    rig.offer(1300)
    rings, ring_length = rig.pair.links.rings, rig.pair.links.memory.size // 4
    rings[1].head = rings[1].tail - (ring_length - 2 * (1376 + link.HEADER_LENGTH))
    tail = int(rings[1].tail)
    rig.now_ns += 1
    sender.do_work(rig.state, rig.now_ns)
    assert rig.value(SND_POS) == 1344
    rings[1].head = tail
    assert len(rig.take()) == 2


def test_a_failing_destination_holds_the_position_and_is_reported(manual):
    """No descriptor of that number is open, so every send fails for good."""
    rig = manual
    connect(rig)
    rig.events()
    rig.offer(1000)
    endpoint = rig.state.endpoints[0]
    fd, endpoint.fd = int(endpoint.fd), BAD_FD
    rig.turn()
    assert rig.value(SND_POS) == 0
    assert rig.value(system_counters.SHORT_SENDS) == 1
    (event,) = rig.events(3)
    assert event[:2] == (state_of.SEND_FAILED, 0)
    assert event[2] < 0
    # Data counts as sent short, but neither heartbeats nor SETUPs, as in the C driver.
    counts = (system_counters.SHORT_SENDS, system_counters.HEARTBEATS_SENT)
    before = [rig.value(each) for each in counts]
    rig.turn(100 * MS)
    assert [rig.value(each) for each in counts] == [each + 1 for each in before]
    endpoint.fd = fd
    assert len(rig.turn()) == 3
    assert rig.value(SND_POS) == 1056


def test_the_source_of_a_status_message_is_a_destination_in_dynamic_mode(rig):
    rig.state.endpoints[0].destinations_id = DESTINATIONS_ID
    rig.serve_destinations(destination_tracker.DYNAMIC)
    assert rig.turn(100 * MS) == []
    rig.deliver(wire.pack("status_message", 36, 0, 0x80, wire.SM, 0, 0, 0, 0, 0, 5), FIRST)
    rig.turn()
    assert rig.value(DESTINATIONS_ID) == 1
    assert to(rig.turn_addressed(100 * MS)) == [str(FIRST)]
    rig.deliver_status(0, 32_768, receiver_id=6, source=SECOND)
    rig.turn()
    rig.turn()
    rig.offer(1000)
    assert set(to(rig.turn_addressed())) == {str(FIRST), str(SECOND)}


def test_a_rejected_status_message_adds_no_destination(rig):
    rig.serve_destinations(destination_tracker.DYNAMIC)
    rig.deliver_status(32_768 + 32, 0, source=FIRST)
    rig.deliver_status(0, 32_768 + 32, source=SECOND)
    rig.turn()
    rig.turn()
    assert rig.value(system_counters.STATUS_MESSAGES_REJECTED) == 1
    assert rig.value(system_counters.INVALID_PACKETS) == 1
    assert rig.state.endpoints[0].destinations_count == 0


def test_a_flood_of_elicitations_does_not_displace_receivers_in_dynamic_mode(rig):
    rig.serve_destinations(destination_tracker.DYNAMIC)
    for number in range(destination_tracker.DESTINATIONS_MAX + 44):
        source = SocketAddress(f"10.0.7.{number % 5}", 1_000 + number)
        rig.deliver(wire.pack("status_message", 36, 0, 0x80, wire.SM, 0, 0, 0, 0, 0, 5), source)
        rig.turn(10 * MS)
    assert rig.state.endpoints[0].destinations_count == destination_tracker.DESTINATIONS_MAX
    rig.deliver_status(0, 32_768, receiver_id=6, source=SECOND)
    rig.turn()
    rig.turn()
    rig.offer(1000)
    assert str(SECOND) in to(rig.turn_addressed())


@pytest.mark.parametrize(("stream_id", "session_id"), [(0, 0), (STREAM_ID, SESSION_ID)])
def test_an_elicitor_that_is_replaced_at_once_still_gets_a_setup(rig, stream_id, session_id):
    rig.serve_destinations(destination_tracker.DYNAMIC)
    host_max = destination_tracker.HOST_DESTINATIONS_MAX

    def flood():
        for number in range(host_max):
            source = SocketAddress("10.0.0.2", 1_000 + number)
            rig.deliver(wire.pack("status_message", 36, 0, 0x80, wire.SM, 0, 0, 0, 0, 0, 5), source)

    flood()
    for _ in range(8):
        rig.turn(10 * MS)
    assert rig.state.endpoints[0].destinations_count == host_max
    rig.turn(200 * MS)
    values = (stream_id and session_id, stream_id, 0, 0, 0, 6)
    rig.deliver(wire.pack("status_message", 36, 0, 0x80, wire.SM, *values), SECOND)
    flood()
    sent = [item for _ in range(8) for item in rig.turn_addressed(1 * MS)]
    assert kinds([item for address, item in sent if address == str(SECOND)])[:1] == ["setup"]


def test_a_silent_destination_is_dropped_at_the_next_send_in_dynamic_mode(rig):
    rig.serve_destinations(destination_tracker.DYNAMIC)
    connect(rig, source=FIRST)
    rig.turn(3 * NS_PER_SECOND)
    rig.deliver_status(0, 32_768, receiver_id=6, source=SECOND)
    rig.turn()
    assert set(to(rig.turn_addressed(2 * NS_PER_SECOND - 10 * MS))) == {str(FIRST), str(SECOND)}
    assert set(to(rig.turn_addressed(100 * MS))) == {str(SECOND)}
    assert rig.state.endpoints[0].destinations_count == 1


def test_a_silent_manual_destination_stays_and_its_name_is_looked_up_again(manual):
    rig = manual
    connect(rig, source=SECOND)
    rig.events()
    rig.turn(4 * NS_PER_SECOND)
    rig.deliver_status(0, 32_768, source=SECOND)
    rig.turn()
    assert rig.events() == []
    rig.turn(2 * NS_PER_SECOND)
    assert set(rig.events(3)) == {
        (state_of.RESOLVE_DESTINATION, 0, 100),
        (state_of.RESOLVE_DESTINATION, 0, 102),
    }
    rig.turn(2 * NS_PER_SECOND)
    assert rig.events() == []
    assert rig.state.endpoints[0].destinations_count == 3


def test_a_response_stream_is_sent_to_the_last_elicitor(rig):
    rig.pair.links.mailboxes[0].peer_length = 0
    rig.record.route = network_publication.TO_REQUESTER
    rig.begin()
    rig.offer(1000)
    assert rig.turn(100 * MS) == []
    assert rig.value(system_counters.SHORT_SENDS) > 0
    rig.deliver_setup_request(FIRST)
    rig.turn()
    setups = rig.turn_addressed(100 * MS)
    assert to(setups) == [str(FIRST)]
    assert kinds([item for _, item in setups]) == ["setup"]
    rig.deliver_status(0, 32_768, source=SECOND)
    rig.turn()
    assert to(rig.turn_addressed()) == [str(FIRST)]
    rig.deliver_setup_request(SECOND)
    rig.turn(100 * MS)
    assert to(rig.turn_addressed(100 * MS))[0] == str(SECOND)


def test_an_ended_stream_ignores_elicitations(rig):
    rig.pair.links.mailboxes[0].peer_length = 0
    rig.record.route = network_publication.TO_REQUESTER
    rig.begin()
    rig.command(state_of.END_PUBLICATION, SLOT, 0)
    rig.turn()
    rig.deliver_setup_request(FIRST)
    rig.turn()
    assert rig.record.requester_length == 0


def test_a_changed_endpoint_address_is_used(rig):
    rig.pair.links.mailboxes[0].peer_length = 0
    rig.begin()
    rig.command_address(state_of.CHANGE_ENDPOINT_ADDRESS, 0, SECOND)
    rig.turn()
    assert to(rig.turn_addressed(100 * MS)) == [str(SECOND)]
    assert rig.value(system_counters.RESOLUTION_CHANGES) == 1


def test_a_slow_member_limits_a_group_until_it_leaves(rig):
    rig.serve_destinations(destination_tracker.MANUAL, FIRST, SECOND)
    rig.state.flows[SLOT].strategy = 1
    rig.state.flows[SLOT].receiver_timeout_ns = 5 * NS_PER_SECOND
    rig.deliver_status(0, 4096, receiver_id=1, source=FIRST)
    rig.deliver_status(0, 2048, receiver_id=2, source=SECOND)
    rig.turn()
    rig.turn()
    # The limit never moves back in a status message, but does so in the next idle turn.
    assert rig.positions == (0, 2048)
    rig.offer(1000, 1000, 1000, 1000)
    rig.turn()
    assert rig.value(SND_POS) == 1056
    rig.deliver_status(1056, 4096, receiver_id=1, source=FIRST)
    rig.turn()
    assert rig.value(SND_POS) == 1056
    rig.deliver_status(1056, 0, flags=0x40, receiver_id=2, source=SECOND)
    for _ in range(4):
        rig.turn()
    assert rig.value(SND_POS) == 4 * 1056


def test_events_leave_space_in_the_queue_for_responses(manual):
    rig = manual
    capacity = (rig.state.events.size - 192) // 192
    slots = rig.state.publications.size + rig.state.endpoints.size
    for _ in range(capacity - slots):
        assert handoff.put(rig.state.events, handoff.make_record())
    rig.turn(6 * NS_PER_SECOND)
    assert handoff.free_record_count(rig.state.events) == slots
