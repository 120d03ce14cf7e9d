"""Feedback besides status messages and NAKs: rejections, RTT, response sessions."""

import numpy as np
import pytest

from tests.naive import wire
from tests.sim.stream_pair import MS, SESSION_ID, STREAM_ID, fill
from tests.unit.driver.media_driver.receiving_rig import ReceivingRig, data, heartbeat, status_of
from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor import conductor_state
from windtunnel.driver.media_driver.image import congestion_control, cubic, image_connections
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.media_driver.receiver import receiver, receiver_state
from windtunnel.driver.wire import error

SECOND = 1_000 * MS
OURS = 99
RTT_ID, WINDOW_ID = 60, 61


@pytest.fixture
def rig(tmp_path):
    rig = ReceivingRig(tmp_path, more_mailboxes=1)
    rig.start()
    return rig


def of_kind(datagrams, kind):
    return [item for item in datagrams if item[6] == kind]


def reject(rig, reason=b"not wanted"):
    rig.state.reasons[0, 1, : len(reason)] = np.frombuffer(reason, np.uint8)
    return rig.command(receiver_state.REJECT_IMAGE, 0, len(reason), 1)


def test_a_rejected_image_sends_only_error_frames_every_200_ms(rig):
    assert reject(rig) == []
    sent = [rig.turn(after) for after in (200 * MS, 1, 200 * MS, 1)]
    assert [len(item) for item in sent] == [0, 1, 0, 1]
    assert sent[1] == [
        wire.pack("error", 50, 0, 0, wire.ERR, SESSION_ID, STREAM_ID, OURS, 0, 13, 10)
        + b"not wanted"
    ]
    assert rig.value(system_counters.ERROR_FRAMES_SENT) == 2


def test_a_rejected_image_drops_datagrams_silently(rig):
    reject(rig)
    rig.deliver(data(0, 100), heartbeat(160, 0xE0), data(0, 100)[:-1] + b"\1")
    last_packet_ns = image.shared_acquire(rig.state.words, 0, image.LAST_PACKET_NS)
    rig.turn(1 * MS)
    assert rig.positions == (0, 0)
    assert not rig.log().any()
    assert rig.value(system_counters.INVALID_PACKETS) == 0
    assert rig.value(system_counters.HEARTBEATS_RECEIVED) == 0
    assert image.shared_acquire(rig.state.words, 0, image.LAST_PACKET_NS) == last_packet_ns


def test_naks_for_a_gap_that_remains_let_the_agents_idle(rig):
    rig.state.images[0].nak_delay_ns, rig.state.images[0].nak_retry_ns = 5 * MS, 10 * MS
    rig.deliver(*10 * [heartbeat(0)])
    rig.deliver(heartbeat(32_704))
    rig.turn()
    worked, naks = [], rig.value(system_counters.NAKS_SENT)
    for _ in range(30):
        rig.now_ns += 5 * MS
        conducted = conductor_state.track(rig.pair.conductor, rig.now_ns, rig.now_ns // MS)
        worked.append((int(conducted), int(receiver.do_work(rig.state, rig.now_ns))))
    assert rig.value(system_counters.NAKS_SENT) - naks == 15
    assert worked[0] == (0, 0)
    assert worked[1] == (1, 1)
    assert worked[2:] == 28 * [(0, 0)]


def test_an_error_frame_is_sent_even_after_a_long_silence(rig):
    reject(rig)
    assert len(of_kind(rig.turn(6 * SECOND), wire.ERR)) == 1


def test_the_longest_reason_is_sent_completely_with_the_group_tag(rig):
    fill(rig.state.endpoints[0], has_group_tag=1, group_tag=-7)
    reason = bytes(ord("a") + i % 26 for i in range(error.TEXT_LENGTH_MAX))
    reject(rig, reason)
    (sent,) = rig.turn(201 * MS)
    assert len(sent) == 1063
    assert sent[40:] == reason
    assert sent[5] == 0x08
    assert sent[24:32] == (-7).to_bytes(8, "little", signed=True)


def rttm(receiver_id, *, flags=0x80, echo=12_345, session_id=SESSION_ID, delta=0):
    return wire.pack(
        "rtt_measurement", 40, 0, flags, wire.RTTM, session_id, STREAM_ID, echo, delta, receiver_id
    )


@pytest.mark.parametrize(("receiver_id", "responses"), [(OURS, 1), (0, 1), (OURS + 1, 0), (-1, 0)])
def test_an_rtt_request_is_echoed_if_it_has_our_receiver_id(rig, receiver_id, responses):
    rig.deliver(rttm(receiver_id))
    assert rig.turn() == [rttm(OURS, flags=0)] * responses
    assert rig.destinations[-1] == rig.pair.names[0][:16].tobytes()


def test_an_rtt_request_for_a_stream_without_an_image_is_ignored(rig):
    rig.deliver(rttm(OURS, session_id=5))
    assert rig.turn() == []


def test_an_rtt_reply_is_sent_from_the_socket_of_the_request(rig):
    rig.add_transport(2, connection=1)
    rig.deliver(rttm(OURS), at=2)
    rig.turn()
    assert [(mailbox, item[6]) for mailbox, item in rig.sent] == [(2, wire.RTTM)]


def measure_rtt(rig):
    rec = rig.state.images[0]
    rec.congestion_control, rec.mtu = congestion_control.CUBIC, 1408
    cubic.fill(
        rec,
        initial_rtt_ns=1 * MS,
        is_measuring_rtt=True,
        is_tcp_mode=False,
        rtt_id=RTT_ID,
        window_id=WINDOW_ID,
        now_ns=rig.now_ns,
    )
    rec.last_rtt_ns = rig.now_ns


def test_round_trips_are_measured_if_congestion_control_needs_them(rig):
    rig.deliver(data(0, 100))
    rig.turn()
    measure_rtt(rig)
    assert of_kind(rig.turn(4 * MS), wire.RTTM) == []
    (question,) = of_kind(rig.turn(1), wire.RTTM)
    assert question == rttm(OURS, echo=rig.now_ns)
    assert of_kind(rig.turn(1 * MS), wire.RTTM) == []
    rig.deliver(rttm(OURS, flags=0, echo=rig.now_ns - 3 * MS, delta=1 * MS))
    rig.turn()
    assert rig.value(RTT_ID) == 2 * MS
    assert of_kind(rig.turn(8 * MS), wire.RTTM) == []
    assert len(of_kind(rig.turn(1), wire.RTTM)) == 1


def test_an_rtt_reply_to_another_receiver_is_ignored(rig):
    measure_rtt(rig)
    rig.deliver(rttm(OURS + 1, flags=0, echo=rig.now_ns - 3 * MS))
    rig.turn()
    assert rig.value(RTT_ID) == 0


def test_a_silent_connection_gets_no_rtt_request(rig):
    measure_rtt(rig)
    rig.state.images[0].rtt_timeout_ns = 5_100 * MS
    assert of_kind(rig.turn(5_200 * MS), wire.RTTM) == []
    rig.deliver(data(0, 100))
    assert len(of_kind(rig.turn(), wire.RTTM)) == 1


def test_the_response_session_is_sent_with_each_periodic_status_message(rig):
    sent = rig.command(receiver_state.SET_RESPONSE_SESSION, 0, 1, -4)
    response_setup = wire.pack(
        "response_setup", 20, 0, 0, wire.RSP_SETUP, SESSION_ID, STREAM_ID, -4
    )
    assert [item[6] for item in sent] == [wire.RSP_SETUP, wire.SM]
    assert sent[0] == response_setup
    assert of_kind(rig.turn(200 * MS), wire.RSP_SETUP) == []
    assert of_kind(rig.turn(1), wire.RSP_SETUP) == [response_setup]
    rig.deliver(heartbeat(0))
    rig.command(receiver_state.SET_RESPONSE_SESSION, 0, 0, 0)
    assert [item[6] for item in rig.turn(201 * MS)] == [wire.SM]


def test_early_status_messages_are_sent_without_a_response_session(rig):
    rig.command(receiver_state.SET_RESPONSE_SESSION, 0, 1, 5)
    for at in range(0, 16_384, 1024):
        rig.deliver(data(at, 992))
    rig.turn()
    rig.consume(16_384)
    assert [item[6] for item in rig.turn()] == [wire.SM]


def test_a_cubic_window_is_in_the_status_message_that_a_loss_forces(rig):
    measure_rtt(rig)
    rig.state.images[0].rtt_is_measured = 0
    rig.deliver(data(0, 100), data(4096, 100))
    sent = rig.turn(1) + rig.turn(1) + rig.turn(1)
    windows = [status_of(item)["window"] for item in of_kind(sent, wire.SM)]
    assert windows == [10 * 1408, 8 * 1408]
    assert counters.get(rig.pair.values, WINDOW_ID) == 8 * 1408


def test_feedback_to_a_session_without_data_is_limited_to_three_times_its_bytes(rig):
    sent = [len(item) for _ in range(20) for item in rig.turn(201 * MS)]
    assert 36 + sum(sent) == 108
    rig.deliver(heartbeat(0))
    sent = [len(item) for _ in range(20) for item in rig.turn(201 * MS)]
    assert sum(sent) == 108


def test_feedback_to_a_configured_address_has_no_limit(rig):
    fill(rig.state.endpoints[0], has_control=1)
    sent = [len(item) for _ in range(20) for item in rig.turn(201 * MS)]
    assert sum(sent) == 20 * 36


def test_naks_leave_a_silent_source_the_status_messages_of_a_connection_timeout(rig):
    rig.deliver(*10 * [data(4_096, 992)])
    rig.turn()
    assert rig.state.connections[0].unspent_bytes == image_connections.UNSPENT_BYTES_MAX
    rig.state.images[0].nak_delay_ns = 0
    sent = [item for _ in range(4_500) for item in rig.turn(MS)]
    assert len(of_kind(sent, wire.NAK)) == (4_096 - 1_024) // 28
    assert len(of_kind(sent, wire.SM)) == 4_500 // 201


@pytest.mark.parametrize(("earned", "naks"), [(96, 2), (216, 5), (4_095, 109)])
def test_naks_leave_a_third_of_what_a_source_has_earned_or_a_kibibyte(rig, earned, naks):
    connection = rig.state.connections[0]
    connection.unspent_bytes = 0
    image_connections.earn.py_func(rig.state.images[0], connection, earned // 3)
    spend = image_connections.spend.py_func
    assert spend(rig.state, connection, 28, 1_000, True) == naks
    assert spend(rig.state, connection, 28, 1, True) == 0
    assert spend(rig.state, connection, 36, 1_000, False) == (earned - 28 * naks) // 36


def test_bytes_spent_on_status_messages_are_no_longer_reserved(rig):
    connection = rig.state.connections[0]
    connection.unspent_bytes = 0
    image_connections.earn.py_func(rig.state.images[0], connection, 32)
    spend = image_connections.spend.py_func
    assert spend(rig.state, connection, 36, 1, False) == 1
    assert spend(rig.state, connection, 28, 1_000, True) == 2
