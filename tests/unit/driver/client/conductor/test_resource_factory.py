"""Adding resources without waiting and for asyncio, and releasing abandoned ones."""

import asyncio

import pytest

from tests.unit.driver.client.invoked_client import world
from tests.unit.driver.media_driver.invoked_driver import CHANNEL, MS, SECOND, STREAM
from windtunnel.driver.client.asynchronous import AsyncPublication, AsyncSubscription
from windtunnel.driver.client.errors import (
    ClientError,
    ClosedError,
    CommandTimeoutError,
    RegistrationError,
)
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.publication import ExclusivePublicationReady

BAD_CHANNEL = "aeron:udp?endpoint=nowhere"


@pytest.fixture
def both_ends(tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch) as made:
        yield made


def test_a_resource_is_available_after_the_drivers_duty_cycle(both_ends):
    client = both_ends.connect()
    pairs = [
        (client.async_add_publication(CHANNEL, STREAM), client.get_publication),
        (client.async_add_exclusive_publication(CHANNEL, STREAM), client.get_exclusive_publication),
        (client.async_add_subscription(CHANNEL, STREAM), client.get_subscription),
        (client.async_add_counter(1001, b"key", "label"), client.get_counter),
        (client.async_add_static_counter(1001, 77, b"key", "label"), client.get_counter),
    ]
    assert client.has_active_commands
    for registration_id, get in pairs:
        assert client.is_command_active(registration_id)
        assert get(registration_id) is None
    both_ends.both()
    for registration_id, get in pairs:
        assert not client.is_command_active(registration_id)
        found = get(registration_id)
        assert found is not None
        assert get(registration_id) is found
    assert not client.has_active_commands


def test_an_unknown_id_is_an_error(both_ends):
    client = both_ends.connect()
    counter = client.add_counter(1001)
    with pytest.raises(ClientError, match="registration id 12345: this client has no publication"):
        client.get_publication(12345)
    with pytest.raises(ClientError, match="this client has no subscription"):
        client.get_subscription(counter.registration_id)
    assert client.get_counter(counter.registration_id) is counter


def test_an_error_response_is_raised_once(both_ends):
    client = both_ends.connect()
    registration_id = client.async_add_publication(BAD_CHANNEL, STREAM)
    both_ends.both()
    with pytest.raises(RegistrationError) as refusal:
        client.get_publication(registration_id)
    assert refusal.value.code == ErrorCode.INVALID_CHANNEL
    assert refusal.value.correlation_id == registration_id
    with pytest.raises(
        ClientError, match=f"registration id {registration_id}: this client has no publication"
    ):
        client.get_publication(registration_id)


def test_a_resource_that_is_too_late_is_released(both_ends, monkeypatch):
    client = both_ends.connect(driver_timeout_ms=2_000)
    registration_id = client.async_add_publication(CHANNEL, STREAM)
    for _ in range(21):
        # The driver writes its heartbeat, and sends no response.
        both_ends.driver.clock.advance(100 * MS)
        both_ends.driver.cnc.set_ready(both_ends.driver.clock.now_ms())
        client.invoke()
    with pytest.raises(CommandTimeoutError) as timeout:
        client.get_publication(registration_id)
    assert timeout.value.code == 1000
    both_ends.both(50)
    responses = [
        item
        for item in both_ends.driver.take()
        if getattr(item, "correlation_id", 0) == registration_id
    ]
    assert responses
    both_ends.driver.run_for(9 * SECOND, 100 * MS)
    assert both_ends.driver.logs() == []


def test_an_abandoned_resource_is_closed_in_client_and_driver(both_ends):
    client = both_ends.connect()
    early = client.async_add_exclusive_publication(CHANNEL, STREAM)
    client.abandon(early)
    made = client.add_exclusive_publication(CHANNEL, STREAM + 1)
    client.abandon(made.registration_id)
    assert made.is_closed
    both_ends.both(20)
    responses = both_ends.driver.take()
    assert [item for item in responses if isinstance(item, ExclusivePublicationReady)]
    for _ in range(200):
        both_ends.both(1, 50 * MS)
    assert both_ends.driver.logs() == []


def test_next_session_ids_differ(both_ends):
    client = both_ends.connect()
    assert client.next_session_id(STREAM) != client.next_session_id(STREAM)


def test_a_session_id_may_be_requested_without_waiting(both_ends):
    client = both_ends.connect()
    requested = client.async_next_session_id(STREAM)
    assert client.get_next_session_id(requested) is None
    both_ends.driver.turn(3)
    session_id = client.get_next_session_id(requested)
    assert isinstance(session_id, int)
    assert session_id != client.next_session_id(STREAM)


def test_the_error_of_a_requested_session_id_is_raised_once(both_ends):
    client = both_ends.connect(driver_timeout_ms=100)
    requested = client.async_next_session_id(STREAM)
    both_ends.driver.clock.advance(101 * MS)
    with pytest.raises(CommandTimeoutError):
        client.get_next_session_id(requested)
    with pytest.raises(ClientError, match="no command has this id"):
        client.get_next_session_id(requested)


def test_an_image_may_be_rejected_without_waiting(both_ends):
    client = both_ends.connect()
    subscription = client.add_subscription("aeron:ipc?term-length=64k", STREAM)
    publication = client.add_exclusive_publication("aeron:ipc?term-length=64k", STREAM)
    both_ends.until(lambda: subscription.images)
    before_ns = both_ends.driver.clock.now_ns()
    subscription.images[0].async_reject("no more")
    assert both_ends.driver.clock.now_ns() == before_ns
    both_ends.until(lambda: not subscription.images)
    assert not both_ends.errors
    assert not publication.is_closed
    with pytest.raises(ValueError, match="reason has 1024 bytes"):
        subscription.async_reject_image(1, 0, "a" * 1_024)
    with pytest.raises(TypeError, match="reason: expected a str, found NoneType"):
        subscription.reject_image(1, 0, None)


def test_a_static_counter_outlives_its_client(both_ends):
    first, second = both_ends.connect(), both_ends.connect()
    made = first.add_static_counter(1001, 77, b"key", "label")
    made.set(5)
    made.close()
    first.close()
    both_ends.driver.run_for(2 * SECOND)
    found = second.add_static_counter(1001, 77, b"", "other")
    assert (found.counter_id, found.get(), found.label) == (made.counter_id, 5, "label")
    assert found.registration_id == 77


@pytest.mark.parametrize(("key", "label"), [(bytes(113), ""), (b"", "l" * 381)])
def test_a_long_key_or_label_is_refused(both_ends, key, label):
    client = both_ends.connect()
    with pytest.raises(ValueError, match="expected at most"):
        client.add_counter(1001, key, label)
    with pytest.raises(ValueError, match="expected at most"):
        client.add_static_counter(1001, 7, key, label)
    assert client.add_counter(1001, bytes(112), "l" * 380).label == "l" * 380


def test_the_counters_of_the_driver_are_readable(both_ends):
    client = both_ends.connect()
    counter = client.add_counter(1001, b"key", "mine")
    counter.set(42)
    (seen,) = [item for item in client.counters if item.type_id == 1001]
    assert (seen.value, seen.label, seen.owner_id) == (42, "mine", client.client_id)


async def test_adding_for_asyncio(both_ends):
    client = both_ends.connect()

    async def run_driver():
        while True:
            both_ends.both(1)
            await asyncio.sleep(0)

    driving = asyncio.create_task(run_driver())
    publication = await client.publication(CHANNEL, STREAM)
    exclusive = await client.exclusive_publication(CHANNEL, STREAM)
    subscription = await client.subscription(CHANNEL, STREAM)
    counter = await client.counter(1001, b"", "label")
    with pytest.raises(RegistrationError):
        await client.publication(BAD_CHANNEL, STREAM)
    driving.cancel()
    assert isinstance(publication, AsyncPublication)
    assert exclusive.publication.is_exclusive
    assert isinstance(subscription, AsyncSubscription)
    assert counter.label == "label"


async def test_a_cancelled_await_releases_the_resource(both_ends):
    client = both_ends.connect()
    waiting = asyncio.create_task(client.exclusive_publication(CHANNEL, STREAM))
    await asyncio.sleep(0.001)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    for _ in range(200):
        both_ends.both(1, 50 * MS)
    assert both_ends.driver.logs() == []
    assert not client.has_active_commands


def test_the_driver_decides_whether_a_closed_image_can_be_rejected(both_ends):
    # As in Aeron's clients: an image that lingers in the driver can be rejected, later ones cannot.
    client = both_ends.connect()
    subscription = client.add_subscription("aeron:ipc?term-length=64k", STREAM)
    publication = client.add_exclusive_publication("aeron:ipc?term-length=64k|linger=0s", STREAM)
    both_ends.until(lambda: subscription.images)
    image = subscription.images[0]
    publication.close()
    both_ends.until(lambda: image.is_closed)
    both_ends.both(100, 200 * MS)
    with pytest.raises(RegistrationError, match="Unable to resolve image"):
        image.reject("too late")
    image.async_reject("too late")
    both_ends.until(lambda: both_ends.errors)
    assert "Unable to resolve image" in str(both_ends.errors[0])
    subscription.close()
    with pytest.raises(ClosedError):
        image.reject("later still")


@pytest.mark.parametrize(
    ("add", "arguments", "text"),
    [
        ("add_publication", (None, 1), "channel: expected a str, found NoneType"),
        ("add_exclusive_publication", (b"aeron:ipc", 1), "channel: expected a str, found bytes"),
        ("add_subscription", (5, 1), "channel: expected a str, found int"),
        ("add_subscription", (CHANNEL, "1"), "stream_id: expected an integer, found str"),
        ("add_publication", (CHANNEL, 1.0), "stream_id: expected an integer, found float"),
        ("add_publication", (CHANNEL, 1 << 31), "stream_id: expected an integer of 32 bits"),
        ("add_counter", (1 << 31,), "type_id: expected an integer of 32 bits, found 2147483648"),
        ("add_counter", (1001, b"", None), "label: expected a str, found NoneType"),
        ("add_static_counter", ("x", 7), "type_id: expected an integer, found str"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(both_ends, add, arguments, text):
    client = both_ends.connect()
    with pytest.raises((TypeError, ValueError), match=text):
        getattr(client, add)(*arguments)
    assert not client.has_active_commands
