"""Multi-destination publications in a whole driver: commands, counters and receivers."""

import struct
import time

import pytest

from tests.naive import wire
from tests.unit.driver.media_driver.invoked_driver import MS, PEER, SECOND, lab_with_long_timeouts
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.destination import (
    AddDestination,
    RemoveDestination,
    RemoveDestinationById,
)
from windtunnel.driver.command.image import AvailableImage
from windtunnel.driver.command.publication import AddPublication, RemovePublication
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess, PublicationError
from windtunnel.driver.command.subscription import AddSubscription, RemoveSubscription
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.sender import destination_tracker

MANUAL = "aeron:udp?control=10.0.0.1:24325|control-mode=manual|term-length=64k"
DYNAMIC = "aeron:udp?control=10.0.0.1:24325|control-mode=dynamic|term-length=64k"
CONTROL = SocketAddress("10.0.0.1", 24_325)
HERE = "aeron:udp?endpoint=10.0.0.1:20121"
THERE = "aeron:udp?endpoint=10.0.0.1:20122"
OUTSIDE = f"aeron:udp?endpoint={PEER}"


class Names:
    """A resolver that maps every name to the test's address."""

    def __init__(self):
        self.host, self.looked_up = "10.0.0.9", []

    def resolve(self, host, key):
        self.looked_up.append(host)
        if host == "nowhere" and len(self.looked_up) == 1:
            raise UnknownHostError(f"{key}={host}: unknown")
        return self.host, 0

    def interfaces(self):
        return []


@pytest.fixture
def driver(tmp_path):
    names = Names()
    with lab_with_long_timeouts(tmp_path / "aeron", resolver=names) as opened:
        opened.names, opened.available = names, []
        yield opened


def publish(driver, channel=MANUAL, stream=1001):
    registration_id, responses = driver.add(AddPublication, channel, stream)
    assert not isinstance(responses[-1], ErrorResponse), responses
    return registration_id, responses[-1]


def send_command(driver, kind, registration_id, what):
    correlation_id = driver.next_id()
    return correlation_id, driver.request(
        kind(driver.client, correlation_id, registration_id, what)
    )


def add(driver, registration_id, channel):
    correlation_id, responses = send_command(driver, AddDestination, registration_id, channel)
    assert responses[0] == OperationSuccess(correlation_id)
    driver.available += [item for item in responses if isinstance(item, AvailableImage)]
    return correlation_id


def subscribe(driver, channel):
    return driver.add(AddSubscription, channel)


def images(driver):
    driver.run_for(500 * MS)
    driver.available += [item for item in driver.take() if isinstance(item, AvailableImage)]
    return driver.available


def test_each_destination_gets_the_stream(driver):
    for channel in (HERE, THERE):
        subscribe(driver, channel)
    publication_id, ready = publish(driver)
    assert images(driver) == []
    for channel in (HERE, THERE):
        add(driver, publication_id, channel)
    found = images(driver)
    assert len(found) == 2
    log = driver.open_log(ready.log_file_name)
    position = driver.publish(log, 8192)
    driver.run_for(500 * MS)
    received = [item for item in driver.active_counters() if item.label.startswith("rcv-pos: ")]
    assert [driver.value(item.counter_id) for item in received] == [position] * 2
    assert driver.named("snd-pos").value == position


def test_the_number_of_destinations_is_counted(driver):
    publication_id, _ = publish(driver)
    counter = driver.named("mdc-num-dest")
    status = driver.named("snd-channel")
    assert counter.type_id == 18
    assert counter.label == f"mdc-num-dest: {MANUAL}"
    assert bytes(counter.key[:4]) == struct.pack("<i", len(MANUAL))
    assert (counter.registration_id, counter.owner_id) == (publication_id, status.owner_id)
    # The order of the C driver.
    address = driver.named("snd-local-sockaddr")
    assert [counter.counter_id, address.counter_id] == [
        status.counter_id + 1,
        status.counter_id + 2,
    ]
    first = add(driver, publication_id, HERE)
    add(driver, publication_id, THERE)
    assert driver.named("mdc-num-dest").value == 2
    send_command(driver, RemoveDestination, publication_id, THERE)
    assert driver.named("mdc-num-dest").value == 1
    send_command(driver, RemoveDestinationById, publication_id, first)
    assert driver.named("mdc-num-dest").value == 0
    driver.request(RemovePublication(driver.client, driver.next_id(), publication_id, False))
    driver.run_for(10 * SECOND)
    assert driver.stream_counters() == []


def test_destinations_belong_to_the_channel_and_outlive_the_publication_that_added_them(driver):
    first, _ = publish(driver, stream=1)
    second, _ = publish(driver, stream=2)
    add(driver, first, HERE)
    driver.request(RemovePublication(driver.client, driver.next_id(), first, False))
    driver.run_for(10 * SECOND)
    assert driver.named("mdc-num-dest").value == 1
    _, responses = send_command(driver, RemoveDestination, second, HERE)
    assert isinstance(responses[0], OperationSuccess)
    assert driver.named("mdc-num-dest").value == 0


@pytest.mark.parametrize("kind", [AddDestination, RemoveDestination])
@pytest.mark.parametrize(
    ("channel", "code"),
    [
        ("aeron-spy:aeron:udp?endpoint=10.0.0.1:1", ErrorCode.INVALID_CHANNEL),
        ("aeron:ipc", ErrorCode.GENERIC_ERROR),
        ("aeron:udp?control=10.0.0.1:1", ErrorCode.GENERIC_ERROR),
        ("aeron:udp?endpoint=10.0.0.1:0", ErrorCode.GENERIC_ERROR),
        ("aeron:udp?endpoint=10.0.0.1:1|mtu=8k", ErrorCode.INVALID_CHANNEL),
        ("aeron:udp?endpoint=10.0.0.1:1|control-mode=response", ErrorCode.INVALID_CHANNEL),
        ("udp://10.0.0.1:1", ErrorCode.INVALID_CHANNEL),
    ],
)
def test_an_invalid_destination_is_rejected(driver, kind, channel, code):
    publication_id, _ = publish(driver)
    correlation_id, (response,) = send_command(driver, kind, publication_id, channel)
    assert (response.correlation_id, response.error_code) == (correlation_id, code)
    assert driver.named("mdc-num-dest").value == 0


@pytest.mark.parametrize(
    ("kind", "what"),
    [(AddDestination, HERE), (RemoveDestination, HERE), (RemoveDestinationById, 5)],
)
def test_destination_commands_require_manual_control_mode(driver, kind, what):
    _, (response,) = send_command(driver, kind, 4711, what)
    assert response.error_code == ErrorCode.UNKNOWN_PUBLICATION
    for number, channel in enumerate((DYNAMIC, OUTSIDE)):
        publication_id, _ = publish(driver, channel, number)
        _, (response,) = send_command(driver, kind, publication_id, what)
        assert response.error_code == ErrorCode.GENERIC_ERROR
        assert "control-mode=manual" in response.message


def test_a_shared_publication_keeps_its_first_registration_id(driver):
    first, _ = publish(driver)
    second, ready = publish(driver)
    assert ready.registration_id == first
    driver.request(RemovePublication(driver.client, driver.next_id(), first, False))
    add(driver, first, HERE)
    add(driver, second, THERE)
    assert driver.named("mdc-num-dest").value == 2


@pytest.mark.parametrize(("kind", "what"), [(RemoveDestination, HERE), (RemoveDestinationById, 5)])
def test_removing_an_absent_destination_succeeds(driver, kind, what):
    publication_id, _ = publish(driver)
    correlation_id, responses = send_command(driver, kind, publication_id, what)
    assert responses == [OperationSuccess(correlation_id)]


def test_the_number_of_destinations_is_limited(driver):
    publication_id, _ = publish(driver)
    endpoints, slot = driver.driver.conductor.components.send_endpoints, 0
    for number in range(destination_tracker.DESTINATIONS_MAX):
        add(driver, publication_id, f"aeron:udp?endpoint=10.0.0.2:{1 + number}")
    _, (response,) = send_command(driver, AddDestination, publication_id, HERE)
    assert response.error_code == ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE
    assert len(endpoints.destinations(slot)) == destination_tracker.DESTINATIONS_MAX


def watched(driver):
    """Return how many names are looked up again while their destinations are silent."""
    return len(driver.driver.conductor.components.reresolution._watched)


def test_names_of_a_closed_channel_are_not_looked_up(driver):
    first, _ = publish(driver, "aeron:udp?endpoint=far:40456|term-length=64k")
    second, _ = publish(driver)
    add(driver, second, "aeron:udp?endpoint=far:40457")
    assert watched(driver) == 2
    for publication_id in (first, second):
        driver.request(RemovePublication(driver.client, driver.next_id(), publication_id, False))
    driver.run_for(10 * SECOND)
    assert watched(driver) == 0
    assert driver.stream_counters() == []


def test_a_name_without_an_address_becomes_a_destination_when_it_has_one(driver):
    publication_id, _ = publish(driver)
    add(driver, publication_id, "aeron:udp?endpoint=nowhere:40456")
    assert driver.named("mdc-num-dest").value == 1
    driver.run_for(2 * SECOND)
    assert driver.outside == []
    driver.run_for(6 * SECOND)
    assert driver.outside != []
    assert len(driver.names.looked_up) == 2
    assert driver.value(system_counters.RESOLUTION_CHANGES) == 1
    _, (response,) = send_command(
        driver, RemoveDestination, publication_id, "aeron:udp?endpoint=10.0.0.9:40456"
    )
    assert isinstance(response, OperationSuccess)
    assert driver.named("mdc-num-dest").value == 0
    driver.run_for(12 * SECOND)
    assert len(driver.names.looked_up) == 2
    assert watched(driver) == 0


def test_the_name_of_a_silent_peer_is_looked_up_again(driver):
    publish(driver, "aeron:udp?endpoint=far:40456|term-length=64k")
    endpoint = driver.driver.conductor.components.send_endpoints.by_slot(0)
    index = -2 - endpoint.fd
    before = bytes(bytearray(driver.links.mailboxes[index].peer))
    driver.run_for(4 * SECOND)
    assert len(driver.names.looked_up) == 1
    driver.names.host = "10.0.0.10"
    driver.run_for(3 * SECOND)
    assert len(driver.names.looked_up) > 1
    assert bytes(bytearray(driver.links.mailboxes[index].peer)) != before
    assert driver.value(system_counters.RESOLUTION_CHANGES) == 1


def test_subscribers_find_a_dynamic_channel_by_its_control_address(driver):
    _, ready = publish(driver, DYNAMIC)
    for channel in (HERE, THERE):
        subscribe(driver, f"{channel}|control={CONTROL}")
    assert len(images(driver)) == 2
    driver.run_for(2 * SECOND)
    assert driver.named("mdc-num-dest").value == 2
    position = driver.publish(driver.open_log(ready.log_file_name), 8192)
    driver.run_for(SECOND)
    received = [item for item in driver.active_counters() if item.label.startswith("rcv-pos: ")]
    assert [driver.value(item.counter_id) for item in received] == [position] * 2


@pytest.mark.parametrize("fc", ["min", "tagged,g:7"])
def test_min_flow_control_counts_its_receivers(driver, fc):
    channel = f"{MANUAL}|fc={fc}"
    publication_id, _ = publish(driver, channel)
    counter = driver.named("fc-receivers")
    assert (counter.type_id, counter.owner_id, counter.value) == (17, -1, 0)
    assert counter.registration_id == publication_id
    assert counter.label.endswith(f" 1001 {channel}")
    subscribe(driver, f"{HERE}|gtag=7")
    subscribe(driver, f"{THERE}|gtag=8")
    for where in (HERE, THERE):
        add(driver, publication_id, where)
    assert len(images(driver)) == 2
    assert driver.named("fc-receivers").value == (2 if fc == "min" else 1)
    driver.request(RemovePublication(driver.client, driver.next_id(), publication_id, False))
    driver.run_for(10 * SECOND)
    assert [item for item in driver.stream_counters() if item.type_id == 17] == []


@pytest.mark.parametrize("channel", [f"{MANUAL}|fc=max", MANUAL, f"{OUTSIDE}|fc=min"])
def test_max_flow_control_counts_no_receivers(driver, channel):
    publish(driver, channel)
    assert [item for item in driver.stream_counters() if item.type_id == 17] == []


def test_a_rejection_is_reported_with_its_destination(driver):
    publication_id, ready = publish(driver)
    destination_id = add(driver, publication_id, OUTSIDE)
    log = driver.open_log(ready.log_file_name)
    status = wire.pack(
        "status_message", 36, 0, 0, wire.SM, ready.session_id, 1001, log.initial_term_id, 0, 4096, 9
    )
    text = b"not wanted"
    refusal = wire.pack(
        "error", 40 + len(text), 0, 0, wire.ERR, ready.session_id, 1001, 9, 0, 13, len(text)
    )
    driver.send(CONTROL, status)
    driver.turn(3)
    driver.send(CONTROL, refusal + text)
    driver.turn(3)
    (response,) = [item for item in driver.take() if isinstance(item, PublicationError)]
    assert response == PublicationError(
        publication_id, destination_id, ready.session_id, 1001, 9, -1, PEER.host, PEER.port, 13,
        "not wanted",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("channel", "flags"),
    [
        (OUTSIDE, 0),
        (f"{OUTSIDE}|response-correlation-id={{response}}", 0x80),
        (f"{DYNAMIC}|response-correlation-id={{response}}", 0xC0),
    ],
)
def test_setup_flags_show_group_semantics_and_response_streams(driver, channel, flags):
    response, _ = subscribe(driver, f"aeron:udp?control={PEER}|control-mode=response")
    _, ready = publish(driver, channel.format(response=response) + "|term-length=64k")
    if channel.startswith(DYNAMIC):
        elicit = wire.pack("status_message", 36, 0, 0x80, wire.SM, 0, 0, 0, 0, 0, 9)
        driver.send(CONTROL, elicit)
    driver.run_for(500 * MS)
    setups = [item for _, item in driver.outside if item[6] == wire.SETUP]
    assert {item[5] for item in setups} == {flags}
    assert ready.stream_id == 1001


def test_a_channel_with_a_timestamp_offset_sends_the_time_in_its_frames(driver):
    _, ready = publish(driver, f"{OUTSIDE}|term-length=64k|channel-snd-ts-offset=reserved")
    log = driver.open_log(ready.log_file_name)
    term_id = log.initial_term_id
    local = driver.driver.conductor.components.send_endpoints.by_slot(0).sockets.frames.local
    status = wire.pack(
        "status_message", 36, 0, 0, wire.SM, ready.session_id, 1001, term_id, 0, 4096, 9
    )
    driver.send(local, status)
    driver.turn(3)
    driver.publish(log, 1024)
    driver.turn(3)
    (sent,) = [item for _, item in driver.outside if len(item) == 1024]
    assert time.time_ns() - 60 * SECOND < int.from_bytes(sent[24:32], "little") <= time.time_ns()
    with_other = f"{OUTSIDE}|term-length=64k|channel-snd-ts-offset=8"
    _, responses = driver.add(AddPublication, with_other, 5)
    assert responses[-1].error_code == ErrorCode.GENERIC_ERROR


def test_a_subscription_used_for_responses_receives_only_the_response_session(driver):
    """The interest of the receiver follows the response session, and ends with the subscription."""
    response, _ = subscribe(driver, HERE)
    _, ready = publish(driver, f"{OUTSIDE}|term-length=64k|response-correlation-id={response}")
    resources = driver.driver.conductor.components
    (endpoint,) = resources.receive_endpoints
    assert dict(endpoint.interests) == {(1001, None): 1}
    local = resources.send_endpoints.by_slot(0).sockets.frames.local
    driver.send(local, wire.pack("response_setup", 20, 0, 0, 11, ready.session_id, 1001, 4242))
    driver.turn(3)
    assert dict(endpoint.interests) == {(1001, 4242): 1}
    driver.request(RemoveSubscription(driver.client, driver.next_id(), response))
    driver.turn(3)
    assert not driver.driver.conductor._resources.receiver.interests.used.any()
