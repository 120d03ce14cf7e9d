"""Life cycles of publications and images in a whole driver with a manual clock."""

import struct

import numpy as np
import pytest

from tests.naive import wire
from tests.unit.driver.media_driver.invoked_driver import (
    CHANNEL,
    MS,
    PEER,
    SECOND,
    STREAM,
    TO_PEER,
    lab,
    lab_with_long_timeouts,
)
from tests.unit.driver.media_driver.receiving_rig import data, heartbeat, setup, status_of
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.command.image import AvailableImage, UnavailableImage
from windtunnel.driver.command.publication import AddExclusivePublication, RemovePublication
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.harness.dissect.driver_files.loss_report import read_loss_report

HERE = SocketAddress("10.0.0.1", 20_121)
SESSION = 4711


@pytest.fixture
def driver(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        yield opened


def subscribe(driver, channel=CHANNEL):
    registration_id = driver.next_id()
    driver.request(AddSubscription(driver.client, registration_id, STREAM, channel))
    return registration_id


def publish(driver, channel=TO_PEER):
    registration_id = driver.next_id()
    responses = driver.request(
        AddExclusivePublication(driver.client, registration_id, STREAM, channel)
    )
    return responses[-1]


def open_image(driver):
    """Deliver a SETUP of a peer's stream. Returns the AvailableImage response."""
    driver.send(HERE, setup())
    driver.turn(4)
    (response,) = [item for item in driver.take() if isinstance(item, AvailableImage)]
    return response


def of_session(frame, session):
    """Return a SETUP or DATA frame of another session."""
    return frame[:12] + struct.pack("<i", session) + frame[16:]


def statuses(driver):
    """Return the status messages sent since the previous call."""
    found = [status_of(item) for _, item in driver.outside if item[6] == wire.SM]
    driver.outside.clear()
    return found


def unavailable(driver):
    return [item.correlation_id for item in driver.take() if isinstance(item, UnavailableImage)]


def images(driver):
    return [name for name in driver.logs() if name.startswith("images")]


def test_an_image_that_receives_heartbeats_stays(driver):
    subscribe(driver)
    response = open_image(driver)
    for _ in range(120):
        driver.send(HERE, heartbeat(0))
        driver.run_for(SECOND // 10, 10 * MS)
    assert unavailable(driver) == []
    assert images(driver) == [f"images/{response.correlation_id}.logbuffer"]
    assert 12_000 // 210 <= len(statuses(driver)) <= 12_000 // 200 + 1


def test_an_image_ends_10_s_after_its_last_packet_and_a_drain_of_1_s(driver):
    subscription = subscribe(driver)
    response = open_image(driver)
    driver.send(HERE, data(0, 100))
    driver.turn()
    driver.set_value(response.subscriber_position_id, 160)
    driver.run_for(10 * SECOND)
    assert unavailable(driver) == []
    driver.run_for(4 * SECOND)
    (gone,) = driver.take()
    assert gone == UnavailableImage(response.correlation_id, subscription, STREAM, CHANNEL)
    # Log and position remain for subscribers during the image liveness timeout.
    driver.run_for(8 * SECOND)
    assert images(driver) == [f"images/{response.correlation_id}.logbuffer"]
    assert driver.value(response.subscriber_position_id) == 160
    driver.run_for(3 * SECOND)
    assert images(driver) == []
    assert {item.type_id for item in driver.active_counters()} == {7, 11, 14}
    assert driver.take() == []


def test_an_unavailable_image_is_removed_once_its_subscribers_left(driver):
    subscription = subscribe(driver)
    open_image(driver)
    driver.run_for(14 * SECOND)
    assert len(unavailable(driver)) == 1
    assert images(driver) != []
    driver.request(RemoveSubscription(driver.client, 900, subscription))
    driver.run_for(2 * SECOND)
    assert images(driver) == []
    assert driver.take() == []


def test_an_image_without_subscribers_is_not_given_to_a_new_one(driver):
    first = subscribe(driver)
    old = open_image(driver)
    driver.request(RemoveSubscription(driver.client, 900, first))
    responses = driver.request(AddSubscription(driver.client, driver.next_id(), STREAM, CHANNEL))
    assert [type(item) for item in responses] == [SubscriptionReady]
    driver.send(HERE, setup(96))
    driver.turn(3)
    (new,) = [item for item in driver.take() if isinstance(item, AvailableImage)]
    assert new.correlation_id != old.correlation_id
    assert driver.value(new.subscriber_position_id) == 96
    driver.outside.clear()
    driver.run_for(1 * SECOND)
    assert {(item["offset"], item["flags"]) for item in statuses(driver)} == {(96, 0)}


def test_a_slow_subscriber_keeps_a_silent_image(driver):
    subscribe(driver)
    response = open_image(driver)
    driver.send(HERE, data(0, 100))
    driver.run_for(30 * SECOND)
    assert unavailable(driver) == []
    driver.set_value(response.subscriber_position_id, 160)
    driver.run_for(2 * SECOND)
    assert unavailable(driver) == [response.correlation_id]


@pytest.mark.parametrize(("flags", "is_revoked"), [(0xE0, False), (0xF0, True)])
def test_an_ended_stream_is_drained_with_end_of_stream_status_messages(tmp_path, flags, is_revoked):
    with lab(tmp_path / "aeron", timer_interval_ns=100 * MS) as driver:
        driver.client = driver.next_id()
        drain(driver, flags, is_revoked)


def drain(driver, flags, is_revoked):
    subscribe(driver)
    response = open_image(driver)
    driver.send(HERE, data(0, 100))
    driver.turn(2)
    driver.set_value(response.subscriber_position_id, 160)
    statuses(driver)
    ended_ns = driver.clock.now_ns()
    while not (gone := unavailable(driver)):
        driver.send(HERE, heartbeat(160, flags))
        driver.run_for(100 * MS, 10 * MS)
    assert gone == [response.correlation_id]
    ends = [item["flags"] for item in statuses(driver) if item["flags"] == 0x40]
    lasted_ns = driver.clock.now_ns() - ended_ns
    if is_revoked:
        assert len(ends) >= 1
        assert lasted_ns <= 2_100 * MS
    else:
        assert len(ends) >= 1_000 // 210
        assert 1_000 * MS <= lasted_ns <= 3_100 * MS


def test_a_stream_that_ended_may_start_again(driver):
    subscribe(driver)
    first = open_image(driver)
    for _ in range(40):
        driver.send(HERE, heartbeat(0, 0xE0))
        driver.run_for(100 * MS)
    assert unavailable(driver) == [first.correlation_id]
    assert open_image(driver).correlation_id > first.correlation_id


@pytest.mark.parametrize(("rejoin", "comes_back"), [("true", True), ("false", False)])
def test_an_interrupted_stream_returns_if_rejoin_is_set(driver, rejoin, comes_back):
    subscribe(driver, f"{CHANNEL}|rejoin={rejoin}")
    open_image(driver)
    driver.run_for(15 * SECOND)
    assert len(unavailable(driver)) == 1
    driver.send(HERE, data(96, 100))
    driver.turn(3)
    assert bool([item for item in statuses(driver) if item["flags"] == 0x80]) == comes_back
    driver.send(HERE, setup(96))
    driver.turn(4)
    assert bool(driver.take()) == comes_back


def test_a_new_subscription_receives_a_session_that_had_timed_out(driver):
    old = subscribe(driver, f"{CHANNEL}|rejoin=false")
    driver.request(AddSubscription(driver.client, driver.next_id(), STREAM + 1, CHANNEL))
    open_image(driver)
    driver.run_for(15 * SECOND)
    driver.request(RemoveSubscription(driver.client, driver.next_id(), old))
    subscribe(driver, f"{CHANNEL}|rejoin=false")
    assert open_image(driver).session_id == SESSION


def test_a_late_subscriber_joins_at_the_slowest_position(driver):
    subscribe(driver)
    first = open_image(driver)
    driver.send(HERE, data(0, 1000))
    driver.send(HERE, data(1056, 1000))
    driver.turn(3)
    driver.set_value(first.subscriber_position_id, 1056)
    late = driver.next_id()
    responses = driver.request(AddSubscription(driver.client, late, STREAM, CHANNEL))
    assert [type(item) for item in responses] == [SubscriptionReady, AvailableImage]
    assert responses[1].correlation_id == first.correlation_id
    assert driver.value(responses[1].subscriber_position_id) == 1056
    assert driver.counters.label(responses[1].subscriber_position_id).endswith(" @1056")


def test_a_late_subscriber_joins_a_draining_image_only_while_it_has_readers(driver):
    subscribe(driver)
    first = open_image(driver)
    driver.send(HERE, data(0, 100))
    driver.turn(2)
    for _ in range(20):
        driver.send(HERE, heartbeat(160, 0xE0))
        driver.run_for(100 * MS)
    responses = driver.request(AddSubscription(driver.client, 900, STREAM, CHANNEL))
    assert [type(item) for item in responses] == [SubscriptionReady, AvailableImage]
    for position in (first.subscriber_position_id, responses[1].subscriber_position_id):
        driver.set_value(position, 160)
    responses = driver.request(AddSubscription(driver.client, 901, STREAM, CHANNEL))
    assert [type(item) for item in responses] == [SubscriptionReady]


def test_a_slow_subscriber_limits_its_sender(driver):
    subscribe(driver)
    response = open_image(driver)
    for at in range(0, 32_768, 1024):
        driver.send(HERE, data(at, 992))
    driver.run_for(1 * SECOND)
    assert {(item["offset"], item["window"]) for item in statuses(driver)} == {(0, 32_768)}
    driver.set_value(response.subscriber_position_id, 8192 + 32)
    driver.turn(2)
    assert statuses(driver)[-1]["offset"] == 8192 + 32


def test_a_lost_range_causes_a_nak_and_a_loss_report_entry(driver):
    subscribe(driver)
    open_image(driver)
    driver.send(HERE, data(1056, 1000))
    driver.turn(4, 1 * MS)
    naks = [item for _, item in driver.outside if item[6] == wire.NAK]
    assert naks[0] == wire.pack("nak", 28, 0, 0, wire.NAK, SESSION, STREAM, 7, 0, 1056)
    assert driver.value(system_counters.NAKS_SENT) == len(naks)
    report = (driver.driver.context.dir / "loss-report.dat").read_bytes()
    assert int.from_bytes(report[8:16], "little") == 1056
    assert int.from_bytes(report[32:36], "little") == SESSION
    assert CHANNEL.encode() in report[:256]
    assert b"10.0.0.2:40456" in report[:256]


def test_each_image_with_a_loss_has_a_report_entry_at_once(driver):
    subscribe(driver)
    for session in (SESSION, SESSION + 1):
        for frame in (setup(), data(1056, 1000), data(3168, 1000), data(0, 1000)):
            driver.send(HERE, of_session(frame, session))
            driver.turn(4, 1 * MS)
    content = np.fromfile(driver.driver.context.dir / "loss-report.dat", np.uint8)
    found = read_loss_report(content)
    losses = [(loss.session_id, loss.bytes_lost, loss.observation_count) for loss in found.losses]
    assert (losses, found.problem) == ([(SESSION, 2112, 2), (SESSION + 1, 2112, 2)], "")


def test_ranges_lost_at_the_same_time_are_separate_observations(driver):
    subscribe(driver, f"{CHANNEL}|windtunnel.nak-all-gaps=true")
    for frames in ([setup()], [data(1056, 1000), data(3168, 1000)]):
        for frame in frames:
            driver.send(HERE, frame)
        driver.turn(4, 1 * MS)
    content = np.fromfile(driver.driver.context.dir / "loss-report.dat", np.uint8)
    (loss,) = read_loss_report(content).losses
    assert (loss.bytes_lost, loss.observation_count) == (2112, 2)


def test_removing_the_last_subscription_removes_the_image_and_endpoint(driver):
    subscription = subscribe(driver)
    open_image(driver)
    driver.request(RemoveSubscription(driver.client, 900, subscription))
    driver.run_for(5 * SECOND)
    assert driver.take() == []
    assert images(driver) == []
    assert [item.type_id for item in driver.active_counters()] == [11]
    assert not driver.links.mailboxes.is_open.any()


def test_a_publications_log_is_removed_after_its_linger(driver):
    response = publish(driver, f"{TO_PEER}|linger=3s")
    log = LogBuffer.map(driver.driver.context.dir / driver.logs()[0])
    driver.request(RemovePublication(driver.client, 900, response.registration_id))
    assert descriptor.end_of_stream_position_acquire(log.log, log.meta_at) == 0
    driver.run_for(3 * SECOND)
    assert len(driver.logs()) == 1
    driver.run_for(3 * SECOND)
    assert driver.logs() == []
    assert [item.type_id for item in driver.active_counters()] == [11]
    log.close()


def deliver_status(driver, response, position=0, flags=0):
    address = SocketAddress("10.0.0.1", 49_152)
    log = LogBuffer.map(
        driver.driver.context.dir / f"publications/{response.registration_id}.logbuffer"
    )
    initial_term_id = log.initial_term_id
    log.close()
    datagram = wire.pack(
        "status_message",
        36,
        0,
        flags,
        wire.SM,
        response.session_id,
        STREAM,
        initial_term_id,
        position,
        4096,
        99,
    )
    assert driver.send(address, datagram, PEER) == len(datagram)


def test_a_publication_is_connected_while_status_messages_arrive(driver):
    response = publish(driver)
    log = LogBuffer.map(driver.driver.context.dir / driver.logs()[0])
    assert driver.value(response.limit_counter_id) == 0
    deliver_status(driver, response)
    driver.turn(4)
    assert descriptor.is_connected_acquire(log.log, log.meta_at) == 1
    assert driver.value(response.limit_counter_id) == 32_768
    driver.run_for(4_900 * MS)
    assert descriptor.is_connected_acquire(log.log, log.meta_at) == 1
    driver.run_for(300 * MS)
    assert descriptor.is_connected_acquire(log.log, log.meta_at) == 0
    assert driver.value(response.limit_counter_id) == 0
    log.close()


def test_the_setup_of_a_unicast_stream_has_no_time_to_live(driver):
    publish(driver, TO_PEER + "|ttl=4")
    driver.turn(2)
    setups = [item for _, item in driver.outside if item[6] == wire.SETUP]
    assert {int.from_bytes(item[36:40], "little") for item in setups} == {0}


def test_an_end_of_stream_confirmed_by_the_receiver_needs_no_linger(driver):
    response = publish(driver, f"{TO_PEER}|linger=60s")
    deliver_status(driver, response)
    driver.turn(3)
    driver.request(RemovePublication(driver.client, 900, response.registration_id))
    driver.run_for(3 * SECOND)
    assert len(driver.logs()) == 1
    flags = {item[5] for _, item in driver.outside if item[6] == wire.DATA}
    assert 0xE0 in flags
    deliver_status(driver, response, flags=0x40)
    driver.run_for(3 * SECOND)
    assert driver.logs() == []


def test_the_driver_writes_its_heartbeat_and_marks_itself_closed(tmp_path):
    with lab(tmp_path / "aeron") as driver:
        seen = []
        for _ in range(5):
            driver.run_for(1 * SECOND)
            seen.append(driver.clock.now_ms() - driver.cnc.heartbeat_ms())
        assert max(seen) <= 1_050
        ring = driver.cnc.to_driver
        driver.driver.close()
        assert ring_buffer.consumer_heartbeat_ms(ring) == ring_buffer.HEARTBEAT_OF_CLOSED
        driver.driver.close()
        assert ring_buffer.consumer_heartbeat_ms(ring) == ring_buffer.HEARTBEAT_OF_CLOSED
        del ring


@pytest.mark.parametrize(
    ("more", "position", "stays_s"),
    [
        ("", 0, 2),
        ("|windtunnel.retransmit-ranges=true", 0, 6),
        ("|windtunnel.retransmit-ranges=true", 160, 2),
        ("|windtunnel.retransmit-ranges=true|windtunnel.linger-max=0", 0, 2),
        ("|windtunnel.retransmit-ranges=true|eos=false", 0, 2),
    ],
)
def test_a_closed_publication_with_ranges_waits_a_limited_time_for_slow_receivers(
    driver, more, position, stays_s
):
    channel = TO_PEER + "|linger=2s|windtunnel.linger-max=6s" + more
    if "linger-max=0" in more:
        channel = TO_PEER + "|linger=2s" + more
    ready = publish(driver, channel)
    log = driver.open_log(ready.log_file_name)
    source = SocketAddress("10.0.0.1", 0)
    (source,) = {item for item, _ in driver.outside} or {source}

    def report(at):
        fields = (36, 0, 0, wire.SM, ready.session_id, STREAM, log.initial_term_id, at, 4096, 99)
        driver.send(source, wire.pack("status_message", *fields))
        driver.turn(2)

    report(0)
    driver.publish(log, 160)
    driver.turn(3)
    report(position)
    driver.request(RemovePublication(driver.client, driver.next_id(), ready.registration_id, False))
    lived_s = 0
    while driver.logs():
        report(position)
        driver.run_for(SECOND)
        lived_s += 1
        assert lived_s < 20
    # The timer runs every second, and the state changes at a timer.
    assert stays_s <= lived_s <= stays_s + 3
