"""What a publication with retransmit ranges retransmits, and when."""

import itertools
import random
import struct

import numpy as np
import pytest

from tests.naive import wire
from tests.sim.stream_pair import MS, SESSION_ID, SLOT, SND_POS, STREAM_ID
from tests.unit.driver.media_driver.sending_rig import RECEIVER_ID, SendingRig, kind, kinds, retire
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import gap_rows, nak_schedule, publication_image
from windtunnel.driver.media_driver.sender import (
    destination_tracker,
    range_sender,
    round_trip,
    sender_state,
)

RANGES, NOT_RESENT, RTT = 60, 61, 62
FRAME = 1056
REQUEST = 0x80


@pytest.fixture
def rig(tmp_path):
    made = SendingRig(tmp_path)
    made.record.has_retransmit_ranges = 1
    made.record.ranges_id, made.record.bytes_not_resent_id, made.record.rtt_id = (
        RANGES,
        NOT_RESENT,
        RTT,
    )
    # Group semantics: no measurements, so nothing but retransmits leaves.
    made.record.is_group = 1
    return made


def publish(rig, count, window=32_768):
    """Publish and send `count` frames of FRAME bytes."""
    rig.start(window=window)
    rig.offer(*[FRAME - 32] * count)
    for _ in range(count):
        rig.turn()
    assert rig.value(SND_POS) == count * FRAME


def resent(rig, turns=2):
    """Return the position range of each datagram sent in some duty cycles."""
    found = []
    for _ in range(turns):
        for datagram in rig.turn():
            if kinds([datagram]) == ["data"]:
                offset = struct.unpack_from("<i", datagram, 8)[0]
                assert datagram == rig.bytes_of(offset, len(datagram))
                found.append((offset, offset + len(datagram)))
    return found


def frames(*numbers):
    return [(FRAME * each, FRAME * (each + 1)) for each in numbers]


@pytest.mark.parametrize("is_group", [0, 1])
def test_each_range_is_retransmitted_once_within_the_linger(rig, is_group):
    rig.record.is_group = is_group
    publish(rig, 8)
    for number in (1, 5, 3, 1, 5, 3):
        rig.deliver_nak(FRAME * number, FRAME)
    assert resent(rig) == frames(1, 3, 5)
    rig.now_ns += 9 * MS
    for number in (1, 5, 3):
        rig.deliver_nak(FRAME * number, FRAME)
    assert resent(rig) == []
    assert (rig.value(RANGES), rig.value(NOT_RESENT)) == (3, 6 * FRAME)
    rig.now_ns += MS
    rig.deliver_nak(FRAME * 5, FRAME)
    assert resent(rig) == frames(5)
    assert rig.value(RANGES) == 1
    assert rig.value(system_counters.RETRANSMITS_SENT) == 4
    assert rig.value(system_counters.RETRANSMITTED_BYTES) == 4 * FRAME
    rig.turn(10 * MS)
    assert rig.value(RANGES) == 0


def test_only_parts_without_a_pending_retransmit_are_sent(rig):
    publish(rig, 8)
    rig.deliver_nak(FRAME * 2, FRAME)
    rig.deliver_nak(FRAME * 5, FRAME)
    assert resent(rig) == frames(2, 5)
    rig.deliver_nak(FRAME, FRAME * 6)
    assert resent(rig) == frames(1, 3, 4, 6)
    assert rig.value(NOT_RESENT) == 2 * FRAME


def test_a_retransmit_waits_for_the_configured_delay(rig):
    rig.record.retransmit_delay_ns = 5 * MS
    publish(rig, 3)
    rig.deliver_nak(FRAME, FRAME)
    assert resent(rig) == []
    rig.now_ns += 5 * MS - 1
    assert resent(rig) == []
    rig.now_ns += 1
    assert resent(rig) == frames(1)


def test_a_duty_cycle_sends_a_share_of_retransmits_and_new_data(rig):
    rig.record.max_messages_per_send = 4
    most = range_sender.RETRANSMITS_PER_TURN
    rig.start()
    rig.fill_to(1024 * 30)
    # Frames of 64 bytes, a datagram each because of the mtu.
    rig.record.mtu = 64
    rig.deliver_status(1024 * 30, 1 << 15)
    rig.offer(*[32] * 200)
    for _ in range(60):
        rig.turn()
    assert rig.value(SND_POS) == 1024 * 30 + 64 * 200
    rig.deliver_nak(1024 * 30, 64 * 200)
    rig.turn()
    rig.offer(*[32] * 20)
    turns = [rig.turn() for _ in range(4)]
    assert [len(each) for each in turns] == [most + 4, most + 4, most + 4, 200 - 3 * most + 4]
    assert rig.value(system_counters.RETRANSMITS_SENT) == 1
    assert rig.value(system_counters.RETRANSMITTED_BYTES) == 64 * 200


def test_a_range_that_took_several_turns_lingers_from_the_last(rig):
    rig.record.max_messages_per_send = 1
    publish(rig, 8)
    rig.pair.links.mailboxes[0].peer_length, peer = 0, rig.pair.links.mailboxes[0].peer_length
    rig.deliver_nak(0, FRAME)
    assert resent(rig) == []
    rig.now_ns += 30 * MS
    rig.pair.links.mailboxes[0].peer_length = peer
    assert resent(rig) == frames(0)
    rig.deliver_nak(0, FRAME)
    assert resent(rig) == []
    assert rig.value(system_counters.SHORT_SENDS) > 0


@pytest.mark.parametrize(
    ("begin", "length", "expected"),
    [
        (0, FRAME, [0]),
        (0, 65_536, [0, 1, 2]),
        (0, FRAME + 32, [0]),
        (0, FRAME - 32, []),
        (3 * FRAME, 32, []),
        (32, 2 * FRAME, []),
        (-65_536, FRAME, []),
    ],
)
def test_only_whole_sent_frames_are_retransmitted(rig, begin, length, expected):
    rig.start(window=3 * FRAME)
    rig.offer(*[FRAME - 32] * 4)
    rig.turn()
    assert rig.value(SND_POS) == 3 * FRAME
    rig.deliver_nak(begin, length)
    assert resent(rig) == frames(*expected)
    assert rig.value(system_counters.RETRANSMITTED_BYTES) == FRAME * len(expected)
    assert rig.value(system_counters.RETRANSMITS_SENT) == int(bool(expected))


@pytest.mark.parametrize(
    ("initial", "begin", "length", "expected"),
    [
        (0, -FRAME, FRAME, []),
        (0, 0, FRAME, [0]),
        (2 * FRAME, FRAME, FRAME, []),
        (2 * FRAME, 0, 4 * FRAME, []),
        (2 * FRAME, 2 * FRAME, 2 * FRAME, [2, 3]),
    ],
)
def test_data_before_the_start_of_the_stream_is_not_sent(rig, initial, begin, length, expected):
    publish(rig, 4)
    rig.plant(-FRAME, FRAME)
    rig.record.initial_position = initial
    rig.deliver_nak(begin, length)
    assert resent(rig) == frames(*expected)
    assert rig.value(system_counters.NAKS_RECEIVED) == 1
    assert rig.value(NOT_RESENT) == 0


@pytest.mark.parametrize("whole", [1, 2])
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_a_range_that_ends_within_a_frame_lingers_after_its_last_whole_frame(rig, whole, batch):
    rig.record.max_messages_per_send = batch
    publish(rig, 4)
    for later, expected in ((0, range(whole)), (10 * MS - 1, ()), (1, range(whole))):
        rig.now_ns += later
        rig.deliver_nak(0, whole * FRAME + 32)
        assert resent(rig) == frames(*expected)
    assert rig.value(system_counters.RETRANSMITS_SENT) == 2


def test_payload_that_looks_like_a_frame_of_another_session_is_not_sent(rig):
    rig.start()
    forged = wire.pack("data", 64, 0, 0xC0, wire.DATA, 64, SESSION_ID + 1, STREAM_ID, 7, 0)
    payload = forged + bytes(512)
    assert rig.pair.offer(payload) > 0
    rig.turn()
    rig.deliver_nak(32, 512)
    assert resent(rig) == []


@pytest.mark.parametrize("seed", range(20))
def test_retransmits_agree_with_a_naive_sender(rig, seed):
    chance = random.Random(seed)
    rig.record.max_messages_per_send = chance.choice([1, 4, 64])
    count = 20
    publish(rig, count)
    sent_at = {}
    for _ in range(60):
        rig.now_ns += chance.choice([0, MS, 4 * MS])
        expected = set()
        for _ in range(chance.randint(0, 3)):
            first = chance.randrange(count)
            length = chance.randint(1, count - first)
            rig.deliver_nak(FRAME * first, FRAME * length)
            expected |= {
                each
                for each in range(first, first + length)
                if rig.now_ns - sent_at.get(each, -10 * MS) >= 10 * MS
            }
        found = resent(rig)
        assert sorted(found) == frames(*sorted(expected))
        sent_at |= dict.fromkeys(expected, rig.now_ns)


def test_a_failing_destination_does_not_repeat_a_range_to_the_others(rig):
    rig.serve_destinations(
        destination_tracker.MANUAL, SocketAddress("10.0.0.1", 20_002), SocketAddress("10.0.0.9", 1)
    )
    rig.deliver_status(0, 32_768)
    rig.turn()
    rig.turn()
    rig.offer(FRAME - 32)
    for _ in range(4):
        rig.turn()
    rig.deliver_nak(0, FRAME)
    rig.turn()
    first = [kind(each) for each in rig.turn()]
    assert wire.DATA in first
    assert rig.turn() == []


def test_a_new_publication_in_an_old_slot_has_no_ranges(rig):
    publish(rig, 2)
    rig.deliver_nak(0, FRAME)
    assert resent(rig) == frames(0)
    retire(rig)
    rig.record.range_count = 0
    rig.command(sender_state.ADD_PUBLICATION, SLOT)
    rig.turn(MS)
    rig.deliver_nak(0, FRAME)
    assert resent(rig) == frames(0)


def requests(datagrams):
    """Return the timestamps in RTTM requests."""
    found = []
    for each in datagrams:
        if kind(each) == wire.RTTM:
            assert each[5] == REQUEST
            session, stream, echo, delta, receiver = struct.unpack_from("<iiqqq", each, 8)
            assert (session, stream, delta, receiver) == (SESSION_ID, STREAM_ID, 0, 0)
            found.append(echo)
    return found


def reply(rig, echo):
    ids = (SESSION_ID, STREAM_ID)
    rig.deliver(struct.pack("<iBBHiiqqq", 40, 0, 0, wire.RTTM, *ids, echo, 0, RECEIVER_ID))


def test_the_linger_follows_the_measured_round_trip(rig):
    rig.record.is_group = 0
    rig.begin()
    rig.deliver_status(0, 32_768)
    (echo,) = requests(rig.turn() + rig.turn())
    rig.now_ns += 50 * MS
    reply(rig, echo + 1)
    rig.turn()
    assert rig.value(RTT) == 0
    reply(rig, echo)
    rig.turn()
    assert rig.value(RTT) == 50 * MS
    rig.offer(FRAME - 32)
    rig.turn()
    rig.deliver_nak(0, FRAME)
    assert resent(rig) == frames(0)
    for later, expected in ((50 * MS, []), (1_562_500 - 1, []), (1, [0])):
        rig.now_ns += later
        rig.deliver_nak(0, FRAME)
        assert resent(rig) == frames(*expected)


def test_a_measurement_is_repeated_after_naks_only(rig):
    rig.record.is_group = 0
    rig.begin()
    rig.deliver_status(0, 32_768)
    found = []
    for turn in range(300):
        found += requests(rig.turn(10 * MS))
        if turn == 150:
            rig.deliver_status(0, 32_768)
    # There is no reply.
    assert [b - a for a, b in itertools.pairwise(found)] == [round_trip.REPLY_TIMEOUT_NS]
    reply(rig, found[-1])
    rig.turn()
    rig.offer(FRAME - 32)
    assert requests(rig.turn() + rig.turn(1_000 * MS)) == []
    rig.deliver_nak(0, FRAME)
    rig.turn()
    assert len(requests(rig.turn())) == 1


@pytest.mark.parametrize(
    ("samples", "linger"),
    [
        ([], 10 * MS),
        ([MS], 10 * MS),
        ([50 * MS], 51_562_500),
        ([80 * MS, 160 * MS], 92_812_500),
        ([80 * MS] * 40, 81 * MS),
        ([10_000 * MS], round_trip.LINGER_NS_MAX),
    ],
)
def test_the_linger_is_the_round_trip_and_a_deviation_within_bounds(rig, samples, linger):
    for sample_ns in samples:
        rig.record.rtt_request_ns = rig.now_ns
        round_trip.on_reply(rig.state, SLOT, rig.now_ns, rig.now_ns + sample_ns)
    assert round_trip.linger_ns(rig.record) == linger


def test_a_receiver_without_a_measurement_gets_a_retransmit_at_its_first_retry(rig):
    rig.record.rtt_request_ns = rig.now_ns
    round_trip.on_reply(rig.state, SLOT, rig.now_ns, rig.now_ns + 250 * MS)
    assert 250 * MS < round_trip.linger_ns(rig.record) < nak_schedule.INITIAL_REPAIR_NS


@pytest.mark.parametrize("round_trip_ns", [10 * MS, 40 * MS, 250 * MS, 1_000 * MS])
@pytest.mark.parametrize("samples", [1, 3, 30])
def test_a_retry_gets_a_retransmit_although_the_receiver_has_measured_more_often(
    rig, round_trip_ns, samples
):
    for _ in range(samples):
        rig.record.rtt_request_ns = rig.now_ns
        round_trip.on_reply(rig.state, SLOT, rig.now_ns, rig.now_ns + round_trip_ns)
    image = publication_image.make_images(1)[0][0]
    image.repair_ns, image.repair_deviation_ns = round_trip_ns, 0
    gap = gap_rows.make_gaps(1)[0][0]
    gap.naks_in_row = 1
    assert round_trip.linger_ns(rig.record) < nak_schedule._retry_delay_ns(image, gap)


def test_a_group_and_a_stream_without_ranges_are_not_measured(rig):
    publish(rig, 1)
    rig.deliver_nak(0, FRAME)
    assert requests(rig.turn(MS) + rig.turn(3_000 * MS)) == []
    rig.record.is_group, rig.record.has_retransmit_ranges = 0, 0
    rig.deliver_nak(0, FRAME)
    assert requests(rig.turn(MS) + rig.turn(3_000 * MS)) == []


def test_a_receiver_behind_the_end_of_the_stream_is_published(rig):
    publish(rig, 2)
    states = []
    for position, receiver in ((0, 1), (2 * FRAME, 2), (FRAME, 1), (2 * FRAME, 1)):
        rig.deliver_status(position, 32_768, receiver_id=receiver)
        rig.turn()
        rig.turn()
        states.append(int(rig.record.is_behind))
    assert states == [0, 0, 0, 0]
    # RECEIVER_ID has reported the start only.
    rig.command(sender_state.END_PUBLICATION, SLOT, 0)
    rig.turn()
    rig.turn()
    assert rig.record.is_behind == 1
    rig.deliver_status(2 * FRAME, 32_768)
    rig.turn()
    rig.turn()
    assert rig.record.is_behind == 0


def test_no_receiver_is_behind_a_revoked_stream(rig):
    publish(rig, 2)
    rig.command(sender_state.END_PUBLICATION, SLOT, 1)
    rig.turn()
    rig.turn()
    assert rig.record.is_behind == 0


def test_no_array_of_another_publication_is_touched(rig):
    publish(rig, 4)
    before = np.array(rig.state.ranges[range_sender.retransmit_ranges.RANGES_MAX :])
    rig.deliver_nak(0, 4 * FRAME)
    resent(rig)
    assert np.array_equal(
        before, np.array(rig.state.ranges[range_sender.retransmit_ranges.RANGES_MAX :])
    )
