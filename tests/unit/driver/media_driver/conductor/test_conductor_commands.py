"""The responses of every command in order, and their counters."""

import errno
import os
import struct

import pytest

from tests.unit.driver.media_driver.invoked_driver import CHANNEL, MS, SECOND, STREAM, TO_PEER, lab
from windtunnel.driver.base import handoff
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.client import ClientClose, ClientKeepalive, ClientTimeout
from windtunnel.driver.command.command_type import CommandType, ErrorCode, describe
from windtunnel.driver.command.counter import (
    AddCounter,
    AddStaticCounter,
    CounterReady,
    RemoveCounter,
    StaticCounter,
    UnavailableCounter,
)
from windtunnel.driver.command.driver import TerminateDriver
from windtunnel.driver.command.image import AvailableImage, UnavailableImage
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    ExclusivePublicationReady,
    GetNextAvailableSessionId,
    NextAvailableSessionId,
    PublicationReady,
    RemovePublication,
)
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor.publications import publication_log
from windtunnel.driver.media_driver.sender import sender_state

TO_DESTINATIONS = "aeron:udp?control=10.0.0.1:24325|control-mode=manual|term-length=64k"


@pytest.fixture
def driver(tmp_path):
    with lab(tmp_path / "aeron") as opened:
        opened.client = opened.next_id()
        yield opened


def add(driver, kind, channel=CHANNEL, stream=STREAM, client=None):
    """Send an Add command. Returns (correlation id, responses other than heartbeat counters)."""
    correlation_id = driver.next_id()
    responses = driver.request(kind(client or driver.client, correlation_id, stream, channel))
    return correlation_id, [
        item for item in responses if not is_heartbeat_counter(item, client or driver.client)
    ]


def is_heartbeat_counter(response, client):
    return isinstance(response, CounterReady) and response.correlation_id == client


def refusal(responses):
    """Return (correlation id, error code) of the only response, an error."""
    (only,) = responses
    assert isinstance(only, ErrorResponse)
    assert only.message
    return only.correlation_id, only.error_code


def test_a_clients_heartbeat_counter_precedes_its_first_response(driver):
    first, second = driver.next_id(), driver.next_id()
    responses = driver.request(AddSubscription(driver.client, first, STREAM, CHANNEL))
    assert [type(item) for item in responses] == [CounterReady, SubscriptionReady]
    assert responses[0].correlation_id == driver.client
    heartbeat = driver.counters.read(responses[0].counter_id)
    assert (heartbeat.type_id, heartbeat.value) == (11, driver.clock.now_ms())
    assert heartbeat.label == f"client-heartbeat: id={driver.client}"
    assert struct.unpack_from("<q", heartbeat.key)[0] == driver.client
    responses = driver.request(AddSubscription(driver.client, second, STREAM + 1, CHANNEL))
    assert [type(item) for item in responses] == [SubscriptionReady]


@pytest.mark.parametrize(
    ("kind", "ready", "word"),
    [
        (AddPublication, PublicationReady, "concurrent"),
        (AddExclusivePublication, ExclusivePublicationReady, "exclusive"),
    ],
)
def test_a_publication_has_its_log_and_its_counters(driver, kind, ready, word):
    registration_id, (response,) = add(driver, kind, TO_PEER)
    assert isinstance(response, ready)
    assert (response.correlation_id, response.registration_id, response.stream_id) == (
        registration_id,
        registration_id,
        STREAM,
    )
    assert driver.logs() == [f"publications/{registration_id}.logbuffer"]
    assert response.log_file_name.endswith(driver.logs()[0])
    found = driver.stream_counters()
    identity = f"{registration_id} {response.session_id} {STREAM} {TO_PEER}"
    assert [item.label for item in found] == [
        f"snd-channel: {TO_PEER} 10.0.0.1:49152",
        f"snd-local-sockaddr: {found[0].counter_id} 10.0.0.1:49152",
        f"pub-pos ({word}): {identity}",
        f"pub-lmt: {identity}",
        f"snd-pos: {identity}",
        f"snd-lmt: {identity}",
        f"snd-bpe: {identity}",
        f"snd-naks-received: {identity}",
    ]
    assert [item.type_id for item in found] == [6, 14, 12, 1, 2, 9, 13, 19]
    assert [(item.registration_id, item.owner_id, item.reference_id) for item in found] == (
        [(registration_id, 0, 0)] * 2 + [(registration_id, driver.client, 0)] * 6
    )
    key = struct.pack("<qiii", registration_id, response.session_id, STREAM, len(TO_PEER))
    assert all(item.key.startswith(key + TO_PEER.encode()) for item in found[2:])
    assert found[0].key.startswith(struct.pack("<i", len(TO_PEER)) + TO_PEER.encode())
    assert found[1].key.startswith(struct.pack("<ii", found[0].counter_id, 14) + b"10.0.0.1:49152")
    assert response.limit_counter_id == found[3].counter_id
    assert response.channel_status_counter_id == found[0].counter_id
    assert (found[0].value, found[1].value) == (1, 1)


def test_a_subscription_has_the_counters_of_its_channel(driver):
    registration_id, (response,) = add(driver, AddSubscription)
    found = driver.stream_counters()
    assert response == SubscriptionReady(registration_id, found[0].counter_id)
    assert [(item.type_id, item.label) for item in found] == [
        (7, f"rcv-channel: {CHANNEL} 10.0.0.1:20121"),
        (14, f"rcv-local-sockaddr: {found[0].counter_id} 10.0.0.1:20121"),
    ]
    assert {(item.registration_id, item.owner_id) for item in found} == {(registration_id, 0)}


def test_an_image_is_announced_with_its_counters_and_a_subscriber_position(driver):
    subscription, _ = add(driver, AddSubscription)
    _, (ready, *others) = add(driver, AddExclusivePublication)
    driver.turn(4)
    (response,) = [*others, *driver.take()]
    assert isinstance(response, AvailableImage)
    assert response.subscription_registration_id == subscription
    assert (response.session_id, response.stream_id) == (ready.session_id, STREAM)
    assert response.source_identity == "10.0.0.1:49152"
    assert response.log_file_name.endswith(f"images/{response.correlation_id}.logbuffer")
    for name, registration, reference in (
        ("rcv-hwm", response.correlation_id, 0),
        ("rcv-pos", response.correlation_id, 0),
        ("rcv-naks-sent", response.correlation_id, 0),
        ("sub-pos", subscription, response.correlation_id),
    ):
        counter = driver.named(name)
        assert (counter.registration_id, counter.reference_id, counter.owner_id) == (
            registration,
            reference,
            driver.client,
        )
        suffix = " @0" if name == "sub-pos" else ""
        assert counter.label.endswith(
            f"{registration} {ready.session_id} {STREAM} {CHANNEL}{suffix}"
        )
    assert driver.named("sub-pos").counter_id == response.subscriber_position_id


def test_a_concurrent_publication_is_shared_until_its_last_registration_is_removed(driver):
    first, (original,) = add(driver, AddPublication, TO_PEER)
    other_client = driver.next_id()
    second, (shared,) = add(driver, AddPublication, TO_PEER, client=other_client)
    assert shared == PublicationReady(
        second,
        first,
        original.session_id,
        STREAM,
        original.limit_counter_id,
        original.channel_status_counter_id,
        original.log_file_name,
    )
    assert driver.request(RemovePublication(driver.client, 900, first)) == [OperationSuccess(900)]
    driver.run_for(8 * SECOND, 100 * MS)
    assert driver.logs() == [f"publications/{first}.logbuffer"]
    assert driver.request(RemovePublication(other_client, 901, second)) == [OperationSuccess(901)]
    driver.run_for(8 * SECOND, 100 * MS)
    assert driver.logs() == []


def test_an_exclusive_publication_is_never_shared(driver):
    _, (one,) = add(driver, AddExclusivePublication, TO_PEER)
    _, (two,) = add(driver, AddExclusivePublication, TO_PEER)
    _, (three,) = add(driver, AddPublication, TO_PEER)
    assert len({one.registration_id, two.registration_id, three.registration_id}) == 3
    assert len({one.session_id, two.session_id, three.session_id}) == 3
    assert one.channel_status_counter_id == three.channel_status_counter_id


def test_a_session_id_in_use_is_rejected_until_its_publication_is_removed(driver):
    channel = f"{TO_PEER}|session-id=5|linger=0"
    first, _ = add(driver, AddExclusivePublication, channel)
    second, response = add(driver, AddExclusivePublication, channel)
    assert refusal(response) == (second, ErrorCode.INVALID_CHANNEL)
    driver.request(RemovePublication(driver.client, 900, first))
    third, response = add(driver, AddExclusivePublication, channel)
    assert refusal(response) == (third, ErrorCode.INVALID_CHANNEL)
    driver.keep_alive(driver.client)
    driver.run_for(4 * SECOND)
    _, (response,) = add(driver, AddExclusivePublication, channel)
    assert response.session_id == 5


@pytest.mark.parametrize("change", ["mtu=1024", "term-length=128k", "session-id=9", "ssc=true"])
def test_a_shared_publication_rejects_contradicting_parameters(driver, change):
    add(driver, AddPublication, f"{TO_PEER}|session-id=5")
    key = change.split("=")[0]
    base = TO_PEER.replace("|term-length=64k", "") if key == "term-length" else TO_PEER
    refused_id, responses = add(driver, AddPublication, f"{base}|{change}")
    assert refusal(responses) == (refused_id, ErrorCode.GENERIC_ERROR)


def test_a_shared_ipc_publication_ignores_the_spy_parameter(driver):
    first, _ = add(driver, AddPublication, "aeron:ipc?term-length=64k|ssc=true")
    _, (response,) = add(driver, AddPublication, "aeron:ipc?term-length=64k|ssc=false")
    assert isinstance(response, PublicationReady)
    assert response.registration_id == first


def test_subscriptions_to_one_stream_must_agree_about_reliability(driver):
    add(driver, AddSubscription)
    refused_id, response = add(driver, AddSubscription, f"{CHANNEL}|reliable=false")
    assert refusal(response) == (refused_id, ErrorCode.GENERIC_ERROR)
    _, (response,) = add(driver, AddSubscription, f"{CHANNEL}|reliable=false", STREAM + 1)
    assert isinstance(response, SubscriptionReady)


@pytest.mark.parametrize(
    ("kind", "channel", "code"),
    [
        (AddPublication, "nonsense", ErrorCode.INVALID_CHANNEL),
        (AddPublication, "aeron:udp?endpoint=10.0.0.2:0", ErrorCode.INVALID_CHANNEL),
        (AddPublication, "aeron:udp", ErrorCode.INVALID_CHANNEL),
        (AddPublication, "aeron:udp?control-mode=dynamic", ErrorCode.INVALID_CHANNEL),
        (AddPublication, "aeron:udp?tags=7", ErrorCode.INVALID_CHANNEL),
        (AddPublication, f"{TO_PEER}|tags=foo", ErrorCode.INVALID_CHANNEL),
        (AddSubscription, f"{CHANNEL}|tags=foo", ErrorCode.INVALID_CHANNEL),
        (AddSubscription, "aeron-spy:aeron:udp", ErrorCode.INVALID_CHANNEL),
        (AddSubscription, "aeron:udp?endpoint=10.9.9.9:40456", ErrorCode.GENERIC_ERROR),
        (AddSubscription, "", ErrorCode.INVALID_CHANNEL),
    ],
)
def test_an_invalid_channel_is_rejected_and_logged(driver, kind, channel, code):
    refused_id, responses = add(driver, kind, channel)
    assert refusal(responses) == (refused_id, code)
    assert driver.value(system_counters.ERRORS) == 1
    (entry,) = read_errors(driver.cnc.error_log)
    assert entry.text.startswith(f"({-int(code)}) {describe(code)}\n")
    assert driver.logs() == []
    assert driver.active_counters() == []


@pytest.mark.parametrize("channel", [f"{TO_PEER}|mtu=77", "aeron:ipc?term-length=65"])
def test_an_invalid_parameter_is_named_in_the_error_log(driver, channel):
    refused_id, responses = add(driver, AddPublication, channel)
    assert refusal(responses) == (refused_id, ErrorCode.GENERIC_ERROR)
    (entry,) = read_errors(driver.cnc.error_log)
    assert entry.text.startswith("(22) Invalid argument\n")
    assert driver.logs() == []
    assert driver.active_counters() == []


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (RemovePublication, ErrorCode.UNKNOWN_PUBLICATION),
        (RemoveSubscription, ErrorCode.UNKNOWN_SUBSCRIPTION),
        (RemoveCounter, ErrorCode.UNKNOWN_COUNTER),
    ],
)
def test_an_unknown_or_foreign_resource_cannot_be_removed(driver, command, code):
    add(driver, AddExclusivePublication, TO_PEER)
    subscription, _ = add(driver, AddSubscription)
    assert refusal(driver.request(command(driver.client, 900, 424242))) == (900, code)
    if command is not RemoveSubscription:
        assert refusal(driver.request(command(driver.client + 77, 901, subscription))) == (
            901,
            code,
        )


def test_a_counter_exists_until_its_client_removes_it(driver):
    responses = driver.request(AddCounter(driver.client, 50, 1101, b"key", "label"))
    (ready,) = [item for item in responses if not is_heartbeat_counter(item, driver.client)]
    counter = driver.counters.read(ready.counter_id)
    assert (counter.type_id, counter.registration_id, counter.owner_id, counter.label) == (
        1101,
        50,
        driver.client,
        "label",
    )
    assert counter.key.rstrip(b"\0") == b"key"
    assert driver.request(RemoveCounter(driver.client, 51, 50)) == [
        OperationSuccess(51),
        UnavailableCounter(50, ready.counter_id),
    ]
    assert driver.counters.read(ready.counter_id) is None


def test_a_static_counter_is_shared_and_outlives_its_client(driver):
    command = AddStaticCounter(driver.client, 50, 7, 1101, b"", "mine")
    heartbeat, first = driver.request(command)
    assert is_heartbeat_counter(heartbeat, driver.client)
    assert isinstance(first, StaticCounter)
    (again,) = driver.request(AddStaticCounter(driver.client, 51, 7, 1101, b"", "other"))
    assert again == StaticCounter(51, first.counter_id)
    driver.request(ClientClose(driver.client))
    driver.run_for(2 * SECOND)
    assert driver.counters.read(first.counter_id).owner_id == -1
    driver.request(AddCounter(driver.client, 52, 1102, b"", "x"))
    refused_id = driver.request(AddStaticCounter(driver.client, 53, 52, 1102, b"", "y"))
    assert refusal(refused_id) == (53, ErrorCode.GENERIC_ERROR)


def test_a_static_counter_does_not_hide_a_counter_of_the_driver(driver):
    publication, _ = add(driver, AddPublication, TO_PEER)
    for type_id, registration_id in ((11, driver.client), (1, publication), (6, publication)):
        found = driver.counters.find(type_id, registration_id)
        correlation_id = driver.next_id()
        response = driver.request(
            AddStaticCounter(driver.client, correlation_id, registration_id, type_id, b"", "x")
        )
        assert refusal(response) == (correlation_id, ErrorCode.GENERIC_ERROR)
        assert f"(counterId={found}) for typeId={type_id}" in response[0].message
    (response,) = driver.request(AddStaticCounter(driver.client, 50, 0, 0, b"", "x"))
    assert response == StaticCounter(50, system_counters.BYTES_SENT)
    assert driver.counters.read(response.counter_id).label.startswith("Bytes sent")


def test_each_session_id_is_returned_once(driver):
    (first,) = driver.request(GetNextAvailableSessionId(driver.client, 50, STREAM))
    (second,) = driver.request(GetNextAvailableSessionId(driver.client, 51, STREAM))
    assert isinstance(first, NextAvailableSessionId)
    assert (first.correlation_id, second.session_id) == (50, first.session_id + 1)
    _, (response,) = add(driver, AddPublication, TO_PEER)
    assert response.session_id == second.session_id + 1


def test_removing_a_subscription_does_not_announce_its_images_as_unavailable(driver):
    subscription, _ = add(driver, AddSubscription)
    add(driver, AddExclusivePublication)
    driver.turn(4)
    driver.take()
    assert driver.request(RemoveSubscription(driver.client, 900, subscription)) == [
        OperationSuccess(900)
    ]
    driver.keep_alive(driver.client)
    driver.run_for(5 * SECOND)
    assert not [item for item in driver.take() if isinstance(item, UnavailableImage)]
    assert [name for name in driver.logs() if name.startswith("images")] == []


def test_a_client_that_times_out_is_notified_and_loses_its_resources(driver):
    add(driver, AddExclusivePublication, TO_PEER + "|linger=0")
    add(driver, AddSubscription)
    driver.request(AddCounter(driver.client, 50, 1101, b"", "label"))
    heartbeat = driver.counters.find(11, driver.client)
    driver.run_for(9 * SECOND)
    assert driver.take() == []
    driver.run_for(3 * SECOND)
    responses = driver.take()
    assert responses[:2] == [
        ClientTimeout(driver.client),
        UnavailableCounter(driver.client, heartbeat),
    ]
    assert [item.registration_id for item in responses[2:]] == [50]
    assert driver.value(system_counters.CLIENT_TIMEOUTS) == 1
    driver.run_for(4 * SECOND)
    assert (driver.active_counters(), driver.logs()) == ([], [])


def test_a_client_that_closes_is_removed_without_a_timeout_notification(driver):
    add(driver, AddExclusivePublication, TO_PEER + "|linger=0")
    assert driver.request(ClientClose(driver.client)) == []
    driver.run_for(5 * SECOND)
    assert not [item for item in driver.take() if isinstance(item, ClientTimeout)]
    assert driver.value(system_counters.CLIENT_TIMEOUTS) == 0
    assert (driver.active_counters(), driver.logs()) == ([], [])


def test_a_keepalive_command_counts_as_a_heartbeat(driver):
    add(driver, AddSubscription)
    for _ in range(4):
        driver.run_for(5 * SECOND)
        assert driver.request(ClientKeepalive(driver.client)) == []
    assert driver.value(system_counters.CLIENT_TIMEOUTS) == 0


def test_a_keepalive_command_that_waited_for_longer_than_the_timeout_is_too_late(driver):
    add(driver, AddSubscription)
    driver.run_for(5 * SECOND)
    driver.clock.advance(8 * SECOND)
    responses = driver.request(ClientKeepalive(driver.client))
    assert ClientTimeout(driver.client) in responses


def test_a_channel_that_is_being_closed_is_opened_again_afterwards(driver):
    subscription, _ = add(driver, AddSubscription)
    driver.post(
        CommandType.REMOVE_SUBSCRIPTION,
        RemoveSubscription(driver.client, 900, subscription).encode(),
    )
    driver.post(
        CommandType.ADD_SUBSCRIPTION, AddSubscription(driver.client, 901, STREAM, CHANNEL).encode()
    )
    driver.driver.conductor.do_work(driver.clock.now_ns())
    driver.driver.conductor.do_work(driver.clock.now_ns())
    assert [item.correlation_id for item in driver.take()] == [900]
    driver.turn(4)
    (response,) = driver.take()
    assert isinstance(response, SubscriptionReady)
    assert response.correlation_id == 901


def test_a_publication_that_waits_for_its_channel_takes_one_session_id(driver):
    _, (first,) = add(driver, AddExclusivePublication, TO_PEER)
    endpoints = driver.driver.conductor.components.send_endpoints
    endpoints._closing[99] = endpoints.by_slot(0)
    assert add(driver, AddExclusivePublication, TO_PEER)[1] == []
    del endpoints._closing[99]
    driver.turn(2)
    (second,) = driver.take()
    assert second.session_id == first.session_id + 1


@pytest.mark.parametrize(
    ("type_id", "content"),
    [
        (CommandType.ADD_PUBLICATION, b"\1" * 23),
        (CommandType.ADD_PUBLICATION, b"\x7f" * 24),
        (CommandType.CLIENT_CLOSE, b""),
        (77, b"\1" * 40),
        (2**31 - 1, b"\1" * 40),
    ],
)
def test_an_invalid_command_is_logged_without_a_response(driver, type_id, content):
    driver.post(type_id, content)
    driver.turn(3)
    assert driver.take() == []
    assert driver.value(system_counters.ERRORS) == 1
    assert ring_buffer.consumer_position(driver.cnc.to_driver) == ring_buffer.producer_position(
        driver.cnc.to_driver
    )
    assert add(driver, AddSubscription)[1]


@pytest.mark.parametrize(
    ("number", "code", "text"),
    [
        (errno.ENOSPC, ErrorCode.STORAGE_SPACE, "(28) No space left on device\n"),
        (errno.EDQUOT, ErrorCode.STORAGE_SPACE, "(122) Disk quota exceeded\n"),
        (errno.EMFILE, ErrorCode.GENERIC_ERROR, "(24) Too many open files\n"),
    ],
)
def test_only_a_full_disk_is_insufficient_storage_space(driver, monkeypatch, number, code, text):
    def fail(*arguments, **options):
        raise StorageError("cannot create the log") from OSError(number, os.strerror(number))

    monkeypatch.setattr(publication_log.LogBuffer, "create", fail)
    refused_id, responses = add(driver, AddPublication, TO_PEER)
    assert refusal(responses) == (refused_id, code)
    (entry,) = read_errors(driver.cnc.error_log)
    assert entry.text.startswith(text)


@pytest.mark.parametrize(("validator", "ends"), [("deny", False), ("allow", True)])
def test_a_client_may_terminate_the_driver_only_if_allowed(tmp_path, validator, ends):
    with lab(tmp_path / "aeron", termination_validator=validator) as driver:
        assert driver.request(TerminateDriver(driver.next_id(), 50, b"token")) == []
        assert driver.driver.wait(0) == ends


def test_a_log_that_does_not_fit_the_disk_is_rejected(tmp_path, monkeypatch):
    needed = 3 * 65_536 + 4096
    with lab(tmp_path / "aeron", perform_storage_checks=True) as driver:
        driver.client = driver.next_id()
        monkeypatch.setattr(publication_log, "usable_bytes", lambda folder: needed - 1)
        refused_id, responses = add(driver, AddPublication, TO_PEER)
        assert refusal(responses) == (refused_id, ErrorCode.STORAGE_SPACE)
        assert driver.logs() == []
        monkeypatch.setattr(publication_log, "usable_bytes", lambda folder: needed)
        assert isinstance(add(driver, AddPublication, TO_PEER)[1][0], PublicationReady)


def test_a_command_without_free_records_is_rejected_and_leaves_nothing_behind(driver):
    """A driver without free records rejects the next stream. It continues, and leaks nothing."""
    add(driver, AddSubscription)
    before, mapped = driver.active_counters(), driver.value(system_counters.BYTES_CURRENTLY_MAPPED)
    conductor = driver.driver.conductor
    for pool in (
        conductor.components.network._slots,
        conductor.components.network._limit_slots,
        conductor.components.send_endpoints._slots,
    ):
        free, pool._free = pool._free, []
        refused_id, responses = add(driver, AddPublication, TO_PEER)
        assert refusal(responses) == (refused_id, ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE)
        driver.turn(4)
        assert (driver.active_counters(), driver.logs()) == (before, [])
        assert driver.value(system_counters.BYTES_CURRENTLY_MAPPED) == mapped
        pool._free = free
    assert isinstance(add(driver, AddPublication, TO_PEER)[1][0], PublicationReady)


@pytest.mark.parametrize("room", range(8))
@pytest.mark.parametrize("channel", [TO_PEER, TO_DESTINATIONS])
def test_a_publication_without_free_counters_leaves_nothing_behind(driver, channel, room):
    add(driver, AddSubscription)
    before, sockets = driver.active_counters(), int(driver.links.mailboxes.is_open.sum())
    manager = driver.driver.conductor._resources.counters._manager
    capacity, manager.capacity = manager.capacity, manager._high_water_mark + 1 + room
    refused_id, responses = add(driver, AddPublication, channel)
    assert refusal(responses) == (refused_id, ErrorCode.GENERIC_ERROR)
    (entry,) = read_errors(driver.cnc.error_log)
    assert entry.text.startswith("(12) Cannot allocate memory\nno free counter")
    driver.turn(4)
    assert (driver.active_counters(), driver.logs()) == (before, [])
    assert int(driver.links.mailboxes.is_open.sum()) == sockets
    manager.capacity = capacity
    assert isinstance(add(driver, AddPublication, channel)[1][0], PublicationReady)


@pytest.mark.parametrize("room", range(4))
def test_an_image_without_free_counters_leaves_nothing_behind(driver, room):
    # The SETUP for this subscription is only sent after the capacity has been limited.
    add(driver, AddPublication)
    add(driver, AddSubscription)
    before = [item.counter_id for item in driver.active_counters()]
    manager = driver.driver.conductor._resources.counters._manager
    capacity, manager.capacity = manager.capacity, manager._high_water_mark + 1 + room
    failures = driver.value(system_counters.ERRORS)
    driver.run_for(SECOND // 2)
    assert driver.take() == []
    assert driver.value(system_counters.ERRORS) > failures
    assert [item.counter_id for item in driver.active_counters()] == before
    assert not [name for name in driver.logs() if name.startswith("images")]
    manager.capacity = capacity
    driver.keep_alive(driver.client)
    driver.run_for(2 * SECOND)
    assert [type(item) for item in driver.take()] == [AvailableImage]


def test_an_image_without_a_free_slot_is_created_later(driver):
    add(driver, AddSubscription)
    pool = driver.driver.conductor.components.images._factory.slots
    free, pool._free = pool._free, []
    add(driver, AddPublication)
    before = [item.counter_id for item in driver.active_counters()]
    driver.turn(4)
    assert [item.counter_id for item in driver.active_counters()] == before
    pool._free = free
    driver.run_for(1 * SECOND)
    assert [type(item) for item in driver.take()] == [AvailableImage]


def test_an_endless_series_of_events_does_not_delay_commands(driver):
    """Frames from the network cause events, but a command is still executed."""
    resources, record = driver.driver.conductor._resources, handoff.make_record()
    record[0] = sender_state.GROUP_TAG_MALFORMED
    handled = 0

    def handle(event, now_ns):
        nonlocal handled
        handled += 1
        assert handled < 10_000, "the turn never ends"
        handoff.put(resources.sender.events, record)

    driver.driver.conductor._sender_events[sender_state.GROUP_TAG_MALFORMED] = handle
    handoff.put(resources.sender.events, record)
    _, (response,) = add(driver, AddSubscription)
    assert isinstance(response, SubscriptionReady)
    assert handled > 1


def test_a_subscription_without_space_in_the_receivers_table_is_rejected(driver):
    room = driver.driver.conductor._resources.receiver.interests.size - 1
    first, _ = add(driver, AddSubscription)
    endpoint = next(iter(driver.driver.conductor.components.receive_endpoints))
    for stream in range(2, room + 1):
        endpoint.interests[-stream, None] += 1
    before = driver.active_counters()
    refused_id, response = add(driver, AddSubscription, stream=STREAM + 1)
    assert refusal(response) == (refused_id, ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE)
    assert driver.active_counters() == before
    driver.request(RemoveSubscription(driver.client, driver.next_id(), first))
    assert len(endpoint.interests) == room - 1
    _, (response,) = add(driver, AddSubscription, stream=STREAM + 1)
    assert isinstance(response, SubscriptionReady)
