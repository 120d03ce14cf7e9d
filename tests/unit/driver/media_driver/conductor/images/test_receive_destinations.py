"""Multi-destination subscriptions in a whole driver: destinations added, used and removed."""

import pytest

from tests.naive import wire
from tests.unit.driver.media_driver.invoked_driver import (
    CHANNEL,
    PEER,
    SECOND,
    STREAM,
    lab_with_long_timeouts,
)
from tests.unit.driver.media_driver.receiving_rig import data, setup, status_of
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.destination import AddReceiveDestination, RemoveReceiveDestination
from windtunnel.driver.command.image import AvailableImage
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)
from windtunnel.driver.media_driver.agent import system_counters

MANUAL = "aeron:udp?control-mode=manual"
FIRST, OTHER = (SocketAddress("10.0.0.1", port) for port in (24_001, 24_002))
LOCAL_ADDRESS = 14


def to(address, more=""):
    return f"aeron:udp?endpoint={address.text}{more}"


@pytest.fixture
def driver(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        yield opened


@pytest.fixture
def subscription(driver):
    registration_id = driver.next_id()
    responses = driver.request(AddSubscription(driver.client, registration_id, STREAM, MANUAL))
    assert isinstance(responses[-1], SubscriptionReady)
    return registration_id


def add(driver, subscription, channel):
    return driver.request(AddReceiveDestination(driver.client, 901, subscription, channel))


def remove(driver, subscription, channel):
    return driver.request(RemoveReceiveDestination(driver.client, 902, subscription, channel))


def addresses(driver):
    return [item.label for item in driver.active_counters() if item.type_id == LOCAL_ADDRESS]


def statuses(driver):
    found = [(source, status_of(item)) for source, item in driver.outside if item[6] == wire.SM]
    driver.outside.clear()
    return found


def test_the_channel_alone_has_no_socket_and_no_address(driver, subscription):
    status = driver.named("rcv-channel")
    assert status.label == f"rcv-channel: {MANUAL} "
    assert driver.value(status.counter_id) == 1
    assert addresses(driver) == []
    assert not driver.links.mailboxes.is_open.any()


def test_each_destination_has_a_socket_and_an_address_counter(driver, subscription):
    status = driver.named("rcv-channel").counter_id
    assert add(driver, subscription, to(FIRST)) == [OperationSuccess(901)]
    assert add(driver, subscription, to(OTHER)) == [OperationSuccess(901)]
    assert addresses(driver) == [
        f"rcv-local-sockaddr: {status} 10.0.0.1:24001",
        f"rcv-local-sockaddr: {status} 10.0.0.1:24002",
    ]
    (counter, _) = [item for item in driver.active_counters() if item.type_id == LOCAL_ADDRESS]
    assert (counter.registration_id, driver.value(counter.counter_id)) == (subscription, 1)


def test_one_stream_on_two_destinations_is_one_image_with_feedback_to_both(driver, subscription):
    add(driver, subscription, to(FIRST))
    add(driver, subscription, to(OTHER))
    driver.send(FIRST, setup())
    driver.turn(4)
    (image,) = driver.take()
    assert isinstance(image, AvailableImage)
    assert image.source_identity == PEER.text
    driver.send(OTHER, setup())
    driver.turn(2)
    assert driver.take() == []
    driver.send(FIRST, data(0, 992))
    driver.send(OTHER, data(1024, 992))
    driver.send(OTHER, data(0, 992))
    driver.turn(3)
    assert driver.value(driver.named("rcv-pos").counter_id) == 2048
    statuses(driver)
    driver.run_for(1 * SECOND)
    sources = {source for source, _ in statuses(driver)}
    assert sources == {FIRST, OTHER}


def test_a_removed_destination_is_closed_and_its_image_continues_on_the_other(driver, subscription):
    add(driver, subscription, to(FIRST))
    add(driver, subscription, to(OTHER))
    driver.send(FIRST, setup())
    driver.send(OTHER, setup())
    driver.turn(4)
    driver.take()
    assert remove(driver, subscription, to(FIRST)) == [OperationSuccess(902)]
    driver.turn(3)
    assert len(addresses(driver)) == 1
    assert addresses(driver)[0].endswith("10.0.0.1:24002")
    statuses(driver)
    driver.send(OTHER, data(0, 992))
    driver.run_for(1 * SECOND)
    assert {source for source, _ in statuses(driver)} == {OTHER}
    assert driver.value(driver.named("rcv-hwm").counter_id) == 1024


def test_removing_an_absent_destination_succeeds(driver, subscription):
    assert remove(driver, subscription, to(FIRST)) == [OperationSuccess(902)]


def test_a_removed_destination_can_be_added_again(driver, subscription):
    for _ in range(20):
        assert add(driver, subscription, to(FIRST)) == [OperationSuccess(901)]
        assert remove(driver, subscription, to(FIRST)) == [OperationSuccess(902)]
        driver.turn(3)
    assert not driver.links.mailboxes.is_open.any()
    assert addresses(driver) == []


def test_a_destination_with_port_zero_is_removed_by_the_channel_that_added_it(driver, subscription):
    add(driver, subscription, "aeron:udp?endpoint=10.0.0.1:0")
    (label,) = addresses(driver)
    assert not label.endswith(":0")
    remove(driver, subscription, "aeron:udp?endpoint=10.0.0.1:0")
    driver.turn(3)
    assert addresses(driver) == []


def test_closing_the_last_subscription_closes_all_destinations(driver, subscription):
    add(driver, subscription, to(FIRST))
    add(driver, subscription, to(OTHER))
    driver.send(FIRST, setup())
    driver.turn(4)
    driver.request(RemoveSubscription(driver.client, 903, subscription))
    driver.run_for(5 * SECOND)
    assert not driver.links.mailboxes.is_open.any()
    assert [item.type_id for item in driver.active_counters()] == [11]
    assert driver.logs() == []


def test_a_setup_is_retried_if_its_destination_was_removed_before_the_image_was_created(
    driver, subscription
):
    add(driver, subscription, to(FIRST))
    add(driver, subscription, to(OTHER))
    driver.send(FIRST, setup())
    driver.turn()
    assert remove(driver, subscription, to(FIRST)) == [OperationSuccess(902)]
    assert driver.logs() == []
    driver.send(OTHER, setup())
    driver.turn(4)
    assert driver.logs() == [f"images/{driver.named('rcv-pos').registration_id}.logbuffer"]


def test_a_destination_with_a_control_address_sends_feedback_there(driver, subscription):
    add(driver, subscription, to(FIRST, "|control=10.0.0.9:5555"))
    ((source, sent),) = statuses(driver)
    assert source == FIRST
    assert (sent["session_id"], sent["stream_id"], sent["flags"]) == (0, 0, 0x80)
    driver.run_for(3 * SECOND)
    assert len(statuses(driver)) == 2


def assert_refused(responses, code, word):
    (error,) = responses
    assert isinstance(error, ErrorResponse)
    assert (error.error_code, word in error.message) == (code, True)


def test_an_unknown_subscription_is_rejected(driver, subscription):
    for command in (add, remove):
        assert_refused(command(driver, 12_345, to(FIRST)), ErrorCode.UNKNOWN_SUBSCRIPTION, "12345")


def test_a_subscription_without_manual_control_mode_is_rejected(driver):
    registration_id = driver.next_id()
    driver.request(AddSubscription(driver.client, registration_id, STREAM, CHANNEL))
    for command in (add, remove):
        responses = command(driver, registration_id, to(FIRST))
        assert_refused(responses, ErrorCode.INVALID_CHANNEL, "manual control")


@pytest.mark.parametrize(
    "more", ["|mtu=1408", "|rcv-wnd=64k", "|so-rcvbuf=64k", "|control-mode=response"]
)
def test_a_destination_with_parameters_of_a_whole_channel_is_rejected(driver, subscription, more):
    responses = add(driver, subscription, to(FIRST, more))
    assert_refused(responses, ErrorCode.INVALID_CHANNEL, more[1:].split("=")[0])
    assert addresses(driver) == []


@pytest.mark.parametrize("buffer", ["so-rcvbuf=256k", "so-sndbuf=256k"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_socket_buffers_are_compared_only_if_the_channel_has_one_socket(driver, buffer, count):
    def subscribe(channel, stream):
        registration_id = driver.next_id()
        return driver.request(AddSubscription(driver.client, registration_id, stream, channel))[-1]

    owner = subscribe(f"{MANUAL}|tags=5", STREAM).correlation_id
    for address in (FIRST, OTHER)[:count]:
        assert add(driver, owner, to(address)) == [OperationSuccess(901)]
    assert isinstance(subscribe(f"{MANUAL}|tags=5|{buffer}", STREAM + 1), SubscriptionReady)
    response = subscribe(f"aeron:udp?tags=5|{buffer}", STREAM + 2)
    if count == 1:
        assert_refused([response], ErrorCode.GENERIC_ERROR, buffer.split("=")[0])
    else:
        assert isinstance(response, SubscriptionReady)


@pytest.mark.parametrize("value", ["true", "yes"])
def test_a_destination_with_encryption_is_rejected(driver, subscription, value):
    assert_refused(
        add(driver, subscription, to(FIRST, f"|ats={value}")), ErrorCode.GENERIC_ERROR, "ats"
    )
    assert addresses(driver) == []
    assert add(driver, subscription, to(FIRST, "|ats=false")) == [OperationSuccess(901)]


def test_an_address_in_use_is_rejected_and_leaves_nothing_behind(driver, subscription):
    add(driver, subscription, to(FIRST))
    responses = add(driver, subscription, to(FIRST))
    assert_refused(responses, ErrorCode.GENERIC_ERROR, "in use")
    assert len(addresses(driver)) == 1


def test_a_subscription_has_at_most_sixteen_destinations(driver, subscription):
    for port in range(24_100, 24_116):
        channel = to(SocketAddress("10.0.0.1", port))
        assert add(driver, subscription, channel) == [OperationSuccess(901)]
    responses = add(driver, subscription, to(FIRST))
    assert_refused(responses, ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE, "16")
    assert driver.value(system_counters.ERRORS) == 1


def test_a_local_publication_may_be_a_destination(driver, subscription):
    assert add(driver, subscription, "aeron:ipc") == [OperationSuccess(901)]
    assert remove(driver, subscription, "aeron:ipc") == [OperationSuccess(902)]
    assert_refused(remove(driver, subscription, "aeron:ipc"), ErrorCode.UNKNOWN_SUBSCRIPTION, "ipc")
    assert_refused(add(driver, 777, "aeron:ipc"), ErrorCode.UNKNOWN_SUBSCRIPTION, "777")
