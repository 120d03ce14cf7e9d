"""Commands that wait for a name are set aside, and the driver executes the others."""

import pytest

from tests.unit.driver.media_driver.invoked_driver import MS, SECOND, STREAM, lab_with_long_timeouts
from tests.unit.driver.media_driver.name_resolution.rig import HeldLookups, NameService
from windtunnel.driver.command.client import ClientClose
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.counter import AddCounter, CounterReady
from windtunnel.driver.command.destination import AddDestination, RemoveDestination
from windtunnel.driver.command.publication import AddPublication, PublicationReady
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)
from windtunnel.driver.media_driver.conductor.conductor import POLL_INTERVAL_NS
from windtunnel.driver.media_driver.conductor.waiting_commands import (
    LOOKUPS_PER_CLIENT_MAX,
    WAITING_PER_CLIENT_MAX,
)

NAMED = "aeron:udp?endpoint={}:20121|term-length=64k"
NUMERIC = "aeron:udp?endpoint=10.0.0.2:40456|term-length=64k"
MANUAL = "aeron:udp?control-mode=manual|term-length=64k"


@pytest.fixture
def held(tmp_path):
    """A driver whose name service responds when the test calls `held.lookups.complete`."""
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        service = NameService(opened.clock, here="10.0.0.1", there="10.0.0.2")
        opened.lookups = HeldLookups(service, opened.clock)
        opened.driver._resources.names._commands = opened.lookups
        opened.other_client = opened.next_id()
        yield opened


def post(lab, kind, *values, client=None):
    """Post a command without waiting. Returns its correlation id."""
    correlation_id = lab.next_id()
    command = kind(lab.client if client is None else client, correlation_id, *values)
    lab.post(command.TYPE_ID, command.encode())
    return correlation_id


def responses(lab, turns=100):
    """Run duty cycles of the driver. Returns its responses by correlation id."""
    lab.turn(turns)
    return {each.correlation_id: each for each in lab.take() if hasattr(each, "correlation_id")}


def failed(lab, turns=100):
    """Return the errors by the correlation id of their commands."""
    lab.turn(turns)
    return {
        each.correlation_id: each for each in lab.take()
        if isinstance(each, ErrorResponse)
    }  # fmt: skip


def test_twenty_unresolved_names_delay_no_other_client(held):
    for number in range(20):
        post(held, AddSubscription, STREAM + number, NAMED.format("none"), client=held.other_client)
    mine = post(held, AddSubscription, STREAM, NUMERIC.replace("10.0.0.2", "10.0.0.1"))
    counter = post(held, AddCounter, 1_000, b"", "mine")
    received = responses(held)
    assert isinstance(received[mine], SubscriptionReady)
    assert isinstance(received[counter], CounterReady)


def test_a_lookup_delays_no_other_command_of_its_client(held):
    waiting = post(held, AddPublication, STREAM, NAMED.format("there"))
    other = post(held, AddPublication, STREAM + 1, NUMERIC)
    received = responses(held)
    assert isinstance(received[other], PublicationReady)
    assert waiting not in received
    held.lookups.complete()
    assert isinstance(responses(held)[waiting], PublicationReady)


def test_each_waiting_command_has_its_own_lookups(held):
    first = post(held, AddPublication, STREAM, NAMED.format("there"))
    second = post(held, AddPublication, STREAM + 1, NAMED.format("none"))
    responses(held)
    held.lookups.complete()
    held.turn(5)
    received = held.take()
    ready = {each.correlation_id for each in received if isinstance(each, PublicationReady)}
    errors = [each for each in received if isinstance(each, ErrorResponse)]
    assert ready == {first}
    assert [(each.correlation_id, each.error_code) for each in errors] == [
        (second, ErrorCode.UNKNOWN_HOST)
    ]


def test_a_removal_waits_for_the_addition_that_it_removes(held):
    added = post(held, AddSubscription, STREAM, NAMED.format("here"))
    removed = post(held, RemoveSubscription, added)
    assert {added, removed}.isdisjoint(responses(held))
    held.lookups.complete()
    received = responses(held)
    assert isinstance(received[added], SubscriptionReady)
    assert isinstance(received[removed], OperationSuccess)


def test_the_destinations_of_a_publication_are_added_and_removed_in_order(held):
    publication = post(held, AddPublication, STREAM, MANUAL)
    assert isinstance(responses(held)[publication], PublicationReady)
    destination = "aeron:udp?endpoint=there:20121"
    added = post(held, AddDestination, publication, destination)
    removed = post(held, RemoveDestination, publication, destination)
    assert {added, removed}.isdisjoint(responses(held))
    held.lookups.complete()
    assert isinstance(responses(held)[added], OperationSuccess)
    held.lookups.complete()
    assert isinstance(responses(held)[removed], OperationSuccess)


def test_the_commands_of_a_client_that_closes_are_discarded(held):
    post(held, AddCounter, 1_000, b"", "registers the client")
    waiting = post(held, AddSubscription, STREAM, NAMED.format("here"))
    responses(held)
    post(held, ClientClose)
    held.run_for(3 * SECOND)
    held.take()
    held.lookups.complete()
    assert waiting not in responses(held)
    assert not held.stream_counters()


def test_a_client_may_have_a_limited_number_of_waiting_commands(held):
    ids = [
        post(held, AddSubscription, STREAM + number, NAMED.format("none"))
        for number in range(WAITING_PER_CLIENT_MAX + 1)
    ]
    (error,) = failed(held).values()
    assert error.correlation_id == ids[-1]
    assert error.error_code == ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE
    assert f"{WAITING_PER_CLIENT_MAX} commands" in error.message
    other = post(held, AddSubscription, STREAM, NAMED.format("here"), client=held.other_client)
    responses(held)
    held.lookups.complete()
    assert isinstance(responses(held)[other], SubscriptionReady)


def test_a_client_has_a_limited_number_of_lookups_in_progress(held):
    ids = [
        post(held, AddSubscription, STREAM + number, NAMED.format("none"))
        for number in range(WAITING_PER_CLIENT_MAX)
    ]
    responses(held)
    assert len(held.lookups._held) == LOOKUPS_PER_CLIENT_MAX
    post(held, AddSubscription, STREAM, NAMED.format("here"), client=held.other_client)
    responses(held)
    assert len(held.lookups._held) == LOOKUPS_PER_CLIENT_MAX + 1
    found = {}
    while len(found) < len(ids):
        held.lookups.complete()
        found |= failed(held)
    assert sorted(found) == ids


def test_python_runs_more_often_while_lookups_or_logs_are_pending(held):
    conductor, resources = held.driver.conductor, held.driver._resources
    background = HeldLookups(NameService(held.clock, here="10.0.0.1"), held.clock)
    resources.names._background = background

    def interval_ns():
        return conductor._deadline_ns(40 * MS) - held.clock.now_ns()

    held.turn()
    assert interval_ns() == 40 * MS
    resources.names.submit("here", "endpoint")
    assert interval_ns() == POLL_INTERVAL_NS
    background.complete()
    held.turn()
    assert interval_ns() == 40 * MS
    resources.retired_logs.append(None)
    assert interval_ns() == POLL_INTERVAL_NS
    resources.retired_logs.clear()
