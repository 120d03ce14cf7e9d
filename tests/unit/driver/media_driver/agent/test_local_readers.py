"""IPC publications, spies and local destinations: links and notifications."""

import pytest

from tests.naive import wire
from tests.unit.driver.media_driver.invoked_driver import MS, SECOND, STREAM, TO_PEER, lab
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.image import AvailableImage, RejectImage, UnavailableImage
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    ExclusivePublicationReady,
    PublicationReady,
    RemovePublication,
)
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)
from windtunnel.driver.logbuffer import descriptor, frame
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.wire.frame_type import PAD

IPC = "aeron:ipc?term-length=64k"
NAMED = "aeron:ipc?alias=reader"
SPY = "aeron-spy:" + TO_PEER


@pytest.fixture
def driver(tmp_path):
    with lab(tmp_path / "aeron") as opened:
        opened.client = opened.next_id()
        opened.keeps_alive = True
        yield opened


def kinds(responses):
    return [type(item) for item in responses]


def test_an_ipc_publication_has_two_counters_and_no_channel(driver):
    registration_id, responses = driver.add(AddPublication, "aeron:ipc?alias=a")
    (ready,) = responses
    assert ready.channel_status_counter_id == -1
    found = driver.stream_counters()
    identity = f"{registration_id} {ready.session_id} {STREAM} aeron:ipc?alias=a"
    assert [item.label for item in found] == [
        f"pub-pos (concurrent): {identity}",
        f"pub-lmt: {identity}",
    ]
    log = driver.open_log(ready.log_file_name)
    assert log.term_length == 64 << 20
    assert log.type == descriptor.CONCURRENT_PUBLICATION


@pytest.mark.parametrize("publication_first", [True, False])
def test_an_ipc_subscription_and_publication_are_linked(driver, publication_first):
    order = [(AddPublication, IPC), (AddSubscription, "aeron:ipc")]
    if not publication_first:
        order.reverse()
    (first_id, first), (second_id, second) = (driver.add(*item) for item in order)
    assert len(first) == 1
    publication_id = first_id if publication_first else second_id
    subscription_id = second_id if publication_first else first_id
    ready, available = second
    assert isinstance(ready, SubscriptionReady if publication_first else PublicationReady)
    assert isinstance(available, AvailableImage)
    assert available.correlation_id == publication_id
    assert available.subscription_registration_id == subscription_id
    assert available.source_identity == "aeron:ipc"
    position = driver.counters.read(available.subscriber_position_id)
    assert position.label.endswith(f"{STREAM} aeron:ipc @0")
    assert position.reference_id == publication_id


def test_an_ipc_subscription_reads_only_its_stream_and_session(driver):
    driver.add(AddPublication, IPC + "|session-id=7")
    _, responses = driver.add(AddSubscription, "aeron:ipc?session-id=8")
    assert kinds(responses) == [SubscriptionReady]
    _, responses = driver.add(AddSubscription, "aeron:ipc", STREAM + 1)
    assert kinds(responses) == [SubscriptionReady]
    _, responses = driver.add(AddSubscription, "aeron:ipc?session-id=7")
    assert kinds(responses) == [SubscriptionReady, AvailableImage]


def test_publications_are_connected_while_they_have_a_subscriber(driver):
    _, (ready,) = driver.add(AddPublication, IPC)
    log = driver.open_log(ready.log_file_name)
    assert driver.value(ready.limit_counter_id) == 0
    assert not descriptor.is_connected_acquire(log.log, log.meta_at)
    subscription, _ = driver.add(AddSubscription, "aeron:ipc")
    driver.turn()
    assert descriptor.is_connected_acquire(log.log, log.meta_at)
    assert driver.value(ready.limit_counter_id) == 32 * 1024
    driver.request(RemoveSubscription(driver.client, driver.next_id(), subscription))
    assert not descriptor.is_connected_acquire(log.log, log.meta_at)
    assert driver.value(ready.limit_counter_id) == 0


def test_the_image_of_a_removed_ipc_publication_is_unavailable_once_drained(driver):
    publication, (ready,) = driver.add(AddExclusivePublication, IPC)
    log = driver.open_log(ready.log_file_name)
    _, (_, available) = driver.add(AddSubscription, NAMED)
    driver.turn()
    produced = driver.publish(log, 1024)
    responses = driver.request(RemovePublication(driver.client, driver.next_id(), publication))
    assert kinds(responses) == [OperationSuccess]
    assert descriptor.end_of_stream_position_acquire(log.log, log.meta_at) == produced
    assert driver.value(ready.limit_counter_id) == produced
    driver.run_for(3 * SECOND)
    assert driver.take() == [], "the image must stay available until it is drained"
    driver.set_value(available.subscriber_position_id, produced)
    driver.run_for(2 * SECOND)
    assert [each.channel for each in driver.take()] == ["aeron:ipc"]
    driver.run_for(2 * SECOND)
    assert driver.logs() == []


def test_a_concurrent_ipc_publication_is_shared(driver):
    first, (ready,) = driver.add(AddPublication, IPC)
    second, (again,) = driver.add(AddPublication, IPC)
    assert again.registration_id == first
    assert again.correlation_id == second
    assert again.log_file_name == ready.log_file_name
    _, (own,) = driver.add(AddExclusivePublication, IPC)
    assert isinstance(own, ExclusivePublicationReady)
    assert own.log_file_name != ready.log_file_name
    _, responses = driver.add(AddExclusivePublication, f"{IPC}|session-id={own.session_id}")
    assert responses[0].error_code == ErrorCode.INVALID_CHANNEL


@pytest.mark.parametrize("channel", [IPC, TO_PEER])
def test_a_revoked_publication_ends_at_once(driver, channel):
    reader = NAMED if channel == IPC else SPY
    publication, (ready,) = driver.add(AddPublication, channel)
    driver.add(AddSubscription, reader)
    driver.turn()
    log = driver.open_log(ready.log_file_name)
    driver.publish(log, 1024)
    responses = driver.request(
        RemovePublication(driver.client, driver.next_id(), publication, revoke=True)
    )
    assert kinds(responses) == [OperationSuccess]
    assert descriptor.is_publication_revoked(log.log, log.meta_at)
    driver.run_for(SECOND + 100 * MS)
    (gone,) = driver.take()
    assert isinstance(gone, UnavailableImage)
    assert gone.channel == ("aeron:ipc" if channel == IPC else SPY)
    assert driver.value(system_counters.PUBLICATIONS_REVOKED) == 1
    driver.run_for(7 * SECOND)
    assert driver.logs() == []


@pytest.mark.parametrize("publication_first", [True, False])
def test_a_spy_and_a_network_publication_are_linked(driver, publication_first):
    order = [(AddPublication, TO_PEER), (AddSubscription, SPY)]
    if not publication_first:
        order.reverse()
    (first_id, _), (second_id, second) = (driver.add(*item) for item in order)
    available = second[-1]
    assert isinstance(available, AvailableImage)
    assert available.correlation_id == (first_id if publication_first else second_id)
    assert available.source_identity == "aeron:ipc"


def test_a_spy_is_not_linked_to_a_publication_of_another_channel(driver):
    driver.add(AddPublication, TO_PEER.replace("40456", "40457"))
    _, responses = driver.add(AddSubscription, SPY)
    assert kinds(responses) == [SubscriptionReady]


def test_spies_simulate_a_connection_if_the_channel_allows_it(driver):
    _, (ready,) = driver.add(AddPublication, TO_PEER + "|ssc=true")
    log = driver.open_log(ready.log_file_name)
    subscription, (_, available) = driver.add(AddSubscription, SPY)
    driver.turn(4)
    assert descriptor.is_connected_acquire(log.log, log.meta_at)
    assert driver.value(ready.limit_counter_id) == 32 * 1024
    produced = driver.publish(log, 4096)
    driver.set_value(available.subscriber_position_id, produced)
    driver.turn(4)
    assert driver.named("snd-pos").value == produced, "snd-pos follows the fastest spy"
    driver.request(RemoveSubscription(driver.client, driver.next_id(), subscription))
    driver.turn(2)
    assert not descriptor.is_connected_acquire(log.log, log.meta_at)


def test_a_slow_spy_back_pressures_publishers(driver):
    _, (ready,) = driver.add(AddPublication, TO_PEER + "|ssc=true")
    log = driver.open_log(ready.log_file_name)
    _, (_, fast) = driver.add(AddSubscription, SPY)
    driver.add(AddSubscription, SPY)
    driver.turn(2)
    produced = driver.publish(log, 8192)
    driver.set_value(fast.subscriber_position_id, produced)
    driver.turn(4)
    assert driver.value(ready.limit_counter_id) == 32 * 1024


@pytest.mark.parametrize(("rejoin", "returns"), [("true", True), ("false", False)])
def test_an_untethered_subscriber_that_falls_behind_is_removed(driver, rejoin, returns):
    timeouts = (
        "|untethered-window-limit-timeout=2s|untethered-linger-timeout=3s"
        "|untethered-resting-timeout=4s"
    )
    _, (ready,) = driver.add(AddExclusivePublication, IPC + timeouts)
    log = driver.open_log(ready.log_file_name)
    _, (_, fast) = driver.add(AddSubscription, "aeron:ipc")
    _, (_, slow) = driver.add(AddSubscription, f"{NAMED}|tether=false|rejoin={rejoin}")
    driver.turn()
    produced = driver.publish(log, 32 * 1024)
    driver.set_value(fast.subscriber_position_id, produced)
    driver.run_for(2 * SECOND)
    assert driver.take() == []
    driver.run_for(2 * SECOND)
    (gone,) = driver.take()
    assert gone.subscription_registration_id == slow.subscription_registration_id
    assert gone.channel == "aeron:ipc"
    assert driver.value(ready.limit_counter_id) == 32 * 1024, (
        "a lingering reader still limits the publisher"
    )
    driver.run_for(4 * SECOND)
    assert driver.value(ready.limit_counter_id) == produced + 32 * 1024
    assert (driver.counters.read(slow.subscriber_position_id) is not None) == returns
    driver.run_for(6 * SECOND)
    responses = driver.take()
    assert kinds(responses) == [AvailableImage] * returns
    if returns:
        assert responses[0].subscriber_position_id == slow.subscriber_position_id
        assert driver.value(slow.subscriber_position_id) == produced


def test_a_claim_that_is_never_committed_is_padded(driver):
    _, (ready,) = driver.add(AddPublication, IPC)
    log = driver.open_log(ready.log_file_name)
    driver.add(AddSubscription, "aeron:ipc")
    driver.turn()
    driver.claim(log, 96)
    driver.run_for(15 * SECOND)
    assert driver.value(system_counters.UNBLOCKED_PUBLICATIONS) == 0
    driver.run_for(3 * SECOND)
    assert driver.value(system_counters.UNBLOCKED_PUBLICATIONS) == 1
    assert frame.frame_length_acquire(log.log, 0) == 96
    assert frame.frame_type(log.log, 0) == PAD


def test_a_command_that_is_never_committed_is_skipped(driver):
    driver.claim_command(40)
    correlation_id = driver.next_id()
    responses = driver.request(AddSubscription(driver.client, correlation_id, STREAM, "aeron:ipc"))
    assert responses == []
    driver.run_for(12 * SECOND)
    assert driver.value(system_counters.UNBLOCKED_COMMANDS) == 1
    assert SubscriptionReady(correlation_id, -1) in driver.take()


def test_an_unknown_publication_cannot_be_removed(driver):
    responses = driver.request(RemovePublication(driver.client, driver.next_id(), 99))
    assert [type(item) for item in responses] == [ErrorResponse]
    assert responses[0].error_code == ErrorCode.UNKNOWN_PUBLICATION


def test_the_unavailable_image_of_an_untethered_spy_has_the_ipc_channel(driver):
    timeout = "|ssc=true|untethered-window-limit-timeout=2s"
    _, (ready,) = driver.add(AddPublication, TO_PEER + timeout)
    log = driver.open_log(ready.log_file_name)
    _, (_, fast) = driver.add(AddSubscription, SPY)
    driver.add(AddSubscription, SPY + "|tether=false")
    driver.turn(2)
    driver.set_value(fast.subscriber_position_id, driver.publish(log, 32 * 1024))
    driver.run_for(4 * SECOND)
    (gone,) = driver.take()
    assert isinstance(gone, UnavailableImage)
    assert gone.channel == "aeron:ipc"


def test_a_rejected_ipc_image_is_unavailable_with_its_subscriptions_channel(driver):
    publication, _ = driver.add(AddPublication, IPC)
    driver.add(AddSubscription, NAMED)
    responses = driver.request(
        RejectImage(driver.client, driver.next_id(), publication, 0, "not wanted")
    )
    (gone,) = (each for each in responses if isinstance(each, UnavailableImage))
    assert gone.channel == NAMED


def test_a_subscriber_does_not_rejoin_after_a_rejection_without_a_free_counter(driver):
    """The cool-down ends in a timer, where no command can be rejected."""
    publication, (ready,) = driver.add(AddPublication, IPC)
    driver.add(AddSubscription, "aeron:ipc")
    driver.request(RejectImage(driver.client, driver.next_id(), publication, 0, "not wanted"))
    manager = driver.driver.conductor.components.user_counters._manager
    capacity, manager.capacity = manager.capacity, 0
    manager._freed.clear()
    errors = driver.value(system_counters.ERRORS)
    driver.run_for(12 * SECOND)
    assert driver.take() == []
    assert driver.value(system_counters.ERRORS) == errors + 1
    log = driver.open_log(ready.log_file_name)
    assert not descriptor.is_connected_acquire(log.log, log.meta_at)
    manager.capacity = capacity
    assert kinds(driver.add(AddSubscription, "aeron:ipc")[1]) == [
        SubscriptionReady,
        AvailableImage,
    ]


def test_a_revoked_shared_publication_is_no_longer_connected(driver):
    publication, _ = driver.add(AddPublication, TO_PEER + "|ssc=true")
    _, (ready,) = driver.add(AddPublication, TO_PEER + "|ssc=true")
    driver.add(AddSubscription, SPY)
    log = driver.open_log(ready.log_file_name)
    status = wire.pack(
        "status_message", 36, 0, 0, wire.SM, ready.session_id, STREAM, log.initial_term_id, 0,
        4096, 5,
    )  # fmt: skip
    here = driver.named("snd-local-sockaddr").label.rpartition(" ")[2]
    host, _, port = here.rpartition(":")
    driver.send(SocketAddress(host, int(port)), status)
    driver.turn(4)
    assert descriptor.is_connected_acquire(log.log, log.meta_at)
    driver.request(RemovePublication(driver.client, driver.next_id(), publication, revoke=True))
    driver.run_for(1 * SECOND + 100 * MS)
    assert driver.value(system_counters.PUBLICATIONS_REVOKED) == 1
    assert not descriptor.is_connected_acquire(log.log, log.meta_at)
