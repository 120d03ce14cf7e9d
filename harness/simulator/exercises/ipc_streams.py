"""Exercises of IPC: exclusive and shared publications, back pressure, several readers, and ends."""

from __future__ import annotations

from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.simulator.exercises.messages import Reader, exchange, has_read, message
from windtunnel.harness.simulator.exercises.party import (
    Party,
    Site,
    disconnected,
    image_of,
    limit_at,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM, SHARED_STREAM = 3001, 3002
CHANNEL = "aeron:ipc?term-length=64k|init-term-id=2147483646|term-id=-2147483647|term-offset=32"
SHARED_CHANNEL = "aeron:ipc?term-length=64k|mtu=1408"
START = 3 * 65_536 + 32
"""Start position of the exclusive publication: its term id is three after the initial one."""
WINDOW = 65_536 // 2
LENGTH = 1_000
TERMS = 3 * 65_536
NOTICED_NS = 50_000_000
"""Time in which the driver has noticed that a reader has left."""
UNREAD_NS = 2_500_000_000
"""Time for which the last messages are not read: two intervals of the conductor's timer."""


def exclusive(site: Site) -> Routine[None]:
    """Publish over several terms to two readers, of which one stops reading and one joins late."""
    near = site.near
    publication = yield from near.publication(CHANNEL, STREAM, is_exclusive=True)
    require(not publication.is_connected, "no connection before there is a subscription")
    first = Reader((yield from near.subscription("aeron:ipc", STREAM)))
    image = yield from image_of(first.subscription)
    require(image.join_position == START, f"to join at {START}, found {image.join_position}")
    require(publication.is_connected, "a publication to be connected when its reader has an image")
    yield limit_at(near, publication, START + WINDOW)
    yield from exchange(publication, [first], 2 * TERMS // LENGTH, LENGTH)
    late = Reader((yield from near.subscription("aeron:ipc", STREAM)))
    joined = yield from image_of(late.subscription)
    # The driver notices what the first reader has read in its duty cycle.
    behind = publication.position - joined.join_position
    require(
        0 <= behind <= WINDOW, f"a late reader to join within the window, found {behind} behind"
    )
    yield Wait(
        lambda: late.poll() >= 0 and joined.position == publication.position,
        "a late reader to read what is left of the window",
    )
    late.take()
    yield from exchange(publication, [first, late], TERMS // LENGTH, 3 * LENGTH, first=1_000)
    yield from _join_behind(near, publication, [first, late])
    yield from _fill(publication, first, late)
    yield from _reaches(near, publication.registration_id, publication.position)
    yield from _reaches(near, late.subscription.registration_id, joined.position)
    yield from _end(near, publication, [first, late])


def _reaches(near: Party, registration_id: int, position: int) -> Routine[None]:
    """Wait until the position counter with a registration id has a value."""
    positions = (counter_key.PUBLISHER_POSITION, counter_key.SUBSCRIBER_POSITION)
    (counter,) = [
        each
        for type_id in positions
        for each in near.of_type(type_id)
        if each.registration_id == registration_id
    ]
    yield Wait(
        lambda: near.value(counter.counter_id) == position, f"{counter.label} to reach {position}"
    )


def _join_behind(near: Party, publication: Publication, readers: list[Reader]) -> Routine[None]:
    """Join while other readers are behind: all of them read what is left."""
    start = publication.position
    require(publication.offer(message(5, LENGTH)) > 0, "a message to be accepted")
    last = Reader((yield from near.subscription("aeron:ipc", STREAM)))
    image = yield from image_of(last.subscription)
    found = image.join_position
    # The C driver notices what readers have read only after a part of the window.
    require(found <= start, f"to join at the other readers' position {start}, found {found}")
    for each in readers:
        yield has_read(each, 1)
        each.take()
    yield Wait(
        lambda: last.poll() >= 0 and image.position == publication.position,
        "the last reader to read it, too",
    )
    last.subscription.close()
    yield near.pause(NOTICED_NS)
    require(publication.is_connected, "a publication that still has readers to be connected")


def _fill(publication: Publication, first: Reader, late: Reader) -> Routine[None]:
    """Let one reader stop: the publisher must be stopped by it, and must continue with it."""
    start, content = publication.position, message(5, LENGTH)

    def is_full() -> bool:
        while (position := publication.offer(content)) > 0:
            first.poll()
        first.poll()
        return position == result.BACK_PRESSURED and publication.position - start > 16_384

    yield Wait(is_full, "a reader that does not read to stop the publisher")
    ahead = publication.position - start
    require(ahead <= 2 * WINDOW, f"a publisher to be at most a term ahead, found {ahead} bytes")
    count = ahead // 1_056
    yield Wait(lambda: late.poll() >= count, f"{count} messages at the reader that rested")
    yield Wait(lambda: first.poll() >= count, f"{count} messages at the other reader")
    for each in (first, late):
        require(set(each.take()) == {content}, "equal messages")
    yield Wait(lambda: publication.available_window > 0, "the publisher to continue")


def _end(near: Party, publication: Publication, readers: list[Reader]) -> Routine[None]:
    images = [each.subscription.images[-1] for each in readers]
    unread = [message(number, LENGTH) for number in range(3)]
    for content in unread:
        require(publication.offer(content) > 0, "a message before the end to be accepted")
    publication.close()
    yield near.pause(UNREAD_NS)
    for reader in readers:
        require(reader.subscription.images, "the image of an ended IPC stream that is not read yet")
        yield has_read(reader, len(unread))
        require(reader.take() == unread, "the last messages of an IPC stream")
    yield Wait(lambda: all(each.is_end_of_stream for each in images), "the end of an IPC stream")
    yield Wait(
        lambda: not any(each.subscription.images for each in readers),
        "the image of an ended IPC stream to become unavailable",
    )
    for each in readers:
        each.subscription.close()


def shared(site: Site) -> Routine[None]:
    """Publish with two publications that share one log, and end the stream with the second one."""
    near = site.near
    reader = Reader((yield from near.subscription(SHARED_CHANNEL, SHARED_STREAM)))
    one = yield from near.publication(SHARED_CHANNEL, SHARED_STREAM)
    two = yield from near.publication(SHARED_CHANNEL, SHARED_STREAM)
    other = yield from near.publication(SHARED_CHANNEL, SHARED_STREAM + 1)
    require(
        one.session_id == two.session_id != other.session_id,
        f"one session for two publications, and another for another stream, found "
        f"{one.session_id}, {two.session_id} and {other.session_id}",
    )
    yield from image_of(reader.subscription)
    yield from exchange(one, [reader], 100, LENGTH)
    yield from exchange(two, [reader], 100, LENGTH, first=500)
    require(one.position == two.position, "publications of one log to have one position")
    one.close()
    yield from exchange(two, [reader], 100, LENGTH, first=900)
    separate = yield from near.publication(SHARED_CHANNEL, SHARED_STREAM, is_exclusive=True)
    require(separate.session_id != two.session_id, "another session for an exclusive publication")
    yield from image_of(reader.subscription, 2)
    yield from exchange(separate, [reader], 10, LENGTH)
    reader.subscription.close()
    for each in (two, separate):
        yield disconnected(each)
    again = Reader((yield from near.subscription("aeron:ipc", SHARED_STREAM)))
    yield from image_of(again.subscription, 2)
    yield from exchange(two, [again], 10, LENGTH)
    for each in (two, separate, other):
        each.close()
    yield Wait(
        lambda: not again.subscription.images, "the images of closed publications to be removed"
    )
    again.subscription.close()
