"""Closing a client: the driver is notified last, when the client uses nothing any more."""

from types import SimpleNamespace

import pytest

from tests.unit.driver.client.invoked_client import world
from tests.unit.driver.media_driver.invoked_driver import CHANNEL, MS, SECOND, STREAM
from windtunnel.driver.base import system
from windtunnel.driver.client.errors import BroadcastLappedError, DriverBufferFullError
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.logbuffer import publication_result as result

HEARTBEAT_TYPE_ID = 11


@pytest.fixture
def both_ends(tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch) as made:
        yield made


def open_all(both_ends, **settings):
    """A client with every kind of resource; subscriptions are added before publications."""
    client = both_ends.connect(**settings)
    subscription = client.add_subscription(CHANNEL, STREAM)
    publication = client.add_exclusive_publication(CHANNEL, STREAM)
    counter = client.add_counter(1001, b"key", "mine")
    image = both_ends.until(lambda: subscription.images)[0]
    both_ends.until(lambda: publication.is_connected)
    return SimpleNamespace(
        client=client, image=image, publication=publication, subscription=subscription,
        counter=counter,
    )  # fmt: skip


def is_known(both_ends):
    """Whether the driver, after some duty cycles, still has the client and its resources."""
    both_ends.driver.turn(4, 400 * MS)
    living = both_ends.driver.active_counters()
    return bool(
        [item for item in living if item.type_id == HEARTBEAT_TYPE_ID]
        and [item for item in living if item.label.startswith("sub-pos")]
        and [item for item in living if item.label == "mine"]
    )


def fill_the_ring(driver):
    """Write commands of an unknown client until the ring buffer is full."""
    while ring_buffer.write(driver.cnc.to_driver, 0x77, driver.cnc.to_driver[:8].copy(), 0, 8) == 0:
        pass


def test_everything_is_closed_before_the_first_handler_and_the_driver_is_notified_last(
    both_ends, monkeypatch
):
    seen = []

    def look(what):
        seen.append(
            (
                what, opened.publication.offer(b"1"), opened.counter.is_closed,
                opened.image.is_closed, opened.subscription.is_closed, is_known(both_ends),
            )
        )  # fmt: skip

    opened = open_all(
        both_ends,
        on_unavailable_image=lambda image: look("image"),
        on_close=lambda: look("close"),
        close_linger_ns=5 * MS,
    )
    monkeypatch.setattr(system, "sleep_ns", lambda ns: look(ns))
    assert is_known(both_ends)
    opened.client.close()
    assert seen == [
        (what, result.CLOSED, True, True, True, True) for what in ("image", "close", 5 * MS)
    ]
    assert not is_known(both_ends)
    assert opened.client.counters.capacity > 0
    assert both_ends.errors == []


def test_the_driver_is_notified_of_a_close_once(both_ends, monkeypatch):
    opened = open_all(both_ends)
    sent = []
    monkeypatch.setattr(opened.client._conductor.commands.proxy, "send", sent.append)
    opened.client.close()
    opened.client.close()
    assert [command.client_id for command in sent] == [opened.client.client_id]


@pytest.mark.parametrize("closes_again", [False, True])
def test_a_full_ring_buffer_is_reported_and_the_client_closes(both_ends, monkeypatch, closes_again):
    images, closed, errors = [], [], []

    def on_error(error):
        errors.append(error)
        if closes_again:
            opened.client.close()

    opened = open_all(
        both_ends,
        on_unavailable_image=images.append,
        on_close=lambda: closed.append(True),
        error_handler=on_error,
    )
    waits = []
    monkeypatch.setattr(system, "sleep_ns", waits.append)
    fill_the_ring(both_ends.driver)
    opened.client.close()
    assert [type(error) for error in errors] == [DriverBufferFullError]
    assert (images, closed) == ([opened.image], [True])
    assert len(waits) <= 10
    assert opened.publication.offer(b"1") == result.CLOSED
    assert opened.client._conductor._cnc.counters_values.size == 0


def test_a_client_that_lost_its_driver_closes_without_a_command(both_ends, monkeypatch):
    opened = open_all(both_ends)
    both_ends.driver.cnc.set_closed()
    both_ends.driver.clock.advance(SECOND)
    opened.client.invoke()
    assert opened.client.failure
    monkeypatch.setattr(opened.client._conductor.commands.proxy, "send", lambda command: 1 // 0)
    opened.client.close()
    assert opened.client._conductor._cnc.counters_values.size == 0


@pytest.mark.parametrize("where", ["handler", "linger"])
def test_an_interrupted_close_completes_and_notifies_the_driver(both_ends, monkeypatch, where):
    def interrupt(*_):
        raise KeyboardInterrupt

    opened = open_all(both_ends, close_linger_ns=5 * MS)
    if where == "handler":
        opened.client.add_close_handler(interrupt)
    with monkeypatch.context() as patch:
        if where == "linger":
            patch.setattr(system, "sleep_ns", interrupt)
        with pytest.raises(KeyboardInterrupt):
            opened.client.close()
    assert not is_known(both_ends)
    assert opened.client._conductor._cnc.counters_values.size == 0
    assert opened.publication.offer(b"1") == result.CLOSED


def test_a_client_that_terminated_itself_notifies_the_driver_when_it_is_closed(both_ends):
    # As Aeron's clients do: otherwise the driver would keep the resources for another 10 s.
    opened = open_all(both_ends)
    opened.client._conductor.terminate(BroadcastLappedError("lapped"))
    assert opened.publication.is_closed
    assert is_known(both_ends)
    opened.client.close()
    assert not is_known(both_ends)


def test_a_client_that_was_serviced_too_late_notifies_the_driver(both_ends, monkeypatch):
    opened = open_all(both_ends)
    both_ends.driver.clock.advance(11 * SECOND)
    opened.client.invoke()
    assert "service interval exceeded" in opened.client.failure
    sent = []
    monkeypatch.setattr(opened.client._conductor.commands.proxy, "send", sent.append)
    opened.client.close()
    opened.client.close()
    assert [command.client_id for command in sent] == [opened.client.client_id]


def test_the_error_of_a_termination_is_reported_before_the_close_handlers_run(both_ends):
    # Source: ClientConductor.onClientTimeout and onClose of Aeron 1.53.
    order = []
    opened = open_all(
        both_ends,
        on_unavailable_image=lambda image: order.append("image"),
        error_handler=lambda error: order.append("error"),
        on_close=lambda: order.append("close"),
    )
    both_ends.driver.cnc.set_closed()
    both_ends.driver.clock.advance(SECOND)
    opened.client.invoke()
    opened.client.close()
    assert order == ["image", "error", "close"]
