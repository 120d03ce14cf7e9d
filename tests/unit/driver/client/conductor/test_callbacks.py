"""Handlers of the program: when they are called, their exceptions, and calls that they must not
make.
"""

import logging
import re
import threading

import numpy as np
import pytest

from tests.unit.driver.client.invoked_client import world
from tests.unit.driver.media_driver.invoked_driver import CHANNEL, MS, SECOND, STREAM
from windtunnel.driver.client.conductor.callbacks import Callbacks
from windtunnel.driver.client.errors import (
    ChannelEndpointError,
    ClientTimeoutError,
    ClosedError,
    ConductorServiceTimeoutError,
    DriverTimeoutError,
    ReentrantCallError,
)
from windtunnel.driver.cnc import broadcast
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.image import AvailableImage
from windtunnel.driver.command.response import ErrorResponse, PublicationError


@pytest.fixture
def both_ends(tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch) as made:
        yield made


def send_response(driver, response):
    """Let the driver transmit a message."""
    content = np.frombuffer(response.encode(), np.uint8).copy()
    broadcast.transmit(driver.cnc.to_clients, int(response.TYPE_ID), content, 0, content.size)


def forbidden_calls(client, subscription):
    """Make every call that a handler of the conductor must not make; record each refusal."""
    calls = [
        lambda: client.add_publication(CHANNEL, STREAM),
        lambda: client.add_exclusive_publication(CHANNEL, STREAM),
        lambda: client.add_subscription(CHANNEL, STREAM),
        lambda: client.add_counter(1001),
        lambda: client.async_add_publication(CHANNEL, STREAM),
        lambda: client.next_session_id(STREAM),
        lambda: client.add_close_handler(lambda: None),
        lambda: client.get_publication(1),
        client.invoke,
        client.close,
        lambda: subscription()[0].close(),
    ]
    refused = 0
    for call in calls:
        try:
            call()
        except ReentrantCallError:
            refused += 1
    return refused, len(calls)


def test_a_handler_must_not_change_the_conductor(both_ends):
    client = both_ends.connect()
    made, seen = [], []
    made.append(
        client.add_subscription(
            CHANNEL, STREAM,
            on_available_image=lambda image: seen.append(forbidden_calls(client, lambda: made)),
        )
    )  # fmt: skip
    client.add_exclusive_publication(CHANNEL, STREAM)
    both_ends.until(lambda: seen)
    refused, tried = seen[0]
    assert refused == tried
    assert not client.is_closed
    assert not made[0].is_closed
    assert both_ends.errors == []


def test_handlers_and_other_threads_get_distinct_correlation_ids(both_ends):
    client, ids = both_ends.connect(), []

    def take_id():
        ids.append(client.next_correlation_id())

    def handler(image):
        take_id()
        other = threading.Thread(target=take_id)
        other.start()
        other.join(30)

    client.add_subscription(CHANNEL, STREAM, on_available_image=handler)
    client.add_exclusive_publication(CHANNEL, STREAM)
    both_ends.until(lambda: ids or both_ends.errors)
    assert len(set(ids)) == 2
    client.close()
    with pytest.raises(ClosedError):
        client.next_correlation_id()
    assert both_ends.errors == []


def test_an_exception_of_a_handler_goes_to_the_error_handler_and_the_client_continues(both_ends):
    client = both_ends.connect(on_available_image=lambda image: 1 // 0)
    subscription = client.add_subscription(CHANNEL, STREAM)
    client.add_exclusive_publication(CHANNEL, STREAM)
    both_ends.until(lambda: both_ends.errors)
    assert [type(error) for error in both_ends.errors] == [ZeroDivisionError]
    assert subscription.images
    assert client.add_publication(CHANNEL, STREAM + 1).session_id


@pytest.mark.parametrize("ends", ["subscription", "client"])
def test_closing_calls_the_unavailable_image_handlers(both_ends, ends):
    gone = []
    client = both_ends.connect(on_unavailable_image=gone.append)
    subscription = client.add_subscription(CHANNEL, STREAM)
    client.add_exclusive_publication(CHANNEL, STREAM)
    image = both_ends.until(lambda: subscription.images)[0]
    (subscription if ends == "subscription" else client).close()
    assert gone == [image]
    assert image.is_closed


def test_all_counter_handlers_are_called(both_ends):
    first, second = both_ends.connect(), both_ends.connect()
    come, gone = [], []
    first.add_available_counter_handler(lambda reader, *ids: come.append(ids))
    removed = first.add_available_counter_handler(lambda *_: 1 // 0)
    assert first.remove_available_counter_handler(removed)
    assert not first.remove_available_counter_handler(removed)
    first.add_unavailable_counter_handler(lambda reader, *ids: gone.append(ids))
    counter = second.add_counter(1001, b"key", "mine")
    both_ends.both()
    assert (counter.registration_id, counter.counter_id) in come
    counter.close()
    both_ends.both()
    assert gone == [(counter.registration_id, counter.counter_id)]


def test_handlers_of_the_context_are_called(both_ends):
    come, gone, closed = [], [], []
    client = both_ends.connect(
        on_available_counter=lambda *ids: come.append(ids),
        on_unavailable_counter=lambda *ids: gone.append(ids),
        on_close=lambda: closed.append(True),
    )
    client.add_counter(1001).close()
    both_ends.both()
    assert come
    assert gone
    removed = client.add_close_handler(lambda: 1 // 0)
    assert client.remove_close_handler(removed)
    client.add_close_handler(lambda: closed.append(client.is_closed))
    client.close()
    client.close()
    assert closed == [True, True]


def test_a_client_timeout_is_reported_once_with_its_code(both_ends):
    closed = []
    client = both_ends.connect(on_close=lambda: closed.append(True))
    both_ends.driver.cnc.set_closed()
    both_ends.driver.clock.advance(SECOND)
    client.invoke()
    client.invoke()
    assert [(type(error), error.code) for error in both_ends.errors] == [(DriverTimeoutError, 1000)]
    assert closed == [True]
    with pytest.raises(DriverTimeoutError, match="has been shut down"):
        client.next_correlation_id()


@pytest.mark.parametrize(
    ("silence_ns", "kind", "code"),
    [(0, ClientTimeoutError, 1001), (11 * SECOND, ConductorServiceTimeoutError, 1002)],
)
def test_each_termination_of_a_client_has_its_own_error(both_ends, silence_ns, kind, code):
    client = both_ends.connect()
    client.add_publication(CHANNEL, STREAM)
    if silence_ns:
        both_ends.driver.clock.advance(silence_ns)
    else:
        both_ends.driver.run_for(12 * SECOND, 500 * MS)
    client.invoke()
    assert [(type(error), error.code) for error in both_ends.errors] == [(kind, code)]
    with pytest.raises(kind):
        client.add_counter(1001)


def test_the_error_handler_may_close_the_client(both_ends):
    clients = []
    client = both_ends.connect(error_handler=lambda error: clients[0].close())
    clients.append(client)
    both_ends.driver.cnc.set_closed()
    both_ends.driver.clock.advance(SECOND)
    client.invoke()
    assert client.is_closed


def test_a_closed_client_refuses_every_call(both_ends):
    client = both_ends.connect()
    counter = client.add_counter(1001)
    subscription = client.add_subscription(CHANNEL, STREAM)
    client.close()
    with pytest.raises(ClosedError):
        client.add_counter(1001)
    with pytest.raises(ClosedError):
        subscription.add_destination(CHANNEL)
    with pytest.raises(ClosedError):
        subscription.reject_image(1, 0, "reason")
    assert counter.is_closed
    assert client.invoke() == 0
    assert not client.is_command_active(1)
    assert not client.has_active_commands
    assert both_ends.errors == []


@pytest.mark.parametrize("kind", ["subscription", "publication"])
def test_a_closed_resource_refuses_destinations(both_ends, kind):
    client = both_ends.connect()
    add = client.add_subscription if kind == "subscription" else client.add_publication
    made = add(CHANNEL, STREAM)
    made.close()
    for call in (made.add_destination, made.async_remove_destination):
        with pytest.raises(ClosedError, match=f"{kind} of {re.escape(CHANNEL)} is closed"):
            call(CHANNEL)


@pytest.mark.parametrize("counter_id", [-1, 10_000_000])
def test_a_counter_id_out_of_range_is_reported(both_ends, counter_id):
    client = both_ends.connect()
    subscription = client.add_subscription(CHANNEL, STREAM)
    client.add_publication(CHANNEL, STREAM + 1)
    (log,) = (both_ends.folder / "aeron").rglob("*.logbuffer")
    responses = AvailableImage(
        5, 6, STREAM, subscription.registration_id, counter_id, str(log), "10.0.0.1:1"
    )
    send_response(both_ends.driver, responses)
    client.invoke()
    assert subscription.images == ()
    assert len(both_ends.errors) == 1
    assert f"the driver sent counter id {counter_id}, expected" in str(both_ends.errors[0])


@pytest.mark.parametrize("content", [b"", b"no log", bytes(200_704)])
def test_an_invalid_log_file_is_reported_and_ignored(both_ends, content):
    client = both_ends.connect()
    subscription = client.add_subscription(CHANNEL, STREAM)
    path = both_ends.folder / "image.logbuffer"
    path.write_bytes(content)
    send_response(
        both_ends.driver,
        AvailableImage(5, 6, STREAM, subscription.registration_id, 50, str(path), "10.0.0.1:1"),
    )
    client.invoke()
    assert subscription.images == ()
    assert len(both_ends.errors) == 1
    assert not client.is_closed


def test_a_channel_endpoint_error_is_reported_to_users_of_the_channel(both_ends):
    client = both_ends.connect()
    publication = client.add_publication(CHANNEL, STREAM)
    for status_id in (publication.channel_status_id, 10_000):
        responses = ErrorResponse(status_id, ErrorCode.CHANNEL_ENDPOINT_ERROR, "socket broke")
        send_response(both_ends.driver, responses)
    client.invoke()
    (error,) = both_ends.errors
    assert isinstance(error, ChannelEndpointError)
    assert (error.status_counter_id, error.code) == (publication.channel_status_id, 4)


def test_a_publication_error_is_reported_for_publications_of_this_client_only(both_ends):
    errors = []
    client = both_ends.connect(publication_error_handler=errors.append)
    publication = client.add_publication(CHANNEL, STREAM)

    def publication_error(registration_id):
        return PublicationError(registration_id, -1, 1, STREAM, 2, 3, "10.0.0.1", 4, 13, "no")

    for registration_id in (publication.original_registration_id, 10_000):
        send_response(both_ends.driver, publication_error(registration_id))
    client.invoke()
    assert errors == [publication_error(publication.original_registration_id)]


def test_a_malformed_response_is_reported_and_ignored(both_ends):
    client = both_ends.connect()
    broadcast.transmit(both_ends.driver.cnc.to_clients, 0x0F02, np.zeros(8, np.uint8), 0, 8)
    client.invoke()
    assert len(both_ends.errors) == 1
    assert client.add_counter(1001).counter_id > 0


def test_without_an_error_handler_errors_are_logged(caplog):
    with caplog.at_level(logging.ERROR, logger="windtunnel.driver.client"):
        Callbacks(None).report(ValueError("told"))
        Callbacks(lambda error: 1 // 0).report(ValueError("failed"))
    assert [record.message for record in caplog.records] == [
        "error=ValueError('told')",
        "error handler failed on error=ValueError('failed')",
    ]
