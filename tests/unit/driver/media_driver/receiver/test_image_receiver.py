"""Packets inserted into an image, and its feedback: status messages, NAKs, padding."""

import numpy as np
import pytest

from tests.naive import wire
from tests.sim.stream_pair import MS, NAKS_OUT, SESSION_ID, STREAM_ID
from tests.unit.driver.media_driver.receiving_rig import (
    TERM,
    ReceivingRig,
    data,
    heartbeat,
    pad,
    status_of,
)
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image import publication_image as image
from windtunnel.driver.media_driver.image import written_pages
from windtunnel.driver.media_driver.receiver import receiver_state

HALF = TERM // 2
COUNTED = {
    "invalid": system_counters.INVALID_PACKETS,
    "over": system_counters.FLOW_CONTROL_OVER_RUNS,
    "under": system_counters.FLOW_CONTROL_UNDER_RUNS,
    "heartbeats": system_counters.HEARTBEATS_RECEIVED,
}


@pytest.fixture
def rig(tmp_path):
    rig = ReceivingRig(tmp_path)
    rig.start()
    return rig


def deliver(rig, *datagrams):
    """Deliver datagrams. Returns the counters that changed, and by how much."""
    before = {name: rig.value(counter_id) for name, counter_id in COUNTED.items()}
    rig.deliver(*datagrams)
    rig.turn()
    rig.turn()
    added = {name: rig.value(COUNTED[name]) - before[name] for name in COUNTED}
    return {name: count for name, count in added.items() if count}


def statuses(datagrams):
    return [status_of(item) for item in datagrams if item[6] == wire.SM]


def naks(datagrams):
    return [
        tuple(np.frombuffer(item[16:28], "<i4").tolist())
        for item in datagrams
        if item[6] == wire.NAK
    ]


def test_the_first_status_message_is_sent_at_once_with_the_join_position(tmp_path):
    (first,) = statuses(ReceivingRig(tmp_path).start())
    assert first == {
        "session_id": SESSION_ID,
        "stream_id": STREAM_ID,
        "term_id": 7,
        "offset": 0,
        "window": HALF,
        "flags": 0,
        "kind": wire.SM,
        "length": 36,
    }


def test_a_packet_is_inserted_only_at_its_position(rig):
    before, packet = rig.log(), data(1408, 500, 100)
    assert deliver(rig, packet) == {}
    assert rig.positions == (0, 1408 + len(packet))
    before[1408 : 1408 + len(packet)] = np.frombuffer(packet, np.uint8)
    assert np.array_equal(rig.log(), before)
    deliver(rig, data(0, 1376))
    assert rig.positions == (1408 + len(packet),) * 2


def with_page_map(rig):
    """Give the rig's image a page map. Returns a function that lists the written pages."""
    pages = written_pages.make_pages(TERM)
    record = rig.state.images[0]
    record.pages_address, record.pages_length = pages.ctypes.data, pages.size
    return lambda: np.flatnonzero(pages).tolist()


def test_a_packet_marks_the_pages_that_it_is_written_to(rig):
    pages = with_page_map(rig)
    deliver(rig, data(2 * written_pages.PAGE_LENGTH - 32, 100))
    assert pages() == [1, 2]
    deliver(rig, data(5 * written_pages.PAGE_LENGTH, 100))
    assert pages() == [1, 2, 5]
    deliver(rig, heartbeat(7 * written_pages.PAGE_LENGTH))
    assert pages() == [1, 2, 5]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2, 1, 1, 0)])
def test_packets_in_any_order_and_repetition_give_the_same_log(rig, order):
    packets = [data(0, 1000), data(1056, 1000), pad(2112, 8192)]
    for number in order:
        deliver(rig, packets[number])
    rig.turn()
    assert rig.positions == (2112 + 8192,) * 2
    expected = np.zeros(3 * TERM, np.uint8)
    expected[: 2112 + 32] = np.frombuffer(b"".join(packets), np.uint8)
    assert np.array_equal(rig.log(), expected)


@pytest.mark.parametrize(
    ("position", "payload", "added"),
    [
        (HALF - 1056, 1000, {}),
        (HALF - 1024, 1000, {"over": 1}),
        (HALF, 0, {"over": 1}),
        (2 * TERM, 0, {"over": 1}),
        (2**31, 0, {"over": 1}),
    ],
)
def test_data_half_a_term_beyond_the_last_status_message_is_an_over_run(
    rig, position, payload, added
):
    before = rig.log()
    assert deliver(rig, data(position, payload)) == added
    assert rig.value(system_counters.INVALID_PACKETS) == 0
    assert (rig.positions[1] == 0) == bool(added)
    assert np.array_equal(rig.log(), before) == bool(added)


def test_the_whole_length_of_a_pad_counts_for_the_over_run_limit(rig):
    deliver(rig, data(0, *[992] * 31))
    assert deliver(rig, pad(31 * 1024, TERM - 31 * 1024)) == {"over": 1}
    assert rig.positions == (31 * 1024, 31 * 1024)


def to_quarter(rig, position=16_384):
    """Let the subscriber consume enough for a status message with the new position."""
    for at in range(0, position, 1024):
        deliver(rig, data(at, 992))
    rig.consume(position)
    sent = statuses(rig.turn())
    assert sent[-1]["offset"] == position % TERM


def test_acknowledged_data_is_an_under_run_and_does_not_keep_the_image_alive(rig):
    to_quarter(rig)
    last_packet_ns = image.shared_acquire(rig.state.words, 0, image.LAST_PACKET_NS)
    rig.now_ns += 5 * MS
    before = rig.log()
    assert deliver(rig, data(16_384 - 1024, 100)) == {"under": 1}
    assert image.shared_acquire(rig.state.words, 0, image.LAST_PACKET_NS) == last_packet_ns
    assert rig.state.connections[0].last_activity_ns == rig.now_ns
    assert np.array_equal(rig.log(), before)
    assert deliver(rig, data(16_384, 100)) == {}
    assert image.shared_acquire(rig.state.words, 0, image.LAST_PACKET_NS) == rig.now_ns


def test_packets_before_the_start_of_the_stream_are_ignored(rig):
    assert deliver(rig, data(-TERM, 100)) == {}
    assert rig.positions == (0, 0)


def edited(datagram, at, replacement):
    return datagram[:at] + replacement + datagram[at + len(replacement) :]


@pytest.mark.parametrize(
    "datagram",
    [
        edited(data(0, 100), 8, (32 * 2048).to_bytes(4, "little")),
        edited(data(0, 100), 8, (-32).to_bytes(4, "little", signed=True)),
        edited(data(0, 100), 8, (8).to_bytes(4, "little")),
        edited(data(0, 100), 0, (0).to_bytes(4, "little")),
        edited(data(0, 100), 0, (200).to_bytes(4, "little")),
        edited(data(0, 100), 0, (90).to_bytes(4, "little")),
        edited(data(0, 100, 100), 160 + 8, (0).to_bytes(4, "little")),
        edited(data(0, 100, 100), 160 + 6, (2).to_bytes(2, "little")),
        pad(TERM - 64, 128),
    ],
)
def test_an_inconsistent_packet_is_invalid_and_changes_nothing(rig, datagram):
    before = rig.log()
    assert deliver(rig, datagram) == {"invalid": 1}
    assert np.array_equal(rig.log(), before)
    assert rig.positions == (0, 0)


def test_a_heartbeat_advances_the_high_water_mark(rig):
    assert deliver(rig, heartbeat(1056)) == {"heartbeats": 1}
    assert rig.positions == (0, 1056)
    rig.turn()
    assert naks(rig.turn(1 * MS)) == [(7, 0, 1056)]


@pytest.mark.parametrize(("back", "added"), [(0, {"heartbeats": 1}), (32, {"under": 1})])
def test_a_heartbeat_is_accepted_up_to_a_term_before_the_last_status_message(rig, back, added):
    for target in range(16_384, TERM + 16_385, 16_384):
        for at in range(target - 16_384, target, 1024):
            deliver(rig, data(at, 992))
        rig.consume(target)
        rig.turn(200 * MS)
        rig.turn(200 * MS)
    behind = int(rig.state.images[0].last_status_position) - TERM - back
    assert behind >= 0
    assert deliver(rig, heartbeat(behind)) == added


def test_a_heartbeat_beyond_the_limit_is_an_over_run(rig):
    assert deliver(rig, heartbeat(HALF)) == {"heartbeats": 1}
    assert deliver(rig, heartbeat(HALF + 32)) == {"over": 1}


@pytest.mark.parametrize(("flags", "is_revoked"), [(0xE0, 0), (0xF0, 1)])
def test_the_end_of_a_stream_is_written_to_the_record_and_the_metadata(rig, flags, is_revoked):
    log, meta_at = rig.pair.image_log.log, rig.pair.image_log.meta_at
    deliver(rig, data(0, 100), heartbeat(160))
    assert image.shared_acquire(rig.state.words, 0, image.IS_END_OF_STREAM) == 0
    deliver(rig, heartbeat(160, flags), heartbeat(192, flags))
    assert image.shared_acquire(rig.state.words, 0, image.IS_END_OF_STREAM) == 1
    assert image.shared_acquire(rig.state.words, 0, image.IS_REVOKED) == is_revoked
    assert descriptor.end_of_stream_position_acquire(log, meta_at) == 160
    assert log[meta_at + descriptor.IS_PUBLICATION_REVOKED] == is_revoked
    assert rig.value(system_counters.PUBLICATION_IMAGES_REVOKED) == is_revoked


def test_the_flags_of_a_data_frame_do_not_end_the_stream(rig):
    deliver(rig, data(0, 100, flags=0xF0))
    assert image.shared_acquire(rig.state.words, 0, image.IS_END_OF_STREAM) == 0


def test_status_messages_repeat_every_200_ms(rig):
    assert [len(statuses(rig.turn(after))) for after in (199 * MS, 1 * MS, 1, 200 * MS, 1)] == [
        0,
        0,
        1,
        0,
        1,
    ]


def test_a_status_message_is_sent_early_when_more_than_a_quarter_was_consumed(rig):
    for at in range(0, 16_384, 1024):
        deliver(rig, data(at, 992))
    rig.consume(HALF // 4)
    assert statuses(rig.turn() + rig.turn()) == []
    rig.consume(HALF // 4 + 32)
    (sent,) = statuses(rig.turn() + rig.turn())
    assert (sent["offset"], sent["window"]) == (HALF // 4 + 32, HALF)


def test_a_source_that_was_silent_for_5_s_gets_no_status_messages(rig):
    assert len(statuses(rig.turn(4_999 * MS))) == 1
    assert statuses(rig.turn(201 * MS)) == []
    deliver(rig, data(0, 100))
    assert len(statuses(rig.turn(201 * MS))) == 1


def test_active_transports_are_counted_in_the_log_metadata(rig):
    log, meta_at = rig.pair.image_log.log, rig.pair.image_log.meta_at
    at = meta_at + descriptor.ACTIVE_TRANSPORT_COUNT
    assert log[at] == 1
    rig.turn(10_000 * MS)
    rig.turn(201 * MS)
    assert log[at] == 0


def test_a_draining_image_sends_the_end_flag_in_its_next_status_message_or_at_once(rig):
    rig.command(receiver_state.START_DRAINING, 0, 0)
    (sent,) = statuses(rig.turn(201 * MS))
    assert sent["flags"] == 0x40
    rig.turn(1 * MS)
    assert len(statuses(rig.command(receiver_state.START_DRAINING, 0, 0))) == 0
    (sent,) = statuses(rig.command(receiver_state.START_DRAINING, 0, 1))
    assert sent["flags"] == 0x40


def test_naks_for_a_gap_are_repeated_until_it_is_filled(rig):
    deliver(rig, data(1408, 1000))
    naks_sent = naks(rig.turn(1 * MS))
    for after in (50_000, 49_999, 1, 100_000):
        naks_sent += naks(rig.turn(after))
    assert naks_sent == [(7, 0, 1408)] * 3
    deliver(rig, data(0, 1376))
    assert naks(rig.turn(10 * MS) + rig.turn(10 * MS)) == []
    assert rig.value(system_counters.NAKS_SENT) == rig.value(NAKS_OUT) == 3


def test_an_unreliable_stream_pads_its_gap_and_sends_no_nak(tmp_path):
    rig = ReceivingRig(tmp_path, reliable=False)
    rig.start()
    deliver(rig, data(1408, 1000))
    assert naks(rig.turn() + rig.turn()) == []
    rig.turn()
    assert rig.positions == (1408 + 1056, 1408 + 1056)
    assert rig.value(system_counters.LOSS_GAP_FILLS) == 1
    assert rig.log()[:32].tobytes() == pad(0, 1408)
    before = rig.log()
    deliver(rig, data(0, 1376))
    assert np.array_equal(rig.log(), before)


def test_a_revoked_image_sends_no_nak(rig):
    deliver(rig, data(1408, 1000), heartbeat(2464, 0xF0))
    assert naks(rig.turn(1 * MS) + rig.turn(1 * MS)) == []
