"""Exercises of counters that clients add, and of a client that dies with them."""

from __future__ import annotations

from functools import partial

from windtunnel.driver.client.counter import Counter
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.simulator.exercises.party import Party, Site, connected, disconnected
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

TYPE_ID, STATIC_TYPE_ID = 5_001, 5_002
STATIC_ID = 77
CLIENT_TIMEOUTS = 24
STREAM, READ_STREAM = 3201, 3202
IPC = "aeron:ipc?term-length=64k"
_DEFAULT_REFERENCE = 0


def user_counters(site: Site) -> Routine[None]:
    """Add counters, find them among the driver's, and remove them."""
    near = site.near
    one = yield from _add(near, b"one", "the first counter")
    two = yield from _add(near, b"two", "the second counter")
    require(one.counter_id != two.counter_id, "two counters with different ids")
    for counter, key, label in (
        (one, b"one", "the first counter"),
        (two, b"two", "the second counter"),
    ):
        found = near.counter(counter.counter_id)
        require(found is not None, f"the counter {label!r} in the driver's file")
        assert found is not None
        shown = (found.type_id, found.key.rstrip(b"\0"), found.label, found.registration_id)
        expected = (TYPE_ID, key, label, counter.registration_id)
        require(shown == expected, f"a counter {expected}, found {shown}")
        owner = (found.owner_id, found.reference_id, found.value)
        expected_owner = (near.client.client_id, _DEFAULT_REFERENCE, 0)
        require(
            owner == expected_owner, f"owner, reference and value {expected_owner}, found {owner}"
        )
    one.set(42)
    require(near.value(one.counter_id) == 42, "the value that was set")
    require(near.value(two.counter_id) == 0, "no change of another counter")
    yield from _static(near)
    ids = one.registration_id, two.registration_id
    yield Wait(
        lambda: set(ids) <= set(near.counters_added), f"notifications of the new counters {ids}"
    )
    one.close()
    yield Wait(lambda: ids[0] in near.counters_removed, "a notification of the removed counter")
    require(near.counter(one.counter_id) is None, "a removed counter to be free")
    third = yield from _add(near, b"three", "the third counter")
    require(third.counter_id != one.counter_id, "an id that was freed just now not to be reused")
    require(near.counter(two.counter_id) is not None, "another counter to remain")
    require(ids[1] not in near.counters_removed, "no notification of a counter that remains")
    two.close()
    yield Wait(lambda: ids[1] in near.counters_removed, "a notification of the second counter")


def _add(party: Party, key: bytes, label: str) -> Routine[Counter]:
    wanted = party.client.async_add_counter(TYPE_ID, key, label)
    counter: Counter = yield Wait(
        lambda: party.client.get_counter(wanted), f"the counter {label!r}"
    )
    require(counter.registration_id == wanted, "a counter with the id of its command")
    clients = [each.registration_id for each in party.of_type(counter_key.CLIENT_HEARTBEAT)]
    own = party.client.client_id
    require(own in clients, f"a heartbeat counter of client {own}, found those of {clients}")
    return counter


def _static(party: Party) -> Routine[None]:
    """Add a static counter twice: there is one."""
    found = []
    for _ in range(2):
        wanted = party.client.async_add_static_counter(STATIC_TYPE_ID, STATIC_ID, b"s", "static")
        counter: Counter = yield Wait(partial(party.client.get_counter, wanted), "a static counter")
        found.append(counter.counter_id)
    require(found[0] == found[1], f"one static counter, found {found}")
    read = party.counter(found[0])
    require(
        read is not None and (read.registration_id, read.owner_id) == (STATIC_ID, -1),
        f"a static counter with registration id {STATIC_ID} and owner -1, found {read}",
    )


def dying_client(site: Site) -> Routine[None]:
    """Let a client die with a counter, a claim and a subscription, all of which end with it.

    Another client on its host sees that.
    """
    near, heir = site.near, site.beside
    answering = yield from heir.publication(IPC, READ_STREAM)
    for _ in range(3):
        yield from near.subscription("aeron:ipc", READ_STREAM)
    yield connected(answering)
    timeouts = near.value(CLIENT_TIMEOUTS)
    counter = yield from _add(near, b"dying", "a counter of a client that dies")
    publication = yield from near.publication(
        "aeron:ipc?term-length=64k", STREAM, is_exclusive=True
    )
    subscription = yield from heir.subscription("aeron:ipc", STREAM)
    image = yield Wait(lambda: subscription.images, "an image at the other client")
    yield connected(publication)
    require(publication.offer(b"the last message") > 0, "the last message to be accepted")
    read: list[bytes] = []
    near.die()
    yield Wait(
        lambda: counter.registration_id in heir.counters_removed,
        "a notification that the counter of a dead client was removed",
    )
    require(
        heir.value(CLIENT_TIMEOUTS) == timeouts + 1,
        f"{timeouts + 1} timeouts of clients, found {heir.value(CLIENT_TIMEOUTS)}",
    )
    require(heir.counter(counter.counter_id) is None, "the counter of a dead client to be free")
    yield disconnected(answering)
    yield Wait(
        lambda: subscription.poll(lambda payload, _: read.append(bytes(payload))) and read,
        "the last message of a client that died",
    )
    require(read == [b"the last message"], f"the last message, found {read}")
    yield Wait(
        lambda: image[0].is_end_of_stream or image[0].is_closed, "the end of a dead client's stream"
    )
    yield Wait(lambda: not subscription.images, "the image of a dead client to be removed")
    subscription.close()
