"""A client and an invoked driver: registration, streams, and every way to lose the other side."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.driver.media_driver.invoked_driver import CHANNEL, MS, SECOND, STREAM, lab
from windtunnel.driver.base import system
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.context import ClientContext
from windtunnel.driver.client.errors import (
    ClosedError,
    CommandTimeoutError,
    DriverTimeoutError,
    RegistrationError,
)
from windtunnel.driver.cnc import broadcast, cnc_file
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.image import AvailableImage
from windtunnel.driver.files import bus_error_guard
from windtunnel.driver.logbuffer import publication_result as result

BAD_CHANNEL = "aeron:udp?endpoint=nowhere"


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A driver that runs a duty cycle whenever a client waits, and a factory of clients."""
    with lab(tmp_path / "aeron") as opened:
        monkeypatch.setattr(system, "sleep_ns", lambda ns: opened.turn(1, 1 * MS))
        opened.turn()
        clients = []

        def connect(**settings):
            context = ClientContext(dir=tmp_path / "aeron", **settings)
            clients.append(Aeron(context=context, clock=opened.clock, invoked=True))
            return clients[-1]

        def both(count=20, step_ns=1 * MS):
            for _ in range(count):
                opened.turn(1, step_ns)
                for client in clients:
                    client.invoke()

        yield SimpleNamespace(driver=opened, connect=connect, both=both)
        for client in clients:
            client.close()


def silent(world, client, duration_ns, step_ns=SECOND):
    """Let time pass while only the client runs duty cycles."""
    for _ in range(duration_ns // step_ns):
        world.driver.clock.advance(step_ns)
        client.invoke()


def open_stream(world, client, *, is_exclusive=True, **handlers):
    subscription = client.add_subscription(CHANNEL, STREAM, **handlers)
    add = client.add_exclusive_publication if is_exclusive else client.add_publication
    publication = add(CHANNEL, STREAM)
    world.both(600)
    assert publication.is_connected
    return publication, subscription


def read(subscription):
    seen = []
    while subscription.poll(lambda payload, header: seen.append(bytes(payload))):
        pass
    return seen


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_messages_are_delivered_to_the_end_of_the_stream(world, is_exclusive):
    seen, gone = [], []
    publication, subscription = open_stream(
        world,
        world.connect(),
        is_exclusive=is_exclusive,
        on_available_image=seen.append,
        on_unavailable_image=gone.append,
    )
    assert publication.is_exclusive is is_exclusive
    assert seen == list(subscription) == list(subscription.images)
    assert subscription.image_by_session_id(publication.session_id) is seen[0]
    assert subscription.image_by_session_id(publication.session_id + 1) is None
    end = [publication.offer(message) for message in (b"one", b"two")][-1]
    world.both()
    assert read(subscription) == [b"one", b"two"]
    assert seen[0].position == end
    publication.close()
    world.both(500, 10 * MS)
    assert (seen[0].is_end_of_stream, seen[0].position) == (True, end)
    assert gone == seen
    assert not subscription.is_connected


def test_an_image_that_becomes_unavailable_early_is_not_at_its_end(world):
    publication, subscription = open_stream(world, world.connect())
    publication.offer(b"never read")
    world.both()
    image = subscription.images[0]
    subscription.close()
    assert image.is_closed
    assert not image.is_end_of_stream


def test_a_shared_publication_is_one_stream_with_one_log(world):
    first, second = world.connect(), world.connect()
    one = first.add_publication(CHANNEL, STREAM)
    other = second.add_publication(CHANNEL, STREAM)
    again = first.add_publication(CHANNEL, STREAM)
    assert one.session_id == other.session_id == again.session_id
    assert one.original_registration_id == other.original_registration_id == one.registration_id
    one.close()
    assert again.offer(b"1") == result.NOT_CONNECTED


def test_a_refused_command_raises_the_error_of_the_driver(world):
    client = world.connect()
    for add in (client.add_publication, client.add_exclusive_publication, client.add_subscription):
        with pytest.raises(RegistrationError, match="endpoint=nowhere") as refusal:
            add(BAD_CHANNEL, STREAM)
        assert refusal.value.code == ErrorCode.INVALID_CHANNEL
    assert not client.is_closed
    assert client.add_publication(CHANNEL, STREAM).session_id


def test_a_silent_driver_closes_the_client(world):
    client = world.connect()
    publication, subscription = open_stream(world, client)
    image = subscription.images[0]
    silent(world, client, 9 * SECOND)
    assert not client.is_closed
    silent(world, client, 2 * SECOND)
    assert client.is_closed
    assert "limit 10000 ms" in client.failure
    assert publication.offer(b"1") == publication.try_claim(1) == result.CLOSED
    assert publication.close_reason == client.failure
    assert subscription.is_closed
    assert image.is_closed
    assert subscription.poll(lambda payload, header: None) == 0
    with pytest.raises(DriverTimeoutError, match="heartbeat"):
        client.add_publication(CHANNEL, STREAM)
    publication.close()
    subscription.close()


def test_a_driver_that_was_shut_down_closes_the_client_at_once(world):
    client = world.connect()
    world.driver.cnc.set_closed()
    silent(world, client, SECOND)
    assert client.failure == "the driver has been shut down"


def test_a_command_without_a_response_times_out(world, monkeypatch):
    client = world.connect(driver_timeout_ms=100)
    monkeypatch.setattr(system, "sleep_ns", lambda ns: world.driver.clock.advance(MS))
    with pytest.raises(CommandTimeoutError, match="within 100 ms"):
        client.add_publication(CHANNEL, STREAM)


def test_a_client_that_the_driver_timed_out_is_closed(world):
    client = world.connect()
    client.add_publication(CHANNEL, STREAM)
    world.driver.run_for(12 * SECOND, 500 * MS)
    client.invoke()
    assert client.failure == "the driver timed out this client"


def test_a_client_that_exceeds_its_service_interval_closes_itself(world):
    client = world.connect()
    world.driver.clock.advance(10 * SECOND)
    client.invoke()
    assert not client.is_closed
    world.driver.turn()
    world.driver.clock.advance(10 * SECOND + MS)
    client.invoke()
    assert client.failure == "service interval exceeded: 10001 ms, limit 10000 ms"


def test_a_client_that_is_lapped_is_closed(world):
    client = world.connect()
    response = np.zeros(1024, np.uint8)
    for _ in range(world.driver.cnc.to_clients.size // response.size + 1):
        broadcast.transmit(world.driver.cnc.to_clients, 0x7777, response, 0, response.size)
    client.invoke()
    assert client.failure == "unable to keep up with the driver's broadcast"


def test_an_unknown_response_is_ignored(world):
    client = world.connect()
    broadcast.transmit(world.driver.cnc.to_clients, 0x7777, np.zeros(64, np.uint8), 0, 64)
    assert client.invoke() > 0
    assert client.add_publication(CHANNEL, STREAM).session_id


def test_a_clients_heartbeat_has_its_name_and_time(world):
    client = world.connect(client_name="wind")
    client.add_publication(CHANNEL, STREAM)
    world.both(20, 100 * MS)
    (heartbeat,) = [item for item in world.driver.active_counters() if item.type_id == 11]
    assert "name=wind" in heartbeat.label
    age_ms = world.driver.clock.now_ms() - world.driver.value(heartbeat.counter_id)
    assert 0 <= age_ms <= 700


def test_close_closes_everything_and_can_be_repeated(world):
    client = world.connect()
    publication, subscription = open_stream(world, client)
    client.close()
    client.close()
    assert (client.is_closed, client.failure) == (True, "")
    assert publication.offer(b"1") == result.CLOSED
    assert subscription.is_closed
    with pytest.raises(ClosedError):
        client.add_subscription(CHANNEL, STREAM)
    world.driver.run_for(20 * SECOND, 500 * MS)
    assert world.driver.logs() == []
    assert world.driver.active_counters() == []


def test_a_closed_stream_stays_mapped_for_a_while(world):
    client = world.connect()
    publication, _ = open_stream(world, client)
    mapped = publication._mapped
    publication.close()
    world.both(20, 100 * MS)
    assert mapped.log.size > 0
    world.both(20, 100 * MS)
    assert mapped.log.size == 0


def test_closing_a_subscription_frees_its_counter_in_the_driver(world):
    client = world.connect()
    _, subscription = open_stream(world, client)
    assert world.driver.named("sub-pos")
    subscription.close()
    subscription.close()
    world.both()
    assert not [item for item in world.driver.active_counters() if item.label.startswith("sub-pos")]
    assert subscription.poll(lambda payload, header: None) == 0
    assert subscription.images == ()


def test_an_image_whose_log_was_removed_is_ignored(world):
    client = world.connect()
    subscription = client.add_subscription(CHANNEL, STREAM)
    announced = AvailableImage(
        correlation_id=77, session_id=1, stream_id=STREAM,
        subscription_registration_id=subscription.registration_id, subscriber_position_id=1,
        log_file_name="/nowhere/77.logbuffer", source_identity="10.0.0.2:1",
    )  # fmt: skip
    content = np.frombuffer(announced.encode(), np.uint8).copy()
    broadcast.transmit(
        world.driver.cnc.to_clients, int(announced.TYPE_ID), content, 0, content.size
    )
    assert client.invoke() > 0
    assert subscription.images == ()
    assert not client.is_closed


def test_a_client_whose_conductor_thread_failed_is_closed(tmp_path, monkeypatch):
    caught = []
    monkeypatch.setattr(threading, "excepthook", caught.append)
    with lab(tmp_path / "aeron") as opened:
        opened.turn()
        context = ClientContext(dir=tmp_path / "aeron", idle_sleep_ns=1_000)
        with Aeron(context=context, clock=opened.clock) as client:
            monkeypatch.setattr(client._conductor.liveness, "on_duty_cycle", lambda now_ns: 1 // 0)
            client._thread.join(30)
            assert client.is_closed
            assert "ZeroDivisionError" in client.failure
    assert [args.exc_type for args in caught] == [ZeroDivisionError]


def test_the_conductor_thread_keeps_a_client_alive(tmp_path):
    with lab(tmp_path / "aeron") as opened:
        opened.turn()
        context = ClientContext(dir=tmp_path / "aeron", idle_sleep_ns=1_000)
        with Aeron(context=context, clock=opened.clock) as client:
            opened.cnc.set_closed()
            opened.clock.advance(SECOND)
            deadline_s = time.monotonic() + 30
            while not client.is_closed and time.monotonic() < deadline_s:
                time.sleep(0.001)
            assert client.failure == "the driver has been shut down"


def test_a_client_is_protected_from_lost_pages_before_it_maps_a_file(tmp_path, monkeypatch):
    """Its driver is in another process, so nothing else in this process protects it."""
    calls = []
    monkeypatch.setattr(bus_error_guard, "install", lambda: calls.append("install"))
    monkeypatch.setattr(cnc_file, "connect", lambda *_: calls.append("connect"))
    with pytest.raises(AttributeError):
        Aeron(context=ClientContext(dir=tmp_path))
    assert calls == ["install", "connect"]


def test_a_client_in_the_thread_of_its_driver_invokes_it_instead_of_sleeping(tmp_path, monkeypatch):
    with lab(tmp_path / "aeron") as opened:
        opened.turn()
        monkeypatch.setattr(system, "sleep_ns", lambda ns: pytest.fail(f"slept {ns} ns"))
        context = ClientContext(dir=tmp_path / "aeron", driver_agent_invoker=opened.turn)
        with Aeron(context=context, clock=opened.clock, invoked=True) as client:
            subscription = client.add_subscription(CHANNEL, STREAM)
            assert subscription.registration_id > 0
            with pytest.raises(RegistrationError):
                client.add_publication(BAD_CHANNEL, STREAM)
