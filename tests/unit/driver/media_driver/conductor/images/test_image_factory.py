"""Initial state of an image in a whole driver: counters, metadata, delays, timestamps."""

import struct

import numpy as np
import pytest

from tests.naive import wire
from tests.unit.driver.media_driver.invoked_driver import CHANNEL, MS, SECOND, STREAM, lab
from tests.unit.driver.media_driver.receiving_rig import data, heartbeat, setup, status_of
from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.error_log import TEXTS_PER_KIND_MAX, read_errors
from windtunnel.driver.command.image import AvailableImage
from windtunnel.driver.command.subscription import AddSubscription
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.image.congestion_control import CUBIC
from windtunnel.driver.media_driver.settings.loss_interceptors import FixedLoss, RandomLoss

HERE = SocketAddress("10.0.0.1", 20_121)
SESSION = 4711
MTU = 1408


def open_lab(tmp_path, **settings):
    return lab(
        tmp_path / "aeron",
        client_liveness_timeout_ns=3_600 * SECOND,
        publication_unblock_timeout_ns=7_200 * SECOND,
        **settings,
    )


def open_image(driver, more="", **fields):
    """A subscription and a stream for it. Returns the announcement."""
    driver.client = driver.client or driver.next_id()
    driver.request(AddSubscription(driver.client, driver.next_id(), STREAM, CHANNEL + more))
    driver.send(HERE, setup(**fields))
    driver.turn(4)
    (response,) = [item for item in driver.take() if isinstance(item, AvailableImage)]
    return response


def record_of(driver, response):
    images = driver.driver._resources.receiver.images
    (found,) = [rec for rec in images if int(rec.correlation_id) == response.correlation_id]
    return found


def test_counters_are_added_in_aerons_order(tmp_path):
    with open_lab(tmp_path) as driver:
        response = open_image(driver, "|cc=cubic")
        made = [
            item
            for item in driver.active_counters()
            if response.correlation_id == item.registration_id
        ]
        names = [item.label.split(":")[0] for item in made]
        in_order = ("rcv-cc-cubic-rtt", "rcv-cc-cubic-wnd", "rcv-hwm", "rcv-pos", "rcv-naks-sent")
        assert tuple(names) == in_order
        ids = [item.counter_id for item in made]
        assert ids == sorted(ids) == [*range(ids[0], response.subscriber_position_id)]
        rtt, window = made[:2]
        key = f"{response.correlation_id} {SESSION} {STREAM} {CHANNEL}|cc=cubic"
        assert rtt.label == f"rcv-cc-cubic-rtt: {key}"
        assert window.label == f"rcv-cc-cubic-wnd: {key}"
        assert [(item.type_id, item.owner_id) for item in made[:2]] == [(10, -1)] * 2
        assert (driver.value(rtt.counter_id), driver.value(window.counter_id)) == (0, 10 * MTU)


def test_the_first_window_of_a_cubic_image_is_ten_packets(tmp_path):
    with open_lab(tmp_path) as driver:
        open_image(driver, "|cc=cubic")
        sent = [status_of(item) for _, item in driver.outside if item[6] == wire.SM]
        assert {item["window"] for item in sent} == {10 * MTU}


def test_metadata_has_the_values_of_the_subscription_and_the_system(tmp_path):
    with open_lab(tmp_path) as driver:
        response = open_image(driver, "|rcv-wnd=100k|so-rcvbuf=200k|so-sndbuf=300k|reliable=false")
        buffers = driver.driver._resources.system_buffers
        log = LogBuffer.map(
            driver.driver.context.dir / f"images/{response.correlation_id}.logbuffer"
        )
        fields = {
            descriptor.RECEIVER_WINDOW_LENGTH: 100 * 1024,
            descriptor.SOCKET_RCVBUF_LENGTH: 200 * 1024,
            descriptor.SOCKET_SNDBUF_LENGTH: 300 * 1024,
            descriptor.OS_DEFAULT_SOCKET_SNDBUF_LENGTH: buffers.sndbuf_length,
            descriptor.OS_DEFAULT_SOCKET_RCVBUF_LENGTH: buffers.rcvbuf_length,
            descriptor.OS_MAX_SOCKET_RCVBUF_LENGTH: 0,
            descriptor.ACTIVE_TRANSPORT_COUNT: 0,
        }
        found = {at: int(log.log[log.meta_at + at :][:4].view(np.int32)[0]) for at in fields}
        assert found == fields
        assert log.log[log.meta_at + descriptor.RELIABLE] == 0
        log.close()


@pytest.mark.parametrize(
    "shared",
    [f"{CHANNEL}|tags=5", "aeron:udp?tags=5", f"{CHANNEL}|rcv-wnd=64k|nak-delay=9ms|rejoin=false"],
)
def test_the_channel_that_opened_the_endpoint_determines_all_images(tmp_path, shared):
    more = (
        "|tags=5|group=true|rcv-wnd=16k|cc=cubic|nak-delay=50ms|rejoin=false|tether=false"
        "|untethered-window-limit-timeout=3s"
    )
    with open_lab(tmp_path) as driver:
        driver.client = driver.next_id()
        opening = AddSubscription(driver.client, driver.next_id(), STREAM + 1, CHANNEL + more)
        driver.request(opening)
        driver.request(
            AddSubscription(driver.client, driver.next_id(), STREAM, f"{shared}|group=false")
        )
        driver.send(HERE, setup())
        driver.turn(4)
        (response,) = [item for item in driver.take() if isinstance(item, AvailableImage)]
        record = record_of(driver, response)
        assert (record.window_max, record.congestion_control) == (16 * 1024, CUBIC)
        # The subscription itself determines these, besides reliability and sparseness.
        assert record.is_group == 0
        assert record.nak_delay_ns == 50 * MS
        log = LogBuffer.map(
            driver.driver.context.dir / f"images/{response.correlation_id}.logbuffer"
        )
        metadata = log.log[log.meta_at :]
        assert metadata[descriptor.RECEIVER_WINDOW_LENGTH :][:4].view(np.int32)[0] == 16 * 1024
        limit_ns = metadata[descriptor.UNTETHERED_WINDOW_LIMIT_TIMEOUT_NS :][:8].view(np.int64)[0]
        assert limit_ns == 3 * SECOND
        assert (metadata[descriptor.REJOIN], metadata[descriptor.TETHER]) == (0, 0)
        log.close()


@pytest.mark.parametrize(
    ("more", "flags", "is_random"),
    [
        ("", 0, 0),
        ("", 0x40, 1),
        ("|group=true", 0, 1),
        ("|group=false", 0x40, 0),
        ("|reliable=false", 0x40, 0),
    ],
)
def test_a_group_member_has_a_random_nak_delay(tmp_path, more, flags, is_random):
    with open_lab(tmp_path) as driver:
        record = record_of(driver, open_image(driver, more, flags=flags))
        assert record.nak_is_random == is_random


@pytest.mark.parametrize(
    ("more", "delays"),
    [
        ("", (1_000, 100_000)),
        ("|nak-delay=5us", (5_000, 500_000)),
        ("|nak-delay=0", (0, 0)),
        ("|nak-delay=100000000s", (10**17, I64_MAX // 2)),
        ("|nak-delay=9223372037s", (I64_MAX // 2, I64_MAX // 2)),
        ("|reliable=false|nak-delay=5us", (0, 0)),
    ],
)
def test_a_single_receiver_has_the_nak_delay_of_its_channel(tmp_path, more, delays):
    with open_lab(tmp_path) as driver:
        record = record_of(driver, open_image(driver, more))
        assert (record.nak_delay_ns, record.nak_retry_ns) == delays


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", 0),
        ("|windtunnel.nak-all-gaps=true", 1),
        ("|windtunnel.nak-all-gaps=true|reliable=false", 0),
    ],
)
def test_an_image_sends_naks_for_all_gaps_only_if_its_channel_requests_it(tmp_path, more, expected):
    with open_lab(tmp_path) as driver:
        assert record_of(driver, open_image(driver, more)).is_nak_all_gaps == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("|reliable=false", (0, 0, 100 * MS)),
        ("|reliable=false|windtunnel.gap-fill-datagrams=4", (1, 4, 100 * MS)),
        ("|reliable=false|windtunnel.gap-fill-delay=5ms", (1, 0, 5 * MS)),
        ("|windtunnel.gap-fill-datagrams=4|windtunnel.gap-fill-delay=5ms", (0, 0, 0)),
    ],
)
def test_an_image_fills_gaps_on_evidence_only_if_its_channel_requests_it(tmp_path, more, expected):
    with open_lab(tmp_path) as driver:
        record = record_of(driver, open_image(driver, more))
        found = (record.is_fill_delayed, record.fill_datagrams, record.fill_delay_ns)
        assert found == expected


def test_a_window_below_the_senders_mtu_is_an_error_and_may_be_retried(tmp_path):
    with open_lab(tmp_path) as driver:
        driver.client = driver.next_id()
        channel = f"{CHANNEL}|rcv-wnd=1408"
        driver.request(AddSubscription(driver.client, driver.next_id(), STREAM, channel))
        # Each failure restricts the stream to sessions that repeat their SETUP for longer.
        for mtu, images in (*[(4096, 0)] * 3, *[(1408, 0)] * 9, (1408, 1)):
            driver.send(HERE, setup(mtu=mtu))
            driver.turn(4)
            driver.clock.advance(100 * MS)
            found = [item for item in driver.take() if isinstance(item, AvailableImage)]
            assert len(found) == images
        assert driver.value(system_counters.ERRORS) == 2


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ("", ()),
        ("|reliable=false", ()),
        (
            "|windtunnel.nak-all-gaps=true",
            ("rcv-gaps-open", "rcv-oldest-gap", "rcv-nak-retries", "rcv-repair-time"),
        ),
        (
            "|reliable=false|windtunnel.gap-fill-datagrams=4",
            ("rcv-gaps-open", "rcv-oldest-gap", "rcv-gaps-filled-early"),
        ),
    ],
)
def test_only_an_image_that_tracks_its_gaps_has_gap_counters(tmp_path, more, names):
    with open_lab(tmp_path) as driver:
        response = open_image(driver, more)
        made = [
            item
            for item in driver.active_counters()
            if response.correlation_id == item.registration_id
        ]
        found = {item.label.split(":")[0]: item for item in made[3:]}
        assert tuple(found) == names
        for item in found.values():
            assert item.label.split(" ")[1:4] == [
                str(response.correlation_id),
                str(SESSION),
                "1001",
            ]
        record = record_of(driver, response)
        fields = {
            "rcv-gaps-open": record.gaps_open_id,
            "rcv-oldest-gap": record.oldest_gap_id,
            "rcv-nak-retries": record.nak_retries_id,
            "rcv-repair-time": record.repair_time_id,
            "rcv-gaps-filled-early": record.filled_early_id,
        }
        for name, item in found.items():
            assert item.counter_id == fields[name]
        driver.turn(4, 20 * SECOND)
        assert not [
            item
            for item in driver.active_counters()
            if response.correlation_id == item.registration_id
        ]


def test_too_many_sessions_of_a_stream_are_an_error(tmp_path):
    with open_lab(tmp_path, stream_session_limit=1) as driver:
        open_image(driver)
        driver.send(HERE, setup(session_id=8))
        driver.turn(4)
        assert driver.take() == []
        assert driver.value(system_counters.ERRORS) == 1
        responses = driver.cnc.error_log[:256].tobytes()
        assert b"exceeded session limit, stream-id=1001" in responses


def test_too_many_sessions_of_many_streams_leave_room_in_the_error_log(tmp_path):
    streams = range(2_000, 2_000 + 3 * TEXTS_PER_KIND_MAX)
    with open_lab(tmp_path, stream_session_limit=1) as driver:
        for stream_id in streams:
            driver.add(AddSubscription, CHANNEL, stream_id)
            for session_id in (7, 8):
                driver.send(HERE, setup(session_id=session_id, stream_id=stream_id))
                driver.turn(4)
        found = read_errors(driver.cnc.error_log)
    assert sum(entry.observation_count for entry in found) == len(streams)
    assert len(found) == TEXTS_PER_KIND_MAX + 1


@pytest.mark.parametrize(("more", "at"), [("=reserved", 24), ("=8", 40)])
@pytest.mark.parametrize("key", ["channel-rcv-ts-offset", "media-rcv-ts-offset"])
def test_messages_are_timestamped_at_the_channels_offset(tmp_path, key, more, at):
    with open_lab(tmp_path) as driver:
        response = open_image(driver, f"|{key}{more}")
        driver.send(HERE, data(0, 100))
        driver.send(HERE, heartbeat(160))
        driver.turn(3)
        log = LogBuffer.map(
            driver.driver.context.dir / f"images/{response.correlation_id}.logbuffer"
        )
        (stamp,) = struct.unpack_from("<q", log.log, at)
        assert 1_600_000_000 < stamp // SECOND < 1 << 33
        expected = bytearray(data(0, 100))
        expected[at : at + 8] = struct.pack("<q", stamp)
        assert log.log[:160].tobytes() == bytes(expected)
        log.close()


def test_a_frame_dropped_by_an_interceptor_is_repaired(tmp_path):
    loss = FixedLoss(7, 0, 1024)
    with open_lab(tmp_path, incoming_interceptors=("fixed-loss",), fixed_loss=loss) as driver:
        open_image(driver)
        for at in (0, 1024):
            driver.send(HERE, data(at, 992))
        driver.turn(3, 1_000_000)
        assert driver.value(driver.named("rcv-pos").counter_id) == 0
        assert driver.value(driver.named("rcv-hwm").counter_id) == 2048
        assert any(item[6] == wire.NAK for _, item in driver.outside)
        driver.send(HERE, data(0, 992))
        driver.turn(3)
        assert driver.value(driver.named("rcv-pos").counter_id) == 2048


def test_an_interceptor_may_drop_all_frames_of_a_type(tmp_path):
    loss = RandomLoss(1.0, 5, 1 << wire.SETUP)
    with open_lab(tmp_path, incoming_interceptors=("loss",), random_loss=loss) as driver:
        driver.client = driver.next_id()
        driver.request(AddSubscription(driver.client, driver.next_id(), STREAM, CHANNEL))
        driver.send(HERE, setup())
        driver.turn(4)
        assert driver.take() == []
        received = counters.get(driver.cnc.counters_values, system_counters.BYTES_RECEIVED)
        assert received == 40
