"""Exercises of destinations that are added and removed while a stream is published and read."""

from __future__ import annotations

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange, message, offer
from windtunnel.harness.simulator.exercises.party import (
    Party,
    Site,
    connected,
    disconnected,
    image_of,
    limit_at,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

SEND_STREAM, RECEIVE_STREAM, LEFT_STREAM = 3301, 3302, 3303
LENGTH = 500
ALIAS = "send-destinations"
MANUAL = "aeron:udp?control-mode=manual|term-length=64k|linger=0|fc=max"
STATUS_PHASE_NS = 50 * NS_PER_MS
REMAINS_NS = 1_500 * NS_PER_MS
"""Longer than the interval of the timer that ends an image, whose status message then says so."""


def send_destinations(site: Site) -> Routine[None]:
    """Add and remove destinations of a publication with control-mode=manual."""
    near, far = site.near, site.far
    ports = PORTS["send-destinations"]
    channels = [f"aeron:udp?endpoint={far.address}:{port}" for port in ports]
    publication = yield from near.publication(f"{MANUAL}|alias={ALIAS}", SEND_STREAM)
    (counter,) = [each for each in near.of_type(counter_key.DESTINATIONS) if ALIAS in each.label]
    readers = []
    for channel in channels:
        readers.append(Reader((yield from far.subscription(channel, SEND_STREAM))))
    yield _counts(near, counter.counter_id, 0)
    yield from near.answered(publication.async_add_destination(channels[0]))
    yield _counts(near, counter.counter_id, 1)
    yield connected(publication)
    yield from image_of(readers[0].subscription)
    yield from exchange(publication, readers[:1], 50, LENGTH)
    require(not readers[1].subscription.images, "no image before its destination was added")
    second = publication.async_add_destination(channels[1])
    yield from near.answered(second)
    yield _counts(near, counter.counter_id, 2)
    image = yield from image_of(readers[1].subscription)
    require(
        image.join_position <= publication.position,
        f"a later destination to join at {publication.position}, found {image.join_position}",
    )
    # fc=max follows the faster reader. The slower one must not fall behind by half a term, of which
    # nothing is sent again.
    for first in (100, 150, 200):
        yield from exchange(publication, readers, 50, LENGTH, first=first)
    yield from near.answered(publication.async_remove_destination(channels[0]))
    yield _counts(near, counter.counter_id, 1)
    yield from exchange(publication, readers[1:], 50, LENGTH, first=300)
    require(readers[0].poll() == 0, "no message at a destination that was removed")
    yield from near.answered(publication.async_remove_destination_by_id(second))
    yield _counts(near, counter.counter_id, 0)
    yield disconnected(publication)
    yield limit_at(near, publication, publication.position)
    require(not near.errors, f"no errors, found {near.errors}")
    publication.close()
    for each in readers:
        each.subscription.close()
    yield from _leave(near, far, channels)


def _leave(near: Party, far: Party, channels: list[str]) -> Routine[None]:
    """Let the first of two receivers leave: the other one remains connected."""
    publication = yield from near.publication(MANUAL, LEFT_STREAM)
    readers = []
    for channel in channels:
        readers.append(Reader((yield from far.subscription(channel, LEFT_STREAM))))
        yield from near.answered(publication.async_add_destination(channel))
        yield connected(publication)
        yield from image_of(readers[-1].subscription)
    # The clock passes the timeout of a receiver that has never sent a status message.
    yield near.pause(REMAINS_NS)
    yield from exchange(publication, readers, 50, LENGTH)
    readers[0].subscription.close()
    # The status messages of the two receivers no longer leave at the same time.
    yield near.pause(STATUS_PHASE_NS)
    yield from exchange(publication, readers[1:], 50, LENGTH, first=100)
    yield _stays_connected(near, publication)
    publication.close()
    readers[1].subscription.close()


def _stays_connected(party: Party, publication: Publication) -> Wait:
    """Return the condition that a publication has been connected for some time."""
    until_ns = party.now_ns() + REMAINS_NS

    def is_over() -> bool:
        require(publication.is_connected, "the connection by the receiver that remains")
        return party.now_ns() >= until_ns

    return Wait(is_over, "time to pass")


def _counts(party: Party, counter_id: int, count: int) -> Wait:
    """Return the condition that the counter of destinations has a value."""
    return Wait(
        lambda: party.value(counter_id) == count,
        f"the counter of destinations to be {count}",
        lambda: party.value(counter_id),
    )


def receive_destinations(site: Site) -> Routine[None]:
    """Add and remove destinations of a subscription with control-mode=manual: two addresses, an IPC
    stream and a spy.
    """
    near, far = site.near, site.far
    ports = PORTS["receive-destinations"]
    channels = [f"aeron:udp?endpoint={far.address}:{port}" for port in ports]
    reader = Reader((yield from far.subscription("aeron:udp?control-mode=manual", RECEIVE_STREAM)))
    subscription = reader.subscription
    publications = []
    for channel in channels:
        added = yield from near.publication(f"{channel}|term-length=64k|linger=0", RECEIVE_STREAM)
        publications.append(added)
    for index, channel in enumerate(channels):
        yield from far.answered(subscription.async_add_destination(channel))
        yield from image_of(subscription, index + 1)
        publication = publications[index]
        yield connected(publication)
        yield from exchange(publication, [reader], 50, LENGTH, first=100 * index)
    yield from far.answered(subscription.async_remove_destination(channels[0]))
    yield from exchange(publications[1], [reader], 50, LENGTH, first=400)
    yield disconnected(publications[0])
    yield from image_of(subscription, 1)
    require(publications[1].is_connected, "the connection by the destination that remains")
    yield from _local(far, reader)
    yield from far.answered(subscription.async_remove_destination(channels[1]))
    yield disconnected(publications[1])
    yield Wait(lambda: not subscription.images, "no image without destinations")
    require(not far.errors, f"no errors, found {far.errors}")
    for each in publications:
        each.close()
    subscription.close()


def _local(far: Party, reader: Reader) -> Routine[None]:
    """Add an IPC destination and remove it again."""
    publication = yield from far.publication("aeron:ipc?term-length=64k", RECEIVE_STREAM)
    yield from far.answered(reader.subscription.async_add_destination("aeron:ipc"))
    yield from image_of(reader.subscription, 2)
    yield from exchange(publication, [reader], 50, LENGTH, first=700)
    yield from far.answered(reader.subscription.async_remove_destination("aeron:ipc"))
    yield from image_of(reader.subscription, 1)
    yield disconnected(publication)
    require(not offer(publication, message(1, LENGTH)), "an offer without readers to be refused")
    publication.close()
