"""The driver survives every failing command or SETUP, reports it, and leaks nothing."""

import time

import pytest

from tests.unit.driver.media_driver.invoked_driver import (
    CHANNEL,
    SECOND,
    STREAM,
    TO_PEER,
    lab_with_long_timeouts,
)
from tests.unit.driver.media_driver.receiving_rig import setup
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.destination import (
    AddDestination,
    AddReceiveDestination,
    RemoveDestination,
)
from windtunnel.driver.command.image import AvailableImage
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    ExclusivePublicationReady,
)
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess
from windtunnel.driver.command.subscription import AddSubscription, SubscriptionReady
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor.images import image_record

HERE = SocketAddress("10.0.0.1", 20_121)
ALL_ONES = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]"
NO_SCOPE = "[fe80::1%4294967296]"
"""A link-local address on a link whose number has 33 bits."""
MANUAL = "aeron:udp?control-mode=manual|term-length=64k"


@pytest.fixture
def driver(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        yield opened


def responses_to(driver, command):
    """Return the responses to a command; a name lookup may take some time."""
    responses = driver.request(command)
    until = time.monotonic() + 10
    while not responses and time.monotonic() < until:
        time.sleep(0.001)
        driver.turn()
        responses = driver.take()
    return responses


def refusal(driver, command):
    """Return the error code of a rejected command."""
    (only,) = responses_to(driver, command)
    assert isinstance(only, ErrorResponse)
    assert only.correlation_id == command.correlation_id
    assert only.message
    return only.error_code


def held(driver):
    """Return the resources that a rejected command must not leave behind."""
    driver.turn(4)
    endpoints = driver.driver.conductor.components.receive_endpoints
    return (
        driver.stream_counters(),
        driver.logs(),
        int(driver.links.mailboxes.is_open.sum()),
        len(endpoints._slots._free),
        driver.value(system_counters.BYTES_CURRENTLY_MAPPED),
    )


def check_driver_responds(driver):
    """Assert that the driver executes commands and has logged no unexpected error."""
    _, responses = driver.add(AddExclusivePublication, TO_PEER, STREAM + 50)
    assert isinstance(responses[0], ExclusivePublicationReady)
    assert not [each for each in read_errors(driver.cnc.error_log) if "Traceback" in each.text]


@pytest.mark.parametrize(
    ("kind", "channel", "code"),
    [
        (AddPublication, "aeron:ipc?session-id=0x" + 3600 * "f", ErrorCode.GENERIC_ERROR),
        (AddSubscription, "aeron:ipc?session-id=0x" + 3600 * "f", ErrorCode.GENERIC_ERROR),
        (AddSubscription, f"{CHANNEL}|gtag=0x" + 3600 * "f", ErrorCode.GENERIC_ERROR),
        (AddPublication, f"aeron:udp?endpoint={NO_SCOPE}:40123", ErrorCode.UNKNOWN_HOST),
        (
            AddSubscription,
            f"aeron:udp?endpoint=[::1]:40123|control={NO_SCOPE}:40124",
            ErrorCode.UNKNOWN_HOST,
        ),
        (AddSubscription, "aeron-spy:aeron:ipc", ErrorCode.INVALID_CHANNEL),
        (AddPublication, "aeron-spy:aeron:ipc", ErrorCode.INVALID_CHANNEL),
        (AddExclusivePublication, "aeron-spy:aeron:ipc", ErrorCode.INVALID_CHANNEL),
        (AddPublication, f"aeron-spy:{TO_PEER}", ErrorCode.INVALID_CHANNEL),
        (AddExclusivePublication, f"aeron-spy:{TO_PEER}|mtu=1", ErrorCode.INVALID_CHANNEL),
    ],
)
def test_an_unusual_channel_is_rejected_and_leaves_nothing_behind(driver, kind, channel, code):
    before = held(driver)
    command = kind(driver.client, driver.next_id(), STREAM, channel)
    assert refusal(driver, command) == code
    assert held(driver) == before
    check_driver_responds(driver)


@pytest.mark.parametrize("kind", [AddPublication, AddSubscription])
def test_the_last_multicast_address_is_accepted(driver, kind):
    driver.add(kind, f"aeron:udp?endpoint={ALL_ONES}:40123")
    check_driver_responds(driver)


def test_a_destination_on_an_unknown_link_is_added_unresolved(driver):
    """As in the C driver, an unknown name may be added to a manual channel."""
    registration_id, _ = driver.add(AddPublication, MANUAL)
    channel = f"aeron:udp?endpoint={NO_SCOPE}:4000"
    for kind in (AddDestination, RemoveDestination):
        command = kind(driver.client, driver.next_id(), registration_id, channel)
        assert responses_to(driver, command) == [OperationSuccess(command.correlation_id)]
    check_driver_responds(driver)


def test_a_spy_on_ipc_is_no_destination(driver):
    registration_id, _ = driver.add(AddSubscription, MANUAL)
    before = held(driver)
    command = AddReceiveDestination(
        driver.client, driver.next_id(), registration_id, "aeron-spy:aeron:ipc"
    )
    assert refusal(driver, command) == ErrorCode.INVALID_CHANNEL
    assert held(driver) == before
    (subscription,) = driver.driver.conductor.components.links.subscriptions.values()
    assert subscription.local_destinations == []
    check_driver_responds(driver)


def test_an_unexpected_error_of_a_command_is_reported_and_recorded(driver):
    def fail(command):
        raise ZeroDivisionError("unexpected error")

    handlers = driver.driver.conductor._handlers
    right, handlers[AddSubscription] = handlers[AddSubscription], fail
    command = AddSubscription(driver.client, driver.next_id(), STREAM, CHANNEL)
    (response,) = driver.request(command)
    assert (response.correlation_id, response.error_code) == (
        command.correlation_id,
        ErrorCode.GENERIC_ERROR,
    )
    assert "unexpected error" in response.message
    assert driver.value(system_counters.ERRORS) == 1
    (entry,) = read_errors(driver.cnc.error_log)
    assert "ZeroDivisionError: unexpected error" in entry.text
    assert "in fail" in entry.text, "the entry does not name the function that failed"
    handlers[AddSubscription] = right
    assert isinstance(driver.add(AddSubscription, CHANNEL)[1][0], SubscriptionReady)


@pytest.mark.parametrize("step", ["fill_feedback", "fill_connection"])
def test_an_unexpected_error_of_a_setup_fails_only_its_image(driver, monkeypatch, step):
    driver.add(AddSubscription, CHANNEL)
    before = held(driver)
    factory = driver.driver.conductor.components.images._factory
    free = len(factory.slots._free)

    def fail(*arguments, **more):
        raise OverflowError("unexpected error")

    with monkeypatch.context() as patch:
        patch.setattr(image_record, step, fail)
        driver.send(HERE, setup())
        assert held(driver) == before
    assert len(factory.slots._free) == free
    (entry,) = read_errors(driver.cnc.error_log)
    assert "OverflowError: unexpected error" in entry.text
    driver.run_for(2 * SECOND)
    driver.send(HERE, setup())
    driver.turn(4)
    assert [type(item) for item in driver.take()] == [AvailableImage]
